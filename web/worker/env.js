// env, the second argument of a handler: variables unchanged, bindings as objects of their class.
import "#every-binding";
import { makeBinding } from "../internal/bindings.js";
import { noOrigin } from "./origin.js";

let env = {};
let ownFacts = {};

/** The variables and bindings of this worker. */
export function currentEnv() {
  return env;
}

/** What the JavaScript half of a kind of binding knows in every worker. */
export function ownFactsOf(kind) {
  return ownFacts[kind];
}

/** `vars` are JSON values, `grants` is a list of { name, kind, facts? }. A binding knows only its name, and its facts if it has some. One without a name has the facts of all kinds. */
export function makeEnv(vars, grants) {
  env = { ...vars };
  ownFacts = {};
  noOrigin();
  for (const { name, kind, facts } of grants ?? []) {
    if (name === "") ownFacts = facts;
    else env[name] = makeBinding(kind, name, facts);
  }
  return env;
}
