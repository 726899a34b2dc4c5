// https://fetch.spec.whatwg.org/#data-url-processor
import { HeaderList } from "./header_list.js";
import { parseMimeType, serializeMimeType } from "./mime_type.js";
import { makeResponse } from "./response.js";
import { native } from "../internal/native.js";
import { ASCII_WHITESPACE, strip } from "../internal/text.js";

/** https://url.spec.whatwg.org/#string-percent-decode, for an ASCII string, which every parsed URL is. */
function percentDecode(text) {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}

function toBytes(binary) {
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The response for a `data:` URL that is already parsed and serialized. */
export function fetchDataURL(url, method) {
  const hash = url.indexOf("#");
  const input = url.slice("data:".length, hash === -1 ? undefined : hash);
  const comma = input.indexOf(",");
  if (comma === -1) throw new TypeError("fetch: the data: URL has no comma.");
  let type = strip(input.slice(0, comma), ASCII_WHITESPACE);
  let content = percentDecode(input.slice(comma + 1));
  const base64 = /;\u0020*base64$/i.exec(type);
  if (base64 !== null) {
    content = native.atob(content);
    if (content === undefined) throw new TypeError("fetch: the data: URL is not correctly encoded in base64.");
    type = type.slice(0, base64.index);
  }
  if (type.startsWith(";")) type = `text/plain${type}`;
  const mime = parseMimeType(type);
  const header = mime === null ? "text/plain;charset=US-ASCII" : serializeMimeType(mime);
  return makeResponse({
    status: 200,
    statusText: "OK",
    list: new HeaderList(["content-type", header]),
    url: hash === -1 ? url : url.slice(0, hash),
    redirected: false,
    source: method === "HEAD" ? null : toBytes(content),
  });
}
