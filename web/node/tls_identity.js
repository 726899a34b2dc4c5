// https://nodejs.org/api/tls.html#tlscheckserveridentityhostname-cert: whether a certificate is for a host.
import { codedError } from "./errors.js";
import { isIP } from "./net_addresses.js";

const withoutDot = (host) => (host.endsWith(".") ? host.slice(0, -1) : host);
const split = (host) => withoutDot(host).replace(/[A-Z]/g, (letter) => letter.toLowerCase()).split(".");
const isOdd = (part) => part === "" || !/^[\x21-\x7e]*$/.test(part);

/** https://www.rfc-editor.org/rfc/rfc6125#section-6.4: one wildcard in the first label, and not in an A-label. */
function matches(host, pattern) {
  if (!pattern) return false;
  const parts = split(pattern);
  if (parts.length !== host.length || parts.some(isOdd) || host.some(isOdd)) return false;
  if (parts.some((part, i) => i > 0 && part !== host[i])) return false;
  const pieces = parts[0].split("*");
  if (pieces.length === 1 || parts[0].includes("xn--")) return host[0] === parts[0];
  if (pieces.length > 2 || parts.length <= 2) return false;
  const [prefix, suffix] = pieces;
  return prefix.length + suffix.length <= host[0].length && host[0].startsWith(prefix) && host[0].endsWith(suffix);
}

function refusalOf(host, certificate) {
  const { subject, subjectaltname: names } = certificate;
  const alternatives = names ? names.split(", ") : [];
  const hosts = alternatives.filter((name) => name.startsWith("DNS:")).map((name) => name.slice(4));
  const addresses = alternatives.filter((name) => name.startsWith("IP Address:")).map((name) => name.slice(11)).filter(isIP);
  if (isIP(host)) {
    return addresses.includes(host) ? null : `IP: ${host} is not in the cert's list: ${addresses.join(", ")}`;
  }
  const parts = split(host);
  if (hosts.length > 0) {
    return hosts.some((name) => matches(parts, name)) ? null : `Host: ${host}. is not in the cert's altnames: ${names}`;
  }
  const common = subject?.CN;
  if (!common) return "Cert does not contain a DNS name";
  return [common].flat().some((name) => matches(parts, name)) ? null : `Host: ${host}. is not cert's CN: ${common}`;
}

export function checkServerIdentity(hostname, certificate) {
  const host = withoutDot(`${hostname}`);
  const reason = refusalOf(host, certificate);
  if (reason === null) return undefined;
  const error = codedError(Error, "ERR_TLS_CERT_ALTNAME_INVALID", `Hostname/IP does not match certificate's altnames: ${reason}`);
  return Object.assign(error, { reason, host, cert: certificate });
}
