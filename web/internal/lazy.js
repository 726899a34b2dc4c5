// Loads modules on first use; unused ones cost nothing. tools/lazy_modules.mjs builds them.
import { native } from "./native.js";
import { shared } from "#shared";

let table = null; // where the source of each begins and ends: ";key,start,end;key,start,end;"
let main = null; // key -> function that returns the exports of a module of the main bundle
const made = { __proto__: null }; // key -> exports. Not a Map, whose methods a worker may have replaced: some exports are internal

// Modules that have begun to load since the outermost one did: { key, before }.
let begun = null;

/** Prepares for the first lazy module. */
export function prepareLazy() {
  table ??= native.lazyTable();
  main ??= shared();
}

/** Compiles every module, in an isolate without a worker, for the code caches: they contain what has run. */
export function readAll() {
  prepareLazy();
  for (const entry of table.split(";").slice(1, -1)) lazy(entry.slice(0, entry.indexOf(",")));
}

function compile(key) {
  const at = table.indexOf(`;${key},`);
  const [, start, end] = table.slice(at + 1, table.indexOf(";", at + 1)).split(",");
  return native.compileLazy(key, Number(start), Number(end));
}

/** The exports of a module, by its path below web/. */
export function lazy(key) {
  const known = made[key];
  if (known !== undefined) return known;
  prepareLazy();
  if (key in main) {
    const exports = main[key]();
    made[key] = exports;
    return exports;
  }
  const module = { exports: {} };
  const run = compile(key);
  // With a circular import, the other module gets what this one has exported so far.
  made[key] = module.exports;
  const isOutermost = begun === null;
  begun = { key, before: begun };
  try {
    run((other) => lazy(other), {
      get exports() {
        return module.exports;
      },
      set exports(exports) {
        module.exports = exports;
        made[key] = exports;
      },
    }, module.exports);
  } catch (error) {
    // A stack overflow, for example. Modules that have begun are incomplete or refer to incomplete ones: load them again.
    for (let one = begun; one !== null; one = one.before) made[one.key] = undefined;
    throw error;
  } finally {
    if (isOutermost) begun = null;
  }
  return module.exports;
}
