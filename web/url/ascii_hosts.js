// Hosts such as xn--a, whose label is no valid Punycode.
//
// https://url.spec.whatwg.org/#concept-domain-to-ascii: since June 2026 an all-ASCII domain is only written in lower case. The parser
// is older and refuses such a host. It is given the URL with "xn--" replaced by four characters that no other part of it has, and
// they are put back into the host that it returns. Positions of parts stay the same.
import { native } from "../internal/native.js";

const PREFIX = /(^|\.)xn--/gi;
// Scheme or slashes, then credentials, then the host and port. White space at the start is ignored by the parser.
const AUTHORITY = /^([\0- ]*(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}(?:[^/\\?#]*@)?)([^/\\?#]*)/i;
const PLAIN = /^[!-$&-~]*$/; // ASCII, without "%", which may stand for anything

function tokenFor(...texts) {
  const all = texts.join("\n").toLowerCase();
  for (const letter of "qzwvkj") {
    for (let digit = 0; digit < 10; digit++) if (!all.includes(`${letter}${digit}--`)) return `${letter}${digit}--`;
  }
  return null;
}

/** The URL with a token in its host; undefined if its host is not one of these. */
function disguised(url, token) {
  const match = AUTHORITY.exec(url);
  if (match === null) return url;
  const [, before, host] = match;
  if (!PLAIN.test(host)) return undefined;
  return before + host.replace(PREFIX, `$1${token}`) + url.slice(before.length + host.length);
}

function restored(href, token, found) {
  if (href === undefined) return undefined;
  const host = href.slice(found[2], found[3]);
  return href.slice(0, found[2]) + host.replaceAll(token, "xn--") + href.slice(found[3]);
}

/** Like native.parseUrl, for what it refused. */
export function parseAgain(input, base, found) {
  const token = tokenFor(input, base ?? "");
  const url = token === null ? undefined : disguised(input, token);
  const from = token === null || base === undefined ? undefined : disguised(base, token);
  if (url === undefined || (base !== undefined && from === undefined)) return undefined;
  return restored(native.parseUrl(url, from, found), token, found);
}

/** Like native.setUrlPart, for what it refused. */
export function setAgain(href, part, value, isHost, found) {
  const token = tokenFor(href, value);
  const url = token === null ? undefined : disguised(href, token);
  if (url === undefined || (isHost && !PLAIN.test(value.split(/[/\\?#]/, 1)[0]))) return undefined;
  return restored(native.setUrlPart(url, part, isHost ? value.replace(PREFIX, `$1${token}`) : value, found), token, found);
}
