// Modules that are read when somebody first asks for them, and cost nothing before; tools/lazy_modules.mjs makes them.
import { native } from "./native.js";
import { shared } from "#shared";

let table = null; // key -> where its text begins and ends
let main = null; // key -> function that gives the exports, of modules of the main bundle
const made = new Map(); // key -> exports

/** The exports of a module, named by its path below web/. */
export function lazy(key) {
  const known = made.get(key);
  if (known !== undefined) return known;
  table ??= JSON.parse(native.lazyTable());
  main ??= shared();
  if (key in main) {
    const exports = main[key]();
    made.set(key, exports);
    return exports;
  }
  const module = { exports: {} };
  const [start, end] = table[key];
  const run = native.compileLazy(key, start, end);
  // While it runs, what it imports may ask for it in turn, and gets what it has put there.
  made.set(key, module.exports);
  run((other) => lazy(other), {
    get exports() {
      return module.exports;
    },
    set exports(exports) {
      module.exports = exports;
      made.set(key, exports);
    },
  }, module.exports);
  return module.exports;
}

/** For the code caches, which hold what has run: every module is read, in an isolate that has no worker. */
export function readAll() {
  table ??= JSON.parse(native.lazyTable());
  for (const key of Object.keys(table)) lazy(key);
}
