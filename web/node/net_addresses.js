// https://nodejs.org/api/net.html: addresses, and lists of them.
import { codedError, describe, invalidArgument, invalidValue, outOfRange, requireObject } from "./errors.js";

const V4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const GROUP = /^[\da-f]{1,4}$/i;
const ZONE = /^[\w.:-]+$/;
const ANY = "::";
const FAMILIES = ["ipv4", "ipv6"];

export function isIPv4(text) {
  return V4.test(`${text}`);
}

export function isIPv6(text) {
  const [address, zone, ...more] = `${text}`.split("%");
  if (more.length > 0 || (zone !== undefined && !ZONE.test(zone))) return false;
  const halves = address.split("::");
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  const last = groups.at(-1);
  const hasV4 = last !== undefined && last.includes(".");
  if (hasV4 && (!isIPv4(last) || address.endsWith("::"))) return false;
  const count = groups.length + (hasV4 ? 1 : 0);
  return groups.slice(0, hasV4 ? -1 : undefined).every((group) => GROUP.test(group)) && (halves.length === 2 ? count < 8 : count === 8);
}

export function isIP(text) {
  if (isIPv4(text)) return 4;
  return isIPv6(text) ? 6 : 0;
}

/** https://nodejs.org/api/errors.html#err_socket_bad_port */
export function requirePort(port, name = "Port") {
  const isText = typeof port === "string" && port.trim() !== "";
  const number = typeof port === "number" || isText ? +port : NaN;
  if (number !== number >>> 0 || number > 65535) {
    throw codedError(RangeError, "ERR_SOCKET_BAD_PORT", `${name} should be >= 0 and < 65536. Received ${describe(port)}.`);
  }
  return number;
}

export function invalidAddress(address) {
  return codedError(TypeError, "ERR_INVALID_IP_ADDRESS", `Invalid IP address: ${address}`);
}

function requireFamily(family, name) {
  const lower = `${family?.toLowerCase?.() ?? family}`;
  if (!FAMILIES.includes(lower)) throw invalidValue(name, family);
  return lower;
}

/** https://nodejs.org/api/net.html#class-netsocketaddress */
export class SocketAddress {
  #address;
  #port;
  #family;
  #flowlabel;

  constructor(options = {}) {
    requireObject(options, "options");
    const { family = "ipv4", port = 0, flowlabel = 0 } = options;
    this.#family = requireFamily(family, "options.family");
    const { address = this.#family === "ipv4" ? "127.0.0.1" : ANY } = options;
    if (typeof address !== "string") throw invalidArgument("options.address", "of type string", address);
    this.#port = requirePort(port, "options.port");
    if (typeof flowlabel !== "number") throw invalidArgument("options.flowlabel", "of type number", flowlabel);
    if (!(flowlabel >= 0 && flowlabel <= 0xffffffff)) throw outOfRange("options.flowlabel", ">= 0 && <= 4294967295", flowlabel);
    if (!(this.#family === "ipv4" ? isIPv4(address) : isIPv6(address))) {
      throw codedError(Error, "ERR_INVALID_ADDRESS", "Invalid socket address");
    }
    this.#address = address;
    this.#flowlabel = flowlabel;
  }

  get address() {
    return this.#address;
  }

  get port() {
    return this.#port;
  }

  get family() {
    return this.#family;
  }

  get flowlabel() {
    return this.#family === "ipv4" ? 0 : this.#flowlabel;
  }

  toJSON() {
    return { address: this.address, port: this.port, family: this.family, flowlabel: this.flowlabel };
  }

  static isSocketAddress(value) {
    return typeof value === "object" && value !== null && #address in value;
  }

  /** An address with an optional port; undefined if it is none. */
  static parse(input) {
    if (typeof input !== "string") throw invalidArgument("input", "of type string", input);
    const found = /^(?:\[([^\]]+)\]|([\d.]+))(?::(\d{1,5}))?$/.exec(input);
    if (found === null) return undefined;
    const [, v6, v4, port = "0"] = found;
    if (Number(port) > 65535 || !(v6 === undefined ? isIPv4(v4) : isIPv6(v6))) return undefined;
    return new SocketAddress({ address: v6 ?? v4, port: Number(port), family: v6 === undefined ? "ipv4" : "ipv6" });
  }
}

/** An address as a number, to compare it. */
function numberOf(address, family) {
  if (family === "ipv4") return address.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const text = address.split("%")[0].replace(/[\d.]+$/, (v4) => {
    if (!v4.includes(".")) return v4;
    const [a, b, c, d] = v4.split(".").map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [before, after] = text.split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === undefined || after === "" ? [] : after.split(":");
  const groups = after === undefined ? head : [...head, ...Array(8 - head.length - tail.length).fill("0"), ...tail];
  return groups.reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n);
}

const MAPPED = 0xffffn << 32n; // ::ffff:0:0/96

const NAMES = { ipv4: "IPv4", ipv6: "IPv6" };

/** https://nodejs.org/api/net.html#class-netblocklist */
export class BlockList {
  #rules = []; // { family, from, to, text }, the newest first

  static isBlockList(value) {
    return typeof value === "object" && value !== null && #rules in value;
  }

  #read(address, family, name) {
    if (SocketAddress.isSocketAddress(address)) return { text: address.address, family: address.family };
    if (typeof address !== "string") throw invalidArgument(name, "of type string", address);
    const kind = requireFamily(family, "family");
    if (!(kind === "ipv4" ? isIPv4(address) : isIPv6(address))) throw invalidAddress(address);
    return { text: address, family: kind };
  }

  addAddress(address, family = "ipv4") {
    const read = this.#read(address, family, "address");
    const number = numberOf(read.text, read.family);
    this.#rules.unshift({ family: read.family, from: number, to: number, text: `Address: ${NAMES[read.family]} ${read.text}` });
  }

  addRange(start, end, family = "ipv4") {
    const first = this.#read(start, family, "start");
    const last = this.#read(end, family, "end");
    const from = numberOf(first.text, first.family);
    const to = numberOf(last.text, last.family);
    if (from > to) throw invalidValue("start", start, `must come before ${last.text}`);
    this.#rules.unshift({ family: first.family, from, to, text: `Range: ${NAMES[first.family]} ${first.text}-${last.text}` });
  }

  addSubnet(network, prefix, family = "ipv4") {
    const read = this.#read(network, family, "network");
    const bits = read.family === "ipv4" ? 32 : 128;
    if (typeof prefix !== "number") throw invalidArgument("prefix", "of type number", prefix);
    if (!Number.isInteger(prefix)) throw outOfRange("prefix", "an integer", prefix);
    if (!(prefix >= 0 && prefix <= bits)) throw outOfRange("prefix", `>= 0 && <= ${bits}`, prefix);
    const size = 1n << BigInt(bits - prefix);
    const from = (numberOf(read.text, read.family) / size) * size;
    this.#rules.unshift({ family: read.family, from, to: from + size - 1n, text: `Subnet: ${NAMES[read.family]} ${read.text}/${prefix}` });
  }

  check(address, family = "ipv4") {
    let read;
    try {
      read = this.#read(address, family, "address");
    } catch (error) {
      if (error.code === "ERR_INVALID_IP_ADDRESS") return false;
      throw error;
    }
    const number = numberOf(read.text, read.family);
    const isMapped = read.family === "ipv6" && number >> 32n === MAPPED >> 32n;
    return this.#rules.some(
      (rule) =>
        (rule.family === read.family && number >= rule.from && number <= rule.to) ||
        (isMapped && rule.family === "ipv4" && number - MAPPED >= rule.from && number - MAPPED <= rule.to),
    );
  }

  get rules() {
    return this.#rules.map(({ text }) => text);
  }

  toJSON() {
    return this.rules;
  }

  fromJSON(data) {
    const rules = typeof data === "string" ? JSON.parse(data) : data;
    if (!Array.isArray(rules)) throw invalidArgument("data", "an instance of Array or of type string", data);
    for (const rule of rules) {
      const found = /^(Address|Range|Subnet): (IPv4|IPv6) ([^-/]+)(?:[-/](.+))?$/.exec(rule);
      if (found === null) throw invalidValue("data", rule);
      const [, kind, family, first, second] = found;
      const lower = family.toLowerCase();
      if (kind === "Address") this.addAddress(first, lower);
      else if (kind === "Range") this.addRange(first, second, lower);
      else this.addSubnet(first, Number(second), lower);
    }
  }
}
