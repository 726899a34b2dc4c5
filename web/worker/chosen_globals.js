// Globals that a worker has or lacks by its compatibility date and flags.
import { Headers } from "../fetch/headers.js";
import { lazy } from "../internal/lazy.js";
import { createTransform } from "../streams/streams.js";
import { WorkerGlobalScope } from "../dom/worker_global_scope.js";
import { Navigator } from "../navigator.js";
import { isOn } from "./compatibility.js";

/** A constructor that cannot be called; instances of the platform still belong to it. */
function closeConstructor(scope, name, flag) {
  const Original = scope[name];
  const text =
    `To use the new ${name}() constructor, enable the ${flag} compatibility flag. Refer to the docs for more information: ` +
    "https://developers.cloudflare.com/workers/platform/compatibility-dates/#compatibility-flags";
  replace(scope, name, new Proxy(Original, { construct() { throw new Error(text); } }));
}

function replace(scope, name, value) {
  const constructor = { value, writable: true, enumerable: false, configurable: true };
  Object.defineProperty(value.prototype, "constructor", constructor);
  Object.defineProperty(scope, name, constructor);
}

/** Before 2022-11-30 a TransformStream passed bytes on unchanged, and its constructor took no transformer. */
function identityTransforms(scope) {
  const make = (Original, args, newTarget) => {
    const { readable, writable } = lazy("streams/identity.js").createIdentity();
    return Object.setPrototypeOf(createTransform(readable, writable), newTarget.prototype);
  };
  replace(scope, "TransformStream", new Proxy(scope.TransformStream, { construct: make }));
}

/** Called when an isolate gets its worker. Everything is there at first, so a worker of today needs no change. */
export function chooseGlobals(scope) {
  const members = WorkerGlobalScope.prototype;
  if (!isOn("global_navigator")) delete members.navigator;
  if (!isOn("enable_navigator_language")) {
    delete Navigator.prototype.language;
    delete Navigator.prototype.languages;
  }
  if (!isOn("enable_weak_ref")) {
    delete scope.WeakRef;
    delete scope.FinalizationRegistry;
  }
  if (!isOn("expose_global_message_channel")) {
    delete scope.MessageChannel;
    delete scope.MessagePort;
  }
  if (!isOn("http_headers_getsetcookie")) delete Headers.prototype.getSetCookie;
  if (!isOn("no_global_importscripts")) {
    const importScripts = () => {
      throw new Error("importScripts() is not implemented.");
    };
    Object.defineProperty(members, "importScripts", { value: importScripts, writable: true, enumerable: true, configurable: true });
  }
  if (!isOn("streams_enable_constructors")) {
    closeConstructor(scope, "ReadableStream", "streams_enable_constructors");
    closeConstructor(scope, "WritableStream", "streams_enable_constructors");
  }
  if (!isOn("transformstream_enable_standard_constructor")) identityTransforms(scope);
}
