// https://html.spec.whatwg.org/multipage/webappapis.html#atob
import { DOMException } from "../dom/exception.js";
import { native } from "../internal/native.js";
import { requireArguments, toDOMString } from "../internal/webidl.js";

/** https://html.spec.whatwg.org/multipage/webappapis.html#dom-atob */
export function atob(data) {
  requireArguments(arguments.length, 1, "atob");
  const decoded = native.atob(toDOMString(data));
  if (decoded === undefined) throw new DOMException("The string is not correctly encoded.", "InvalidCharacterError");
  return decoded;
}

/** https://html.spec.whatwg.org/multipage/webappapis.html#dom-btoa */
export function btoa(data) {
  requireArguments(arguments.length, 1, "btoa");
  const encoded = native.btoa(toDOMString(data));
  if (encoded === undefined) {
    throw new DOMException("The string has characters above U+00FF.", "InvalidCharacterError");
  }
  return encoded;
}
