// The assertions that the tests of the web platform need. They run in a worker, without Node.

function show(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

class AssertionError extends Error {
  name = "AssertionError";
}

function fail(reason, message) {
  throw new AssertionError(message === undefined ? reason : `${message}: ${reason}`);
}

export function ok(value, message = undefined) {
  if (!value) fail(`${show(value)} is not truthy`, message);
}

export function equal(actual, expected, message = undefined) {
  if (!Object.is(actual, expected)) fail(`got ${show(actual)}, expected ${show(expected)}`, message);
}

function same(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof Map || a instanceof Set) return same([...a], [...b]);
  if (a instanceof ArrayBuffer) return same(new Uint8Array(a), new Uint8Array(b));
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

export function deepEqual(actual, expected, message = undefined) {
  if (!same(actual, expected)) fail(`got ${show(actual)}, expected ${show(expected)}`, message);
}

// `expected`: a class, the name of an error, or nothing.
function check(error, expected, message) {
  if (expected === undefined) return error;
  const matches = typeof expected === "string" ? error?.name === expected : error instanceof expected;
  if (!matches) fail(`threw ${error?.name}: ${error?.message}, expected ${expected.name ?? expected}`, message);
  return error;
}

export function throws(body, expected = undefined, message = undefined) {
  let error;
  try {
    body();
  } catch (thrown) {
    error = { thrown };
  }
  if (error === undefined) fail("nothing was thrown", message);
  return check(error.thrown, expected, message);
}

export async function rejects(promise, expected = undefined, message = undefined) {
  let error;
  try {
    await (typeof promise === "function" ? promise() : promise);
  } catch (thrown) {
    error = { thrown };
  }
  if (error === undefined) fail("the promise was not rejected", message);
  return check(error.thrown, expected, message);
}
