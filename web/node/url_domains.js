// Names of hosts in ASCII and Unicode. https://nodejs.org/api/url.html#urldomaintoasciidomain
import { URL } from "../url/url.js";
import { codedError } from "./errors.js";
import { toUnicode } from "./punycode.js";

/** "" for an invalid name. */
export function domainToASCII(domain) {
  if (arguments.length === 0) throw missingDomain();
  try {
    return new URL(`ws://${domain}`).hostname;
  } catch {
    return "";
  }
}

export function domainToUnicode(domain) {
  if (arguments.length === 0) throw missingDomain();
  return toUnicode(domainToASCII(domain));
}

function missingDomain() {
  return codedError(TypeError, "ERR_MISSING_ARGS", 'The "domain" argument must be specified');
}
