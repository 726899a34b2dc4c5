// The methods and getters of a class that another worker may use: those of the class itself or of one it extends; neither
// those of Object nor own properties of an instance.

const RESERVED = new Set(["constructor", "fetch", "connect", "dup", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"]);

/** The descriptor of a member of `Class`, which extends the platform's class `Base`. */
export function findMember(Class, Base, name) {
  if (RESERVED.has(name)) throw new TypeError(`'${name}' is a reserved method and cannot be called over RPC.`);
  for (let at = Class.prototype; at !== Base.prototype && at !== null; at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, name);
    if (found !== undefined) return found;
  }
  throw new TypeError(`The RPC receiver does not implement the method "${name}".`);
}

export function readMember({ get, value }, instance, name) {
  if (typeof value === "function") {
    throw new TypeError(`"${name}" is a method: call it. A function itself cannot be sent to another worker yet.`);
  }
  return get === undefined ? value : get.call(instance);
}

export function callMember({ get, value }, instance, name, args) {
  const method = get === undefined ? value : get.call(instance);
  if (typeof method !== "function") throw new TypeError(`"${name}" is not a function.`);
  return method.apply(instance, args);
}
