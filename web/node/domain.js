// https://nodejs.org/api/domain.html: domains that run functions and catch nothing, as on Cloudflare.
import { EventEmitter } from "./events.js";

EventEmitter.usingDomains = false;

export class Domain extends EventEmitter {
  members = undefined;

  _errorHandler(error) {
    throw error;
  }

  enter() {}

  exit() {}

  add() {}

  remove() {}

  run(action, ...args) {
    return Reflect.apply(action, this, args);
  }

  intercept(callback) {
    return callback;
  }

  bind(callback) {
    return callback;
  }
}

export function createDomain() {
  return new Domain();
}

export const create = createDomain();
export const active = null;
