// Functions that packages import but that a worker cannot use. Each throws an error.
import { codedError } from "./errors.js";

function refuse(what) {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The ${what} method is not implemented`);
}

/** Functions with these names. Each throws an error that names it, whether called or constructed. */
export function unavailable(module, names) {
  return Object.fromEntries(
    names.map((name) => {
      // A function expression, because some of these are used as classes.
      const refuser = function () {
        refuse(`${module}.${name}`);
      };
      return [name, Object.defineProperty(refuser, "name", { value: name })];
    }),
  );
}
