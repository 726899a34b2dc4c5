// https://fetch.spec.whatwg.org/#dom-body-formdata: reads a body as a form.
import { extractMimeType } from "./mime_type.js";
import { lazy } from "../internal/lazy.js";
import { decodeTextKeepingMark } from "../internal/text.js";
import { toUSVString } from "../internal/webidl.js";
import { parseFormUrlencoded } from "../url/form_urlencoded.js";

const UTF8 = [undefined, "utf-8", "utf8"];
const MOST_FIELDS = 100_000; // of a urlencoded form

/** The entries of the form in a body, as a flat list. `asBytes` turns the content of a body into bytes. */
export function parseForm(content, contentType, asBytes) {
  if (contentType === null) throw new TypeError("Parsing a Body as FormData requires a Content-Type header.");
  const mime = extractMimeType(contentType);
  if (mime?.essence === "multipart/form-data") {
    return lazy("file/multipart.js").parseMultipart(asBytes(content), mime.parameters.get("boundary"));
  }
  if (mime?.essence === "application/x-www-form-urlencoded") {
    if (!UTF8.includes(mime.parameters.get("charset")?.toLowerCase())) {
      throw new TypeError("Non-utf-8 application/x-www-form-urlencoded body.");
    }
    return parseFields(content);
  }
  throw new TypeError(
    "Unrecognized Content-Type header value. FormData can only parse the following MIME types: " +
      "multipart/form-data, application/x-www-form-urlencoded",
  );
}

function parseFields(content) {
  const text = typeof content === "string" ? toUSVString(content) : decodeTextKeepingMark(content);
  let fields = 1;
  for (let at = text.indexOf("&"); at !== -1; at = text.indexOf("&", at + 1)) {
    if (++fields > MOST_FIELDS) throw new TypeError("formData(): the form has more than 100,000 fields.");
  }
  return parseFormUrlencoded(text);
}
