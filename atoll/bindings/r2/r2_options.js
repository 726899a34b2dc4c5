// Options of the methods of an R2 bucket, checked as Cloudflare checks them and in the form that ops.py reads.
import { isBufferSource, bytesOf, toUSVString } from "#web/internal/webidl.js";
import { isHeaders } from "#web/fetch/headers.js";

const HEADER_OF = {
  contentType: "content-type",
  contentLanguage: "content-language",
  contentDisposition: "content-disposition",
  contentEncoding: "content-encoding",
  cacheControl: "cache-control",
};
const DIGESTS = [
  ["md5", "MD5", 16],
  ["sha1", "SHA-1", 20],
  ["sha256", "SHA-256", 32],
  ["sha384", "SHA-384", 48],
  ["sha512", "SHA-512", 64],
];
const INCLUDES = ["httpMetadata", "customMetadata"];
const ETAG = /\s*(?:(\*)|(W\/)?"([^"]*)")\s*(?:,|$)|\s*,/y;

export const given = (value) => value !== undefined && value !== null;

/** Milliseconds since 1970 of a Date, or of what one can be made of. */
function timeOf(value, name) {
  const time = value instanceof Date ? value.getTime() : new Date(value).getTime();
  if (Number.isNaN(time)) throw new TypeError(`${name} is not a valid date.`);
  return time;
}

function refuseSsec(options) {
  if (given(options.ssecKey)) {
    throw new TypeError("ssecKey is not supported: Atoll does not encrypt objects with keys of the worker. Encrypt the data before put().");
  }
}

// Conditions

function oneEtag(value) {
  const etag = toUSVString(value);
  if (etag.length > 1 && etag.startsWith('"') && etag.endsWith('"')) {
    throw new TypeError(`Conditional ETag should not be wrapped in quotes (${etag}).`);
  }
  return [[etag, false]];
}

/** The tags of an If-Match or If-None-Match header, as [value, is weak]. */
function etagsOf(header) {
  const found = [];
  ETAG.lastIndex = 0;
  while (ETAG.lastIndex < header.length) {
    const at = ETAG.lastIndex;
    const match = ETAG.exec(header);
    if (match === null) {
      if (header.slice(at).trim() === "") break;
      throw new Error(`The conditional header has a tag that is not valid at: ${header.slice(at, at + 40)}`);
    }
    if (match[1] !== undefined) return [["*", false]];
    if (match[3] !== undefined) found.push([match[3], match[2] !== undefined]);
  }
  return found;
}

export function onlyIfOf(onlyIf) {
  if (!given(onlyIf)) return undefined;
  if (isHeaders(onlyIf)) return conditionOfHeaders(onlyIf);
  const { etagMatches, etagDoesNotMatch, uploadedBefore, uploadedAfter, secondsGranularity } = onlyIf;
  return {
    etagMatches: given(etagMatches) ? oneEtag(etagMatches) : undefined,
    etagDoesNotMatch: given(etagDoesNotMatch) ? oneEtag(etagDoesNotMatch) : undefined,
    uploadedBefore: given(uploadedBefore) ? timeOf(uploadedBefore, "uploadedBefore") : undefined,
    uploadedAfter: given(uploadedAfter) ? timeOf(uploadedAfter, "uploadedAfter") : undefined,
    secondsGranularity: Boolean(secondsGranularity),
  };
}

function conditionOfHeaders(headers) {
  const read = (name, convert) => {
    const value = headers.get(name);
    return value === null ? undefined : convert(value, name);
  };
  return {
    etagMatches: read("if-match", etagsOf),
    etagDoesNotMatch: read("if-none-match", etagsOf),
    uploadedAfter: read("if-modified-since", timeOf),
    uploadedBefore: read("if-unmodified-since", timeOf),
    secondsGranularity: true,
  };
}

// Ranges

function amountOf(value, what, name) {
  const amount = Number(value);
  if (!(amount >= 0)) throw new RangeError(`Invalid ${what}. ${name} (${amount}) must be greater than or equal to 0.`);
  if (!Number.isInteger(amount)) {
    throw new RangeError(`Invalid range. ${name} (${amount}) must be an integer, not floating point.`);
  }
  return Math.min(amount, Number.MAX_SAFE_INTEGER);
}

export function rangeOf(range) {
  if (!given(range)) return undefined;
  if (isHeaders(range)) return range.get("range") ?? undefined;
  const { offset, length, suffix } = range;
  const found = {};
  if (given(offset)) found.offset = amountOf(offset, "range", "Starting offset");
  if (given(length)) found.length = amountOf(length, "range", "Length");
  if (given(suffix)) {
    if (given(offset)) throw new TypeError("Suffix is incompatible with offset.");
    if (given(length)) throw new TypeError("Suffix is incompatible with length.");
    found.suffix = amountOf(suffix, "suffix", "Suffix");
  }
  return found;
}

// Metadata

function httpOf(metadata) {
  if (!given(metadata)) return undefined;
  const http = {};
  const isList = isHeaders(metadata);
  for (const [name, header] of Object.entries(HEADER_OF)) {
    const value = isList ? metadata.get(header) : metadata[name];
    if (given(value)) http[name] = toUSVString(value);
  }
  const expiry = isList ? metadata.get("expires") : metadata.cacheExpiry;
  if (given(expiry)) http.cacheExpiry = timeOf(expiry, "cacheExpiry");
  return http;
}

function customOf(metadata) {
  if (!given(metadata)) return undefined;
  const custom = { __proto__: null };
  for (const [name, value] of Object.entries(metadata)) custom[toUSVString(name)] = toUSVString(value);
  return custom;
}

export function metadataOf(options) {
  refuseSsec(options);
  const { httpMetadata, customMetadata, storageClass } = options;
  return {
    http: httpOf(httpMetadata),
    custom: customOf(customMetadata),
    storageClass: given(storageClass) ? toUSVString(storageClass) : undefined,
  };
}

/** Writes HTTP metadata into headers, under the names they have there. */
export function writeHttp(http, headers) {
  for (const [name, header] of Object.entries(HEADER_OF)) {
    if (http[name] !== undefined) headers.set(header, http[name]);
  }
  if (http.cacheExpiry !== undefined) headers.set("expires", http.cacheExpiry.toUTCString());
}

// Hashes

function hexOf(value, label, size) {
  if (isBufferSource(value)) {
    const bytes = bytesOf(value);
    if (bytes.length !== size) throw new TypeError(`${label} is ${size} bytes, not ${bytes.length}`);
    return bytes.toHex();
  }
  const hex = `${value}`;
  if (hex.length !== 2 * size) throw new TypeError(`${label} is ${2 * size} hex characters, not ${hex.length}`);
  if (!/^[0-9a-f]*$/i.test(hex)) throw new TypeError(`Provided ${label} wasn't a valid hex string`);
  return hex.toLowerCase();
}

function hashOf(options) {
  let found;
  for (const [name, label, size] of DIGESTS) {
    if (!given(options[name])) continue;
    if (found !== undefined) throw new TypeError("You cannot specify multiple hashing algorithms.");
    found = [name, hexOf(options[name], label, size)];
  }
  return found;
}

export function putOptions(options) {
  if (!given(options)) return {};
  return { onlyIf: onlyIfOf(options.onlyIf), ...metadataOf(options), hash: hashOf(options) };
}

export function getOptions(options) {
  if (!given(options)) return {};
  refuseSsec(options);
  return { onlyIf: onlyIfOf(options.onlyIf), range: rangeOf(options.range) };
}

/** Options of list(). `limit` is sent as it is if it is a whole number, else as a text that Python refuses. */
export function listOptions(options) {
  const { prefix, delimiter, cursor, startAfter, limit, include } = options ?? {};
  const text = (value) => (given(value) ? toUSVString(value) : undefined);
  const names = given(include) ? Array.from(include, toUSVString) : [];
  for (const name of names) {
    if (!INCLUDES.includes(name)) throw new RangeError(`Unsupported include value ${name}`);
  }
  const number = given(limit) ? Number(limit) : undefined;
  return {
    prefix: text(prefix),
    delimiter: text(delimiter),
    cursor: text(cursor),
    startAfter: text(startAfter),
    limit: number === undefined || Number.isSafeInteger(number) ? number : `${number}`,
    include: names,
  };
}
