// https://fetch.spec.whatwg.org/#body-mixin: what Request and Response have in common.
import { bodyArrayBuffer, bodyBlob, bodyBytes, bodyFormData, bodyJson, bodyText, bodyTextStream, isUsed, streamOf } from "./body.js";

/** A method that returns a promise also tells so that it was called on the wrong object, and at once. */
function promised(steps) {
  try {
    return steps();
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Give `Class` the members of the mixin. `bodyOf(object)` gives its Body or null and throws if it is no object of the class;
 * `contentTypeOf(object)` gives the value of its Content-Type header or null.
 */
export function includeBody(Class, bodyOf, contentTypeOf) {
  const members = {
    get body() {
      const body = bodyOf(this);
      return body === null ? null : streamOf(body);
    },

    get bodyUsed() {
      return isUsed(bodyOf(this));
    },

    arrayBuffer() {
      return promised(() => bodyArrayBuffer(bodyOf(this)));
    },

    blob() {
      return promised(() => bodyBlob(bodyOf(this), contentTypeOf(this)));
    },

    bytes() {
      return promised(() => bodyBytes(bodyOf(this)));
    },

    formData() {
      return promised(() => bodyFormData(bodyOf(this), contentTypeOf(this)));
    },

    json() {
      return promised(() => bodyJson(bodyOf(this)));
    },

    text() {
      return promised(() => bodyText(bodyOf(this)));
    },

    textStream() {
      return bodyTextStream(bodyOf(this));
    },
  };
  Object.defineProperties(Class.prototype, Object.getOwnPropertyDescriptors(members));
}
