// env, the second argument of a handler: variables unchanged, bindings as objects of their class.
import "#every-binding";
import { makeBinding } from "../internal/bindings.js";

let env = {};

/** The variables and bindings of this worker. */
export function currentEnv() {
  return env;
}

/** `vars` are JSON values, `grants` is a list of { name, kind, facts? }. A binding knows only its name, and its facts if it has some. */
export function makeEnv(vars, grants) {
  env = { ...vars };
  for (const { name, kind, facts } of grants ?? []) env[name] = makeBinding(kind, name, facts);
  return env;
}
