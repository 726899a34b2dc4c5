// https://nodejs.org/api/assert.html
import { inspect } from "../internal/inspect.js";
import { isDeepEqual } from "./deep_equal.js";
import { codedError, describe as describeValue, invalidArgument, requireFunction } from "./errors.js";

/** https://nodejs.org/api/assert.html#class-assertassertionerror */
export class AssertionError extends Error {
  constructor(options) {
    const { message, actual, expected, operator = "fail", stackStartFn } = options;
    super(message === undefined ? describe(actual, expected, operator) : String(message));
    this.name = "AssertionError";
    this.code = "ERR_ASSERTION";
    this.generatedMessage = message === undefined;
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
    Error.captureStackTrace(this, stackStartFn ?? AssertionError);
  }
}

const TITLES = {
  strictEqual: "Expected values to be strictly equal:",
  deepStrictEqual: "Expected values to be strictly deep-equal:",
  deepEqual: "Expected values to be loosely deep-equal:",
  notStrictEqual: 'Expected "actual" to be strictly unequal to:',
  notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
  notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
  "==": "Expected values to be loosely equal:",
  "!=": 'Expected "actual" to be loosely unequal to:',
};

function describe(actual, expected, operator) {
  const title = TITLES[operator];
  if (title === undefined) return "Failed";
  const show = (value) => inspect(value, { depth: 5 });
  if (title.startsWith('Expected "actual"')) return `${title}\n\n${show(expected)}\n`;
  const [a, b] = [show(actual), show(expected)];
  const isShort = !a.includes("\n") && !b.includes("\n") && a.length + b.length < 60;
  return isShort && operator === "strictEqual" ? `${title}\n\n${a} !== ${b}\n` : `${title}\n+ actual - expected\n\n${diff(a, b)}\n`;
}

function diff(actual, expected) {
  const rest = expected.split("\n");
  const lines = actual.split("\n").map((line, i) => (line === rest[i] ? `  ${line}` : `+ ${line}`));
  const missing = rest.filter((line, i) => line !== actual.split("\n")[i]).map((line) => `- ${line}`);
  return [...lines, ...missing].join("\n");
}

function refuse(message, details, caller) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message, stackStartFn: caller, ...details });
}

export function ok(value, message = undefined) {
  if (arguments.length === 0) refuse("No value argument passed to `assert.ok()`", { actual: undefined, expected: true, operator: "==" }, ok);
  if (!value) {
    refuse(message ?? "The expression evaluated to a falsy value", { actual: value, expected: true, operator: "==" }, ok);
  }
}

/** `assert(value)` is `assert.ok(value)`. */
function assert(value, message = undefined) {
  if (!value) {
    refuse(message ?? "The expression evaluated to a falsy value", { actual: value, expected: true, operator: "==" }, assert);
  }
}

export function fail(message = "Failed") {
  refuse(arguments.length === 0 ? undefined : message, { operator: "fail" }, fail);
}

function comparison(operator, holds) {
  const check = (...given) => {
    if (given.length < 2) {
      throw codedError(TypeError, "ERR_MISSING_ARGS", 'The "actual" and "expected" arguments must be specified');
    }
    const [actual, expected, message] = given;
    if (!holds(actual, expected)) refuse(message, { actual, expected, operator }, check);
  };
  return check;
}

/* eslint-disable eqeqeq */
export const equal = comparison("==", (a, b) => a == b || (Number.isNaN(a) && Number.isNaN(b)));
export const notEqual = comparison("!=", (a, b) => a != b && !(Number.isNaN(a) && Number.isNaN(b)));
/* eslint-enable eqeqeq */
export const strictEqual = comparison("strictEqual", (a, b) => Object.is(a, b));
export const notStrictEqual = comparison("notStrictEqual", (a, b) => !Object.is(a, b));
export const deepEqual = comparison("deepEqual", (a, b) => isDeepEqual(a, b, false));
export const notDeepEqual = comparison("notDeepEqual", (a, b) => !isDeepEqual(a, b, false));
export const deepStrictEqual = comparison("deepStrictEqual", (a, b) => isDeepEqual(a, b, true));
export const notDeepStrictEqual = comparison("notDeepStrictEqual", (a, b) => !isDeepEqual(a, b, true));

// `expected`: a class, a pattern for the message, a function that checks, or an object with expected properties.
function checkError(error, expected, message, operator, caller) {
  if (expected === undefined) return;
  const wrong = (reason) => refuse(message ?? reason, { actual: error, expected, operator }, caller);
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) wrong(`The input did not match the regular expression ${expected}. Input:\n\n${inspect(String(error))}\n`);
  } else if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (expected === Error || expected.prototype instanceof Error) throw error;
    if (expected.call({}, error) !== true) wrong('The validation function is expected to return "true".');
  } else {
    const keys = Object.keys(expected);
    if (expected instanceof Error) keys.push("name", "message");
    if (keys.length === 0) throw codedError(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'error' may not be an empty object. Received {}");
    for (const key of keys) {
      const isMatch = typeof error?.[key] === "string" && expected[key] instanceof RegExp && expected[key].test(error[key]);
      if (!isMatch && !isDeepEqual(error?.[key], expected[key], true)) {
        wrong(`Expected the error's "${key}" to be ${inspect(expected[key])}, it is ${inspect(error?.[key])}`);
      }
    }
  }
}

function splitExpected(expected, message) {
  return typeof expected === "string" ? [undefined, expected] : [expected, message];
}

function missing(expected, message, what) {
  const name = expected?.name ? ` (${expected.name})` : "";
  return `Missing expected ${what}${name}${message === undefined ? "." : `: ${message}`}`;
}

export function throws(body, error = undefined, text = undefined) {
  requireFunction(body, "fn");
  const [expected, message] = splitExpected(error, text);
  let thrown;
  try {
    body();
  } catch (caught) {
    thrown = { caught };
  }
  if (thrown === undefined) refuse(missing(expected, message, "exception"), { expected, operator: "throws" }, throws);
  checkError(thrown.caught, expected, message, "throws", throws);
}

export function doesNotThrow(body, error = undefined, text = undefined) {
  requireFunction(body, "fn");
  const [, message] = splitExpected(error, text);
  try {
    body();
  } catch (caught) {
    const reason = `Got unwanted exception${message === undefined ? "." : `: ${message}`}\nActual message: "${caught?.message}"`;
    refuse(reason, { actual: caught, operator: "doesNotThrow" }, doesNotThrow);
  }
}

// A promise, or the outcome of a function that returns one.
async function outcomeOf(value) {
  if (typeof value !== "function" && typeof value?.then !== "function") {
    throw invalidArgument("promiseFn", "of type function or an instance of Promise", value);
  }
  const promise = typeof value === "function" ? value() : value;
  if (typeof promise?.then !== "function" || typeof promise.catch !== "function") {
    const text = promise === null || promise === undefined ? `${promise}` : describeValue(promise);
    throw codedError(TypeError, "ERR_INVALID_RETURN_VALUE", `Expected instance of Promise to be returned from the "promiseFn" function but got ${text}.`);
  }
  try {
    await promise;
    return undefined;
  } catch (caught) {
    return { caught };
  }
}

export async function rejects(promise, error = undefined, text = undefined) {
  const [expected, message] = splitExpected(error, text);
  const thrown = await outcomeOf(promise);
  if (thrown === undefined) refuse(missing(expected, message, "rejection"), { expected, operator: "rejects" }, rejects);
  checkError(thrown.caught, expected, message, "rejects", rejects);
}

export async function doesNotReject(promise, error = undefined, text = undefined) {
  const [, message] = splitExpected(error, text);
  const thrown = await outcomeOf(promise);
  if (thrown === undefined) return;
  const reason = `Got unwanted rejection${message === undefined ? "." : `: ${message}`}\nActual message: "${thrown.caught?.message}"`;
  refuse(reason, { actual: thrown.caught, expected: error, operator: "doesNotReject" }, doesNotReject);
}

export function ifError(value) {
  if (value === null || value === undefined) return;
  const text = typeof value === "object" && typeof value.message === "string" ? value.message || value.constructor?.name : inspect(value);
  refuse(`ifError got unwanted exception: ${text}`, { actual: value, expected: null, operator: "ifError" }, ifError);
}

function matching(operator, wanted) {
  const check = (text, pattern, message = undefined) => {
    if (!(pattern instanceof RegExp)) throw invalidArgument("regexp", "an instance of RegExp", pattern);
    if (typeof text === "string" && pattern.test(text) === wanted) return;
    const reason = wanted ? "did not match" : "was expected to not match";
    refuse(message ?? `The input ${reason} the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`, { actual: text, expected: pattern, operator }, check);
  };
  return check;
}

export const match = matching("match", true);
export const doesNotMatch = matching("doesNotMatch", false);

/** https://nodejs.org/api/assert.html#assertpartialdeepstrictequalactual-expected-message, for plain objects and arrays. */
export function partialDeepStrictEqual(actual, expected, message = undefined) {
  const holds = (a, b) => {
    if (typeof b !== "object" || b === null || typeof a !== "object" || a === null) return isDeepEqual(a, b, true);
    if (Array.isArray(b)) return Array.isArray(a) && b.every((item) => a.some((other) => holds(other, item)));
    if (Object.getPrototypeOf(b) !== Object.prototype) return isDeepEqual(a, b, true);
    return Reflect.ownKeys(b).every((key) => Object.hasOwn(a, key) && holds(a[key], b[key]));
  };
  if (!holds(actual, expected)) refuse(message, { actual, expected, operator: "deepStrictEqual" }, partialDeepStrictEqual);
}

/** `assert` with the strict methods under the short names. */
export function strict(value, message = undefined) {
  assert(value, message);
}

const shared = {
  AssertionError, deepStrictEqual, doesNotMatch, doesNotReject, doesNotThrow, fail, ifError, match, notDeepStrictEqual,
  notStrictEqual, ok, partialDeepStrictEqual, rejects, strict, strictEqual, throws,
};
Object.assign(assert, shared, { deepEqual, equal, notDeepEqual, notEqual });
Object.assign(strict, shared, {
  deepEqual: deepStrictEqual, equal: strictEqual, notDeepEqual: notDeepStrictEqual, notEqual: notStrictEqual,
});

/** https://nodejs.org/api/assert.html#class-assertassert: assertions with options of their own. */
export function Assert(options = undefined) {
  if (new.target === undefined) throw codedError(TypeError, "ERR_CONSTRUCT_CALL_REQUIRED", "Class constructor Assert cannot be invoked without `new`");
  const { strict: isStrict = true } = options ?? {};
  for (const [name, method] of Object.entries(isStrict ? strict : assert)) {
    if (name !== "Assert" && name !== "strict") this[name] = method;
  }
}

assert.Assert = Assert;
strict.Assert = Assert;

export default assert;
