// https://w3c.github.io/FileAPI/#url: URLs for Blobs. They are valid in this isolate until they are revoked.
import { crypto } from "../crypto/crypto.js";
import { HeaderList } from "../fetch/header_list.js";
import { makeResponse } from "../fetch/response.js";
import { blobBytes, blobType, createBlob, isBlob } from "./blob.js";

const store = new Map(); // URL -> Blob

/** https://w3c.github.io/FileAPI/#dfn-createObjectURL. A worker has an opaque origin, which is serialized as "null". */
export function createObjectURL(object) {
  if (!isBlob(object)) throw new TypeError("URL.createObjectURL: the argument is not a Blob.");
  const url = `blob:null/${crypto.randomUUID()}`;
  store.set(url, createBlob(blobBytes(object), blobType(object)));
  return url;
}

/** https://w3c.github.io/FileAPI/#dfn-revokeObjectURL */
export function revokeObjectURL(url) {
  store.delete(url);
}

const withoutFragment = (url) => url.replace(/#.*$/, "");

/** https://url.spec.whatwg.org/#concept-url-blob-entry: the Blob that the URL currently names, or null. */
export function resolveBlobURL(url) {
  return store.get(withoutFragment(url)) ?? null;
}

/** https://fetch.spec.whatwg.org/#simple-range-header-value: { start, end }; one of them may be undefined. */
function parseRange(value) {
  const [, first, last] = /^bytes[\t ]*=[\t ]*(\d*)[\t ]*-[\t ]*(\d*)$/.exec(value) ?? [];
  const start = first ? Number(first) : undefined;
  const end = last ? Number(last) : undefined;
  const isWrong = (start === undefined && end === undefined) || start > end;
  if (isWrong) throw new TypeError("fetch: the Range header cannot be used with a blob: URL.");
  return { start, end };
}

/** https://fetch.spec.whatwg.org/#concept-scheme-fetch, for "blob". `range` is the value of the Range header, or null. */
export function fetchBlobURL(url, blob, method, range) {
  if (method !== "GET") throw new TypeError(`fetch: a blob: URL cannot be fetched with ${method}.`);
  if (blob === null) throw new TypeError("fetch: there is no such blob: URL, or it was revoked.");
  const bytes = blobBytes(blob);
  const answer = (status, statusText, content, more) => makeResponse({
    status,
    statusText,
    list: new HeaderList(["content-length", `${content.length}`, "content-type", blobType(blob), ...more]),
    url: withoutFragment(url),
    redirected: false,
    source: content.slice(),
  });
  if (range === null) return answer(200, "OK", bytes, []);
  let { start, end } = parseRange(range);
  if (start === undefined) {
    start = Math.max(bytes.length - end, 0);
    end = bytes.length - 1;
  } else if (start >= bytes.length) {
    throw new TypeError("fetch: the Range header begins after the end of the Blob.");
  }
  end = Math.min(end ?? Infinity, bytes.length - 1);
  const where = ["content-range", `bytes ${start}-${end}/${bytes.length}`];
  return answer(206, "Partial Content", bytes.subarray(start, end + 1), where);
}
