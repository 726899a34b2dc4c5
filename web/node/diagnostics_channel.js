// https://nodejs.org/api/diagnostics_channel.html
import { reportException } from "../dom/report.js";
import { isolated } from "../internal/async_context.js";
import { invalidArgument, requireFunction } from "./errors.js";

const channels = new Map(); // name -> Channel, for the life of the isolate

export class Channel {
  #subscribers = [];
  #stores = new Map(); // AsyncLocalStorage -> function from a message to the store

  constructor(name) {
    this.name = name;
  }

  get hasSubscribers() {
    return this.#subscribers.length > 0 || this.#stores.size > 0;
  }

  subscribe(subscription) {
    requireFunction(subscription, "subscription");
    this.#subscribers = [...this.#subscribers, subscription];
  }

  unsubscribe(subscription) {
    const index = this.#subscribers.indexOf(subscription);
    if (index === -1) return false;
    this.#subscribers = this.#subscribers.toSpliced(index, 1);
    return true;
  }

  publish(message) {
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(message, this.name);
      } catch (error) {
        // An error in one subscriber does not affect the others.
        reportException(error);
      }
    }
  }

  bindStore(store, transform = (message) => message) {
    this.#stores.set(store, transform);
  }

  unbindStore(store) {
    return this.#stores.delete(store);
  }

  runStores(message, callback, thisArg = undefined, ...args) {
    return isolated(() => {
      for (const [store, transform] of this.#stores) {
        try {
          store.enterWith(transform(message));
        } catch (error) {
          reportException(error);
        }
      }
      this.publish(message);
      return callback.apply(thisArg, args);
    });
  }
}

export function channel(name) {
  if (typeof name !== "string" && typeof name !== "symbol") throw invalidArgument("channel", "of type string or symbol", name);
  let found = channels.get(name);
  if (found === undefined) channels.set(name, (found = new Channel(name)));
  return found;
}

export function hasSubscribers(name) {
  return channels.get(name)?.hasSubscribers ?? false;
}

export function subscribe(name, subscription) {
  channel(name).subscribe(subscription);
}

export function unsubscribe(name, subscription) {
  return channel(name).unsubscribe(subscription);
}

const EVENTS = ["start", "end", "asyncStart", "asyncEnd", "error"];

/** https://nodejs.org/api/diagnostics_channel.html#class-tracingchannel */
export class TracingChannel {
  constructor(nameOrChannels) {
    for (const event of EVENTS) {
      this[event] = typeof nameOrChannels === "string" ? channel(`tracing:${nameOrChannels}:${event}`) : nameOrChannels[event];
    }
  }

  get hasSubscribers() {
    return EVENTS.some((event) => this[event]?.hasSubscribers);
  }

  subscribe(subscribers) {
    for (const event of EVENTS) if (subscribers[event] !== undefined) this[event].subscribe(subscribers[event]);
  }

  unsubscribe(subscribers) {
    return EVENTS.every((event) => subscribers[event] === undefined || this[event].unsubscribe(subscribers[event]));
  }

  traceSync(callback, context = {}, thisArg = undefined, ...args) {
    return this.start.runStores(context, () => {
      try {
        context.result = callback.apply(thisArg, args);
        return context.result;
      } catch (error) {
        context.error = error;
        this.error.publish(context);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }

  tracePromise(callback, context = {}, thisArg = undefined, ...args) {
    const finish = (publishResult) => (value) => {
      publishResult(value);
      this.asyncStart.publish(context);
      this.asyncEnd.publish(context);
    };
    const fail = finish((error) => {
      context.error = error;
      this.error.publish(context);
    });
    const succeed = finish((result) => {
      context.result = result;
    });
    return this.start.runStores(context, () => {
      try {
        return Promise.resolve(callback.apply(thisArg, args)).then(
          (result) => {
            succeed(result);
            return result;
          },
          (error) => {
            fail(error);
            throw error;
          },
        );
      } catch (error) {
        context.error = error;
        this.error.publish(context);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }

  traceCallback(callback, position = -1, context = {}, thisArg = undefined, ...args) {
    const index = position < 0 ? args.length + position : position;
    const original = args[index];
    requireFunction(original, "callback");
    args[index] = (error, ...results) => {
      if (error) {
        context.error = error;
        this.error.publish(context);
      } else {
        [context.result] = results;
      }
      return this.asyncStart.runStores(context, () => {
        try {
          return original.call(thisArg, error, ...results);
        } finally {
          this.asyncEnd.publish(context);
        }
      });
    };
    return this.start.runStores(context, () => {
      try {
        return callback.apply(thisArg, args);
      } catch (error) {
        context.error = error;
        this.error.publish(context);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }
}

export function tracingChannel(nameOrChannels) {
  return new TracingChannel(nameOrChannels);
}
