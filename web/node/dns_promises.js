// https://nodejs.org/api/dns.html#dns-promises-api, over the resolver of the node. A worker learns no address that it may not reach.
import { lookupName, resolveName } from "#bindings/dns/dns.js";
import { codedError, describe, invalidArgument, invalidValue, requireString } from "./errors.js";
import { isIP, isIPv4, isIPv6, requirePort } from "./net_addresses.js";

export const NODATA = "ENODATA";
export const FORMERR = "EFORMERR";
export const SERVFAIL = "ESERVFAIL";
export const NOTFOUND = "ENOTFOUND";
export const NOTIMP = "ENOTIMP";
export const REFUSED = "EREFUSED";
export const BADQUERY = "EBADQUERY";
export const BADNAME = "EBADNAME";
export const BADFAMILY = "EBADFAMILY";
export const BADRESP = "EBADRESP";
export const CONNREFUSED = "ECONNREFUSED";
export const TIMEOUT = "ETIMEOUT";
export const EOF = "EOF";
export const FILE = "EFILE";
export const NOMEM = "ENOMEM";
export const DESTRUCTION = "EDESTRUCTION";
export const BADSTR = "EBADSTR";
export const BADFLAGS = "EBADFLAGS";
export const NONAME = "ENONAME";
export const BADHINTS = "EBADHINTS";
export const NOTINITIALIZED = "ENOTINITIALIZED";
export const LOADIPHLPAPI = "ELOADIPHLPAPI";
export const ADDRGETNETWORKPARAMS = "EADDRGETNETWORKPARAMS";
export const CANCELLED = "ECANCELLED";

export const ADDRCONFIG = 1024;
export const V4MAPPED = 2048;
export const ALL = 256;

const ORDERS = ["ipv4first", "ipv6first", "verbatim"];
const FAMILIES = [0, 4, 6];
const NAMES = { IPv4: 4, IPv6: 6 };
let order = "verbatim";

function oneOf(name, allowed, value) {
  return invalidValue(name, value, `must be one of: ${allowed.map((each) => (typeof each === "string" ? `'${each}'` : each)).join(", ")}`);
}

function notImplemented(name) {
  return codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The ${name} method is not implemented`);
}

/** An error as libuv's and c-ares' are: code, syscall, hostname. */
function failed(syscall, code, hostname) {
  return Object.assign(codedError(Error, code, `${syscall} ${code}${hostname ? ` ${hostname}` : ""}`), { errno: undefined, syscall, hostname });
}

/** The options of lookup(), checked: { family, all, order }. */
export function readLookup(hostname, options) {
  if (hostname) requireString(hostname, "hostname");
  if (typeof options === "number") {
    if (!FAMILIES.includes(options)) throw oneOf("family", FAMILIES, options);
    return { family: options, all: false, order };
  }
  if (options !== undefined && typeof options !== "object") throw invalidArgument("options", "of type object or number", options);
  const { hints, family = 0, all = false, verbatim, order: own } = options ?? {};
  if (hints !== undefined && hints !== null) {
    if (typeof hints !== "number") throw invalidArgument("options.hints", "of type number", hints);
    if ((hints & ~(ADDRCONFIG | ALL | V4MAPPED)) !== 0) throw invalidValue("hints", hints);
  }
  const wanted = NAMES[family] ?? family ?? 0;
  if (!FAMILIES.includes(wanted)) throw oneOf("options.family", FAMILIES, family);
  if (all !== null && typeof all !== "boolean") throw invalidArgument("options.all", "of type boolean", all);
  if (verbatim !== undefined && verbatim !== null && typeof verbatim !== "boolean") throw invalidArgument("options.verbatim", "of type boolean", verbatim);
  if (own !== undefined && own !== null && !ORDERS.includes(own)) throw oneOf("options.order", ORDERS, own);
  return { family: wanted, all: Boolean(all), order: own ?? (verbatim === undefined || verbatim === null ? order : verbatim ? "verbatim" : "ipv4first") };
}

export async function lookupWith(hostname, { family, all, order: wanted }) {
  if (!hostname) return all ? [] : { address: null, family: family === 6 ? 6 : 4 };
  const kind = isIP(hostname);
  if (kind !== 0) return all ? [{ address: hostname, family: kind }] : { address: hostname, family: kind };
  const { meta } = await lookupName({ host: hostname });
  const found = meta.addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  const fitting = found.filter((each) => family === 0 || each.family === family);
  if (wanted !== "verbatim") fitting.sort((a, b) => (wanted === "ipv4first" ? a.family - b.family : b.family - a.family));
  if (fitting.length === 0) throw Object.assign(failed("getaddrinfo", NOTFOUND, hostname), { errno: -3008 });
  return all ? fitting : fitting[0];
}

export function lookup(hostname, options = undefined) {
  return lookupWith(hostname, readLookup(hostname, options));
}

export function lookupService(address, port) {
  if (isIP(address) === 0) throw invalidValue("address", address);
  requirePort(port);
  throw notImplemented("dns.lookupService");
}

async function ask(type, name, syscall, shape) {
  const { meta } = await resolveName({ host: name.replace(/\.$/, ""), type });
  if (meta.code !== "") throw failed(syscall, meta.code, name);
  return meta.records.map(shape);
}

function without(record) {
  const { ...rest } = record;
  delete rest.ttl;
  return rest;
}

const SHAPES = {
  A: (record, ttl) => (ttl ? { address: record.address, ttl: record.ttl } : record.address),
  AAAA: (record, ttl) => (ttl ? { address: record.address, ttl: record.ttl } : record.address),
  CNAME: ({ value }) => value,
  NS: ({ value }) => value,
  PTR: ({ value }) => value,
  TXT: ({ entries }) => entries,
  TLSA: ({ data, ...record }) => ({ ...without(record), data: Uint8Array.fromHex(data).buffer }),
};

/** Records of one type. */
function query(type, name, options = undefined) {
  requireString(name, "name");
  const syscall = `query${type[0]}${type === "A" || type === "AAAA" ? type.slice(1) : type.slice(1).toLowerCase()}`;
  const shape = SHAPES[type] ?? without;
  return ask(type, name, syscall, (record) => shape(record, options?.ttl === true));
}

export const resolve4 = (name, options) => query("A", name, options);
export const resolve6 = (name, options) => query("AAAA", name, options);
export const resolveCaa = (name) => query("CAA", name);
export const resolveCname = (name) => query("CNAME", name);
export const resolveMx = (name) => query("MX", name);
export const resolveNaptr = (name) => query("NAPTR", name);
export const resolveNs = (name) => query("NS", name);
export const resolvePtr = (name) => query("PTR", name);
export const resolveSrv = (name) => query("SRV", name);
export const resolveTlsa = (name) => query("TLSA", name);
export const resolveTxt = (name) => query("TXT", name);
export const resolveSoa = (name) => query("SOA", name).then(([record]) => record);

/** Servers no longer answer questions for all types at once (RFC 8482), so each type is asked for. */
export async function resolveAny(name) {
  requireString(name, "name");
  const types = ["A", "AAAA", "CAA", "CNAME", "MX", "NAPTR", "NS", "PTR", "SOA", "SRV", "TXT"];
  const found = await Promise.allSettled(types.map((type) => ask(type, name, "queryAny", (record) => ({ ...record, type }))));
  const records = found.flatMap(({ value }) => value ?? []);
  if (records.length === 0) throw found[0].reason;
  return records.map((record) => (["A", "AAAA"].includes(record.type) ? record : without(record)));
}

const TYPES = {
  A: resolve4, AAAA: resolve6, ANY: resolveAny, CAA: resolveCaa, CNAME: resolveCname, MX: resolveMx, NAPTR: resolveNaptr, NS: resolveNs,
  PTR: resolvePtr, SOA: resolveSoa, SRV: resolveSrv, TLSA: resolveTlsa, TXT: resolveTxt,
};

export function resolve(name, rrtype = "A") {
  requireString(rrtype, "rrtype");
  if (!Object.hasOwn(TYPES, rrtype)) throw invalidValue("rrtype", rrtype);
  return TYPES[rrtype](name);
}

function reverseName(ip) {
  if (isIPv4(ip)) return `${ip.split(".").reverse().join(".")}.in-addr.arpa`;
  const [head, tail] = ip.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const groups = tail === undefined ? head : [...head, ...Array(8 - head.length - tail.length).fill("0"), ...tail];
  return `${[...groups.map((group) => group.padStart(4, "0")).join("")].reverse().join(".")}.ip6.arpa`;
}

export async function reverse(ip) {
  requireString(ip, "name");
  if (isIP(ip) === 0 || ip.includes("%") || (isIPv6(ip) && ip.includes("."))) {
    throw Object.assign(failed("getHostByAddr", "EINVAL", ip), { errno: -22 });
  }
  return ask("PTR", reverseName(ip), "getHostByAddr", ({ value }) => value);
}

/** Empty: the servers are the operator's. */
export function getServers() {
  return [];
}

export function setServers(servers) {
  if (!Array.isArray(servers)) throw invalidArgument("servers", "an instance of Array", servers);
  throw notImplemented("dns.setServers");
}

export function getDefaultResultOrder() {
  return order;
}

export function setDefaultResultOrder(value) {
  if (!ORDERS.includes(value)) throw oneOf("dnsOrder", ORDERS, value);
  order = value;
}

/** https://nodejs.org/api/dns.html#class-dnspromisesresolver: all resolvers are the node's. */
export class Resolver {
  constructor(options = {}) {
    const { timeout = -1, tries = 4 } = options ?? {};
    if (!Number.isInteger(timeout)) throw invalidArgument("options.timeout", "of type number", timeout);
    if (!Number.isInteger(tries)) throw invalidArgument("options.tries", `of type number. Received ${describe(tries)}`, tries);
  }

  cancel() {}
  getServers() { return getServers(); }
  setServers(servers) { return setServers(servers); }
  setLocalAddress() { throw notImplemented("dns.Resolver.setLocalAddress"); }
}

const methods = {
  resolve, resolve4, resolve6, resolveAny, resolveCaa, resolveCname, resolveMx, resolveNaptr, resolveNs, resolvePtr, resolveSoa, resolveSrv,
  resolveTlsa, resolveTxt, reverse,
};
for (const [name, value] of Object.entries(methods)) Object.defineProperty(Resolver.prototype, name, { value, writable: true, configurable: true });
