// https://nodejs.org/api/dns.html: the functions of dns/promises, with callbacks.
import { requireFunction } from "./errors.js";
import * as promises from "./dns_promises.js";
import { nextTick } from "./process.js";

export { promises };
export const {
  NODATA, FORMERR, SERVFAIL, NOTFOUND, NOTIMP, REFUSED, BADQUERY, BADNAME, BADFAMILY, BADRESP, CONNREFUSED, TIMEOUT, EOF, FILE, NOMEM, DESTRUCTION,
  BADSTR, BADFLAGS, NONAME, BADHINTS, NOTINITIALIZED, LOADIPHLPAPI, ADDRGETNETWORKPARAMS, CANCELLED, ADDRCONFIG, V4MAPPED, ALL,
  getServers, setServers, getDefaultResultOrder, setDefaultResultOrder,
} = promises;

/** Calls back with the result of a promise, outside of it: what the callback throws is not a rejection. */
function settle(promise, callback, spread = (value) => [value]) {
  promise.then(
    (value) => nextTick(callback, null, ...spread(value)),
    (error) => nextTick(callback, error),
  );
}

export function lookup(hostname, options, callback) {
  if (hostname && typeof hostname !== "string") promises.readLookup(hostname, undefined);
  const done = typeof options === "function" ? options : callback;
  const given = typeof options === "function" ? undefined : options;
  if (typeof given === "function" || typeof done !== "function") requireFunction(done, "callback");
  const wanted = promises.readLookup(hostname, given);
  settle(promises.lookupWith(hostname, wanted), done, (found) => (wanted.all ? [found] : [found.address, found.family]));
  return {};
}

export function lookupService(address, port, callback) {
  requireFunction(callback, "callback");
  return promises.lookupService(address, port);
}

/** (name, [options or type], callback) */
function withCallback(name) {
  const call = promises[name];
  return {
    [name](first, ...rest) {
      const callback = rest.pop();
      requireFunction(callback, "callback");
      settle(call(first, ...rest), callback);
      return {};
    },
  }[name];
}

export const resolve = withCallback("resolve");
export const resolve4 = withCallback("resolve4");
export const resolve6 = withCallback("resolve6");
export const resolveAny = withCallback("resolveAny");
export const resolveCaa = withCallback("resolveCaa");
export const resolveCname = withCallback("resolveCname");
export const resolveMx = withCallback("resolveMx");
export const resolveNaptr = withCallback("resolveNaptr");
export const resolveNs = withCallback("resolveNs");
export const resolvePtr = withCallback("resolvePtr");
export const resolveSoa = withCallback("resolveSoa");
export const resolveSrv = withCallback("resolveSrv");
export const resolveTlsa = withCallback("resolveTlsa");
export const resolveTxt = withCallback("resolveTxt");
export const reverse = withCallback("reverse");

export class Resolver extends promises.Resolver {}

const methods = {
  resolve, resolve4, resolve6, resolveAny, resolveCaa, resolveCname, resolveMx, resolveNaptr, resolveNs, resolvePtr, resolveSoa, resolveSrv,
  resolveTlsa, resolveTxt, reverse,
};
for (const [name, value] of Object.entries(methods)) Object.defineProperty(Resolver.prototype, name, { value, writable: true, configurable: true });
