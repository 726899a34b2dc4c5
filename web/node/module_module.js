// https://nodejs.org/api/module.html: while a worker runs, only built-in modules can be required by name.
import { codedError } from "./errors.js";
import { builtInNames, getBuiltIn, isBuiltIn } from "./modules.js";

export const builtinModules = builtInNames();

export { isBuiltIn as isBuiltin };

export function createRequire() {
  const require = (name) => {
    const found = getBuiltIn(name);
    if (found === undefined) throw codedError(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}': a worker's modules are imported, not required`);
    return found;
  };
  require.resolve = (name) => name;
  return require;
}
