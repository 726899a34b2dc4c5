// https://nodejs.org/api/process.html#processenv: all values are strings.
import { isOn } from "../worker/compatibility.js";
import { currentEnv } from "../worker/env.js";
import { codedError } from "./errors.js";

function isPlain(value) {
  return typeof value !== "object" || value === null || Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

// The worker's variables: text unchanged, other values as JSON. A copy, so changes stay in this isolate.
function variables() {
  const found = {};
  if (!isOn("nodejs_compat_populate_process_env")) return found;
  for (const [name, value] of Object.entries(currentEnv())) {
    if (typeof value === "string") found[name] = value;
    else if (isPlain(value)) found[name] = JSON.stringify(value);
  }
  return found;
}

export function makeEnv() {
  return new Proxy(variables(), {
    set(target, name, value) {
      if (typeof name === "symbol") throw new TypeError("Cannot convert a Symbol value to a string");
      target[name] = `${value}`; // throws for symbols
      return true;
    },
    defineProperty(target, name, descriptor) {
      const { configurable, writable, enumerable, get, set } = descriptor;
      if (get !== undefined || set !== undefined) {
        throw codedError(TypeError, "ERR_INVALID_ARG_VALUE", "'process.env' does not accept an accessor(getter/setter) descriptor");
      }
      if (!configurable || !writable || !enumerable) {
        throw codedError(TypeError, "ERR_INVALID_ARG_VALUE", "'process.env' only accepts a configurable, writable, and enumerable data descriptor");
      }
      return Reflect.defineProperty(target, name, { ...descriptor, value: `${descriptor.value}` });
    },
  });
}
