// Modules that are read when somebody first asks for them, and cost nothing before; tools/lazy_modules.mjs makes them.
import { native } from "./native.js";
import { shared } from "#shared";

let table = null; // where the text of each begins and ends: ";key,start,end;key,start,end;"
let main = null; // key -> function that gives the exports, of modules of the main bundle
const made = { __proto__: null }; // key -> exports; no Map, whose methods a worker may have replaced by then: some exports are ours alone

// Those that were begun since the outermost of them was: { key, before }.
let begun = null;

/** Gets ready for the first. */
export function prepareLazy() {
  table ??= native.lazyTable();
  main ??= shared();
}

/** For the code caches, which hold what has run: every module is read, in an isolate that has no worker. */
export function readAll() {
  prepareLazy();
  for (const entry of table.split(";").slice(1, -1)) lazy(entry.slice(0, entry.indexOf(",")));
}

function compile(key) {
  const at = table.indexOf(`;${key},`);
  const [, start, end] = table.slice(at + 1, table.indexOf(";", at + 1)).split(",");
  return native.compileLazy(key, Number(start), Number(end));
}

/** The exports of a module, named by its path below web/. */
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
  // While it runs, what it imports may ask for it in turn, and gets what it has put there.
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
    // Whoever asked was at the end of the stack. None of them is whole, or knows only whole ones: they are read again.
    for (let one = begun; one !== null; one = one.before) made[one.key] = undefined;
    throw error;
  } finally {
    if (isOutermost) begun = null;
  }
  return module.exports;
}
