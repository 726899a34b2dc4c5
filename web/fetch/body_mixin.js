// https://fetch.spec.whatwg.org/#body-mixin: what Request and Response have in common.
import { bodyArrayBuffer, bodyBlob, bodyBytes, bodyFormData, bodyJson, bodyText, bodyTextStream, isUsed, streamOf } from "./body.js";

/**
 * Give `Class` the members of the mixin. `bodyOf(object)` gives its Body or null and throws if it is no object of the class;
 * `contentTypeOf(object)` gives the value of its Content-Type header or null.
 */
export function includeBody(Class, bodyOf, contentTypeOf) {
  // Asynchronous functions, since a method that returns a promise also tells so that it was called on the wrong object.
  const members = {
    get body() {
      const body = bodyOf(this);
      return body === null ? null : streamOf(body);
    },

    get bodyUsed() {
      return isUsed(bodyOf(this));
    },

    async arrayBuffer() {
      return bodyArrayBuffer(bodyOf(this));
    },

    async blob() {
      return bodyBlob(bodyOf(this), contentTypeOf(this));
    },

    async bytes() {
      return bodyBytes(bodyOf(this));
    },

    async formData() {
      return bodyFormData(bodyOf(this), contentTypeOf(this));
    },

    async json() {
      return bodyJson(bodyOf(this));
    },

    async text() {
      return bodyText(bodyOf(this));
    },

    textStream() {
      return bodyTextStream(bodyOf(this));
    },
  };
  Object.defineProperties(Class.prototype, Object.getOwnPropertyDescriptors(members));
}
