// https://nodejs.org/api/module.html: while a worker runs, only built-in modules can be required by name.
import { codedError, invalidValue } from "./errors.js";
import { builtInNames, getBuiltIn, isBuiltIn } from "./modules.js";
import { notImplemented } from "./http_common.js";
import { unavailable } from "./unavailable.js";
import { URL } from "../url/url.js";

const PREFIXED = new Set(["sqlite", "test"]); // newer modules, whose names begin with `node:`

export const builtinModules = builtInNames().map((name) => (PREFIXED.has(name) ? `node:${name}` : name));

export function isBuiltin(name) {
  return typeof name === "string" && isBuiltIn(name) && !PREFIXED.has(name);
}

// Bundlers leave `import.meta.url` undefined, which is let through.
function requirePath(path) {
  const isFile = typeof path === "string" ? /^(?:\/|file:)/.test(path) : path === undefined || (path instanceof URL && path.protocol === "file:");
  if (!isFile) throw invalidValue("filename", path, "must be a file URL object, file URL string, or absolute path string");
}

export function createRequire(filename = undefined) {
  requirePath(filename);
  const require = (name) => {
    const found = getBuiltIn(name);
    if (found === undefined) throw codedError(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}': a worker's modules are imported, not required`);
    return found;
  };
  require.resolve = (name) => name;
  return require;
}

const functions = unavailable("module", [
  "SourceMap", "_debug", "_findPath", "_initPaths", "_load", "_nodeModulePaths", "_preloadModules", "_resolveFilename",
  "_resolveLookupPaths", "findPackageJSON", "findSourceMap", "register", "registerHooks", "runMain", "setSourceMapsSupport", "stripTypeScriptTypes",
  "syncBuiltinESMExports", "wrap",
]);

export const {
  SourceMap, _debug, _findPath, _initPaths, _load, _nodeModulePaths, _preloadModules, _resolveFilename, _resolveLookupPaths,
  findPackageJSON, findSourceMap, register, registerHooks, runMain, setSourceMapsSupport, stripTypeScriptTypes, syncBuiltinESMExports, wrap,
} = functions;

export function Module() {
  throw notImplemented("Module");
}

const members = unavailable("Module.prototype", ["load", "require", "_compile"]);
Object.assign(Module.prototype, members, { isPreloading: false });

export const _cache = { __proto__: null };
export const _pathCache = { __proto__: null };
export const _extensions = unavailable("module", [".js", ".json", ".node"]);
export const globalPaths = [];
export const constants = Object.freeze({
  __proto__: null,
  compileCacheStatus: Object.freeze({ __proto__: null, FAILED: 0, ENABLED: 1, ALREADY_ENABLED: 2, DISABLED: 3 }),
});

export function enableCompileCache() {}

export function flushCompileCache() {}

export function getCompileCacheDir() {}

export function getSourceMapsSupport() {
  return Object.freeze({ __proto__: null, enabled: false, nodeModules: false, generatedCode: false });
}

// As in Node, the module is a class: bundles of the Next framework set the `require` of its prototype.
export default Object.assign(Module, functions, {
  Module, _cache, _extensions, _pathCache, builtinModules, constants, createRequire, enableCompileCache, flushCompileCache, getCompileCacheDir,
  getSourceMapsSupport, globalPaths, isBuiltin,
});
