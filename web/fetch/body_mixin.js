// https://fetch.spec.whatwg.org/#body-mixin: what Request and Response have in common.
import { bodyArrayBuffer, bodyBlob, bodyBytes, bodyFormData, bodyJson, bodyText, bodyTextStream, isUsed, streamOf } from "./body.js";

/** Makes a method return a rejected promise instead of throwing, also if it is called on the wrong object. */
function promised(steps) {
  try {
    return steps();
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Adds the members of the mixin to `Class`. `bodyOf(object)` returns its Body or null and throws if it is not an object of the
 * class; `contentTypeOf(object)` returns the value of its Content-Type header or null.
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
