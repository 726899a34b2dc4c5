// Functions of node:util about errors of the system, stacks and differences.
import { invalidArgument, invalidValue, outOfRange, requireNumber, requireString } from "./errors.js";
import { signals } from "./os_constants.js";
import { SYSTEM_ERRORS } from "./system_errors.js";
import { requireOptions } from "./validate.js";

function entryOf(number) {
  requireNumber(number, "err");
  if (number >= 0 || !Number.isSafeInteger(number)) throw outOfRange("err", "a negative integer", number);
  return SYSTEM_ERRORS.get(number) ?? [`Unknown system error ${number}`, `Unknown system error ${number}`];
}

export function getSystemErrorName(number) {
  return entryOf(number)[0];
}

export function getSystemErrorMessage(number) {
  return entryOf(number)[1];
}

export function getSystemErrorMap() {
  return new Map(SYSTEM_ERRORS);
}

/** The error of a failed call of the system. */
export function _errnoException(number, syscall, original = undefined) {
  const [code] = entryOf(number);
  return Object.assign(new Error(`${syscall} ${code}${original ? ` ${original}` : ""}`), { errno: number, code, syscall });
}

export function _exceptionWithHostPort(number, syscall, address, port = undefined, additional = undefined) {
  const [code] = entryOf(number);
  let details = "";
  if (port > 0) details = ` ${address}:${port}`;
  else if (address) details = ` ${address}`;
  if (additional) details += ` - Local (${additional})`;
  return Object.assign(new Error(`${syscall} ${code}${details}`), { errno: number, code, syscall, address }, port ? { port } : {});
}

export function _extend(target, source) {
  if (source === null || typeof source !== "object") return target;
  return Object.assign(target, source);
}

/** https://nodejs.org/api/util.html#utilgetcallsitesframecount-options */
export function getCallSites(frameCount = 10, options = undefined) {
  if (typeof frameCount === "object" && options === undefined) [frameCount, options] = [10, frameCount];
  if (options !== undefined) requireOptions(options, "options");
  requireNumber(frameCount, "frameCount");
  if (!Number.isInteger(frameCount)) throw outOfRange("frameCount", "an integer", frameCount);
  if (!(frameCount >= 1 && frameCount <= 200)) throw outOfRange("frameCount", ">= 1 && <= 200", frameCount);
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = frameCount;
    Error.prepareStackTrace = (error, sites) => sites;
    const holder = {};
    Error.captureStackTrace(holder, getCallSites);
    return holder.stack.map((site) => ({
      __proto__: null,
      functionName: site.getFunctionName() ?? "",
      scriptId: "0",
      scriptName: site.getFileName() ?? "",
      lineNumber: site.getLineNumber() ?? 0,
      columnNumber: site.getColumnNumber() ?? 0,
      column: site.getColumnNumber() ?? 0,
    }));
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

const MOST_COMPARED = 4_000_000; // pairs of values

function toList(value, name) {
  if (typeof value === "string") return [...value.split("")];
  if (!Array.isArray(value)) throw invalidArgument(name, "of type string", value);
  value.forEach((each, i) => requireString(each, `${name}[${i}]`));
  return value;
}

/** https://nodejs.org/api/util.html#utildiffactual-expected: [0, same], [1, only in actual], [-1, only in expected]. */
export function diff(actual, expected) {
  if (actual === expected) return [];
  const [a, b] = [toList(actual, "actual"), toList(expected, "expected")];
  if (a.length * b.length > MOST_COMPARED) throw outOfRange("actual.length * expected.length", `<= ${MOST_COMPARED}`, a.length * b.length);
  // lengths[i][j]: the longest common subsequence of a from i and b from j
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) found.push([0, a[i++]]) && j++;
    else if (j === b.length || (i < a.length && lengths[i + 1][j] >= lengths[i][j + 1])) found.push([1, a[i++]]);
    else found.push([-1, b[j++]]);
  }
  return found;
}

export function convertProcessSignalToExitCode(name) {
  if (signals[name] === undefined) throw invalidValue("signalCode", name);
  return 128 + signals[name];
}

export function setTraceSigInt(enable) {
  if (typeof enable !== "boolean") throw invalidArgument("enable", "of type boolean", enable);
}

