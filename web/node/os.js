// https://nodejs.org/api/os.html: fixed values, because a worker does not see its machine.
import { Buffer } from "./buffer.js";
import { invalidValue } from "./errors.js";
import { dlopen, errno, priority, signals, UV_UDP_REUSEADDR } from "./os_constants.js";
import { requireInteger, requireOptions } from "./validate.js";

export const EOL = "\n";
export const devNull = "/dev/null";
export const constants = Object.freeze({ __proto__: null, UV_UDP_REUSEADDR, dlopen, errno, priority, signals });

export const arch = () => "x64";
export const availableParallelism = () => 1;
export const cpus = () => [];
export const endianness = () => "LE";
export const freemem = () => 0;
export const homedir = () => "/tmp/";
export const hostname = () => "localhost";
export const loadavg = () => [0, 0, 0];
export const machine = () => "x86_64";
export const networkInterfaces = () => ({});
export const platform = () => "linux";
export const release = () => "";
export const tmpdir = () => "/tmp/";
export const totalmem = () => 0;
export const type = () => "Linux";
export const uptime = () => 0;
export const version = () => "";

for (const each of [arch, endianness, freemem, homedir, hostname, machine, platform, release, tmpdir, totalmem, type, uptime, version]) {
  each[Symbol.toPrimitive] = () => each();
}

const requireInt32 = (value, name, min = -2147483648, max = 2147483647) => requireInteger(value, name, min, max);

/** The user of a worker has no name. */
export function userInfo(options = {}) {
  requireOptions(options, "options");
  const { encoding = "utf8" } = options;
  if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw invalidValue("options.encoding", encoding);
  return {};
}

export function getPriority(pid = 0) {
  requireInt32(pid, "pid");
  return 0;
}

export function setPriority(pid, value = undefined) {
  const [process, wanted] = value === undefined ? [0, pid] : [pid, value];
  requireInt32(process, "pid");
  requireInt32(wanted, "priority", -20, 19);
}
