// https://nodejs.org/api/vm.html: arguments are checked as in Node, then what would run code is refused: a worker runs the code it was deployed with.
import { Buffer } from "./buffer.js";
import { invalidArgument, requireObject, requireString } from "./errors.js";
import { notImplemented } from "./http_common.js";
import { requireArray, requireBoolean, requireInteger, requireOneOf, requireOptions, requireStrings } from "./validate.js";

export const constants = Object.freeze({
  __proto__: null,
  USE_MAIN_CONTEXT_DEFAULT_LOADER: Symbol("vm_dynamic_import_main_context_default"),
  DONT_CONTEXTIFY: Symbol("vm_context_no_contextify"),
});

const requireInt32 = (value, name) => requireInteger(value, name, -2147483648, 2147483647);

const contexts = new WeakSet(); // what createContext() made; nothing runs in them

export function isContext(object) {
  requireObject(object, "object");
  return contexts.has(object);
}

function requireContext(object) {
  if (!isContext(object)) throw invalidArgument("contextifiedObject", "an vm.Context", object);
}

function checkSource({ filename = "", lineOffset = 0, columnOffset = 0, cachedData, produceCachedData = false, importModuleDynamically = false }) {
  requireBoolean(importModuleDynamically, "options.importModuleDynamically");
  requireString(filename, "options.filename");
  requireInt32(lineOffset, "options.lineOffset");
  requireInt32(columnOffset, "options.columnOffset");
  if (cachedData !== undefined && !ArrayBuffer.isView(cachedData)) {
    throw invalidArgument("options.cachedData", "an instance of Buffer, TypedArray, or DataView", cachedData);
  }
  requireBoolean(produceCachedData, "options.produceCachedData");
}

function checkRun(options) {
  requireOptions(options, "options");
  const { breakOnSigint = false, displayErrors = true, timeout = 1 } = options;
  requireBoolean(breakOnSigint, "options.breakOnSigint");
  requireBoolean(displayErrors, "options.displayErrors");
  requireInteger(timeout, "options.timeout", 1, 4294967295);
}

export class Script {
  constructor(code, options = {}) {
    const given = typeof options === "string" ? { filename: options } : options;
    requireOptions(given, "options");
    checkSource(given);
    Object.assign(this, { cachedDataRejected: undefined, sourceMapURL: undefined });
  }

  createCachedData() {
    return Buffer.alloc(0);
  }

  runInThisContext(options = {}) {
    checkRun(options);
    throw notImplemented("runInThisContext");
  }

  runInContext(context, options = {}) {
    requireContext(context);
    checkRun(options);
    throw notImplemented("runInContext");
  }

  runInNewContext(object, options = {}) {
    return this.runInContext(createContext(object, contextOptions(options)), options);
  }
}

function contextOptions({ contextName, contextOrigin, contextCodeGeneration, microtaskMode } = {}) {
  if (contextName !== undefined) requireString(contextName, "options.contextName");
  if (contextOrigin !== undefined) requireString(contextOrigin, "options.contextOrigin");
  if (contextCodeGeneration !== undefined) {
    requireOptions(contextCodeGeneration, "options.contextCodeGeneration");
    for (const name of ["strings", "wasm"]) {
      if (contextCodeGeneration[name] !== undefined) requireBoolean(contextCodeGeneration[name], `options.contextCodeGeneration.${name}`);
    }
  }
  if (microtaskMode !== undefined) requireString(microtaskMode, "options.microtaskMode");
  const found = { origin: contextOrigin, codeGeneration: contextCodeGeneration, microtaskMode };
  return contextName === undefined ? found : { ...found, name: contextName };
}

export function createContext(object = {}, options = {}) {
  if (object !== constants.DONT_CONTEXTIFY && isContext(object)) return object;
  requireOptions(options, "options");
  const { name = "VM Context", origin, codeGeneration, microtaskMode, importModuleDynamically = false } = options;
  requireString(name, "options.name");
  if (origin !== undefined) requireString(origin, "options.origin");
  if (codeGeneration !== undefined) {
    requireOptions(codeGeneration, "options.codeGeneration");
    const { strings = true, wasm = true } = codeGeneration;
    requireBoolean(strings, "options.codeGeneration.strings");
    requireBoolean(wasm, "options.codeGeneration.wasm");
  }
  requireBoolean(importModuleDynamically, "options.importModuleDynamically");
  requireOneOf(microtaskMode, "options.microtaskMode", ["afterEvaluate", undefined]);
  const context = object === constants.DONT_CONTEXTIFY ? {} : object;
  contexts.add(context);
  return context;
}

export function createScript(code, options = {}) {
  return new Script(code, options);
}

export function runInContext(code, context, options = {}) {
  requireContext(context);
  return createScript(code, options).runInContext(context, options);
}

export function runInNewContext(code, object, options = {}) {
  const given = typeof options === "string" ? { filename: options } : { ...options };
  return createScript(code, given).runInNewContext(createContext(object, contextOptions(given)), given);
}

export function runInThisContext(code, options = {}) {
  return createScript(code, options).runInThisContext(options);
}

export function compileFunction(code, params = [], options = {}) {
  requireString(code, "code");
  requireOptions(options, "options");
  requireStrings(params, "params");
  checkSource(options);
  const { parsingContext, contextExtensions = [] } = options;
  if (parsingContext !== undefined) throw invalidArgument("options.parsingContext", "an instance of Context", parsingContext);
  requireArray(contextExtensions, "options.contextExtensions");
  contextExtensions.forEach((extension, i) => {
    if (extension !== null) requireOptions(extension, `options.contextExtensions[${i}]`);
  });
  throw notImplemented("compileFunction");
}

export function measureMemory(options = {}) {
  requireOptions(options, "options");
  requireOneOf(options.mode ?? "summary", "options.mode", ["summary", "detailed"]);
  requireOneOf(options.execution ?? "default", "options.execution", ["default", "eager"]);
  throw notImplemented("measureMemory");
}
