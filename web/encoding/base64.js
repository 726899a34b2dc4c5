// https://html.spec.whatwg.org/multipage/webappapis.html#atob
import { DOMException } from "../dom/exception.js";
import { native } from "../internal/native.js";
import { requireArguments, toDOMString } from "../internal/webidl.js";

/** https://html.spec.whatwg.org/multipage/webappapis.html#dom-atob */
export function atob(data) {
  requireArguments(arguments.length, 1, "atob");
  const decoded = native.atob(toDOMString(data));
  if (decoded === undefined) throw new DOMException("atob() called with invalid base64-encoded data. (Only whitespace, '+', '/', alphanumeric ASCII, and up to two terminal '=' signs when the input data length is divisible by 4 are allowed.)", "InvalidCharacterError");
  return decoded;
}

/** https://html.spec.whatwg.org/multipage/webappapis.html#dom-btoa */
export function btoa(data) {
  requireArguments(arguments.length, 1, "btoa");
  const encoded = native.btoa(toDOMString(data));
  if (encoded === undefined) {
    throw new DOMException("btoa() can only operate on characters in the Latin1 (ISO/IEC 8859-1) range.", "InvalidCharacterError");
  }
  return encoded;
}
