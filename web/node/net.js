// https://nodejs.org/api/net.html: the functions about addresses. A worker opens no sockets.
import { unavailable } from "./unavailable.js";

const V4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const GROUP = /^[\da-f]{1,4}$/i;

export function isIPv4(text) {
  return V4.test(`${text}`);
}

export function isIPv6(text) {
  const [address, zone, ...more] = `${text}`.split("%");
  if (more.length > 0 || zone === "") return false;
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

export const { connect, createConnection, createServer, Server, Socket } = unavailable("net", [
  "connect", "createConnection", "createServer", "Server", "Socket",
]);
