// Hides the internals of the streams library from workers.
//
// The library keeps its state in properties such as _state and _reader. Workers could see and change them, and would come to rely
// on them. This plugin turns each into a private symbol of V8 while the library is bundled: as fast as a property, and invisible
// to everything that lists, copies or proxies an object. V8 does not look up private symbols on prototypes, so six methods of
// controllers, which the standard calls [[PullSteps]] and so on, use symbols of the language.
import { readFile } from "node:fs/promises";
import { PATCH_HELPERS, patchStreams } from "./stream_patches.mjs";

// Properties that the library sets on objects that workers hold.
const INTERNALS = `
  _abortAlgorithm _abortController _abortReason _associatedReadableByteStreamController _asyncIteratorImpl
  _autoAllocateChunkSize _backpressure _backpressureChangePromise _backpressureChangePromise_resolve _byobRequest
  _byteLengthQueuingStrategyHighWaterMark _cancelAlgorithm _closeAlgorithm _closeRequest _closeRequested _closedPromise
  _closedPromiseState _closedPromise_reject _closedPromise_resolve _controlledReadableByteStream _controlledReadableStream
  _controlledTransformStream _controlledWritableStream _countQueuingStrategyHighWaterMark _disturbed _finishPromise
  _finishPromise_reject _finishPromise_resolve _flushAlgorithm _inFlightCloseRequest _inFlightWriteRequest
  _ownerReadableStream _ownerWritableStream _pendingAbortRequest _pendingPullIntos _pullAgain _pullAlgorithm _pulling
  _queue _queueTotalSize _readIntoRequests _readRequests _readable _readableStreamController _reader _readyPromise
  _readyPromiseState _readyPromise_reject _readyPromise_resolve _started _state _storedError _strategyHWM
  _strategySizeAlgorithm _transformAlgorithm _transformStreamController _view _writable _writableStreamController
  _writeAlgorithm _writeRequests _writer
`.trim().split(/\s+/);

// Those of them that the platform itself reads.
const EXPORTED = [
  "_associatedReadableByteStreamController", "_closeRequest", "_controlledReadableByteStream", "_disturbed", "_inFlightCloseRequest", "_inFlightWriteRequest",
  "_ownerWritableStream", "_pendingPullIntos", "_queue", "_queueTotalSize", "_readable", "_readableStreamController", "_state",
  "_writable", "_writableStreamController", "_writeRequests", "_writer",
];

const ANY = INTERNALS.toSorted((a, b) => b.length - a.length).join("|");
// Every isolate holds the source, so the variables for the symbols have short names.
const symbolOf = (name) => `$$${INTERNALS.indexOf(name).toString(36)}`;

// https://streams.spec.whatwg.org/#readable-stream-pipe-to: a chunk is not written while its producer is still in enqueue().
const WRITE_OF_PIPE = /(_chunkSteps\(\w\)\{)(this\._state\._currentWrite=[^{}]*)\}/;

function writeLater(source) {
  if (!WRITE_OF_PIPE.test(source)) throw new Error("tools/hide_streams.mjs does not find where a pipe writes");
  return source.replace(WRITE_OF_PIPE, "$1queueMicrotask(()=>{$2})}");
}

// https://webidl.spec.whatwg.org/#js-dictionary: an absent dictionary has no members, even if code sets some on Object.prototype.
const ABSENT = /\b([etr])=\{\}(?=[,)])/g;

function withoutPrototype(source) {
  if (source.match(ABSENT)?.length !== 10) throw new Error("tools/hide_streams.mjs does not find the options that may be absent");
  return source.replace(ABSENT, "$1=$none");
}

function hide(source, nativeModule) {
  const shown = patchStreams(writeLater(withoutPrototype(source)))
    .replace(new RegExp(`\\.(${ANY})\\b`, "g"), (_, name) => `[${symbolOf(name)}]`)
    .replace(new RegExp(`"(${ANY})"`, "g"), (_, name) => symbolOf(name))
    .replace(new RegExp(`([{,])(${ANY}):`, "g"), (_, before, name) => `${before}[${symbolOf(name)}]:`);
  const left = shown.match(/[^$\w](_[a-z]\w+)/gi)?.map((match) => match.slice(1)) ?? [];
  const missed = left.find((name) => INTERNALS.includes(name));
  if (missed !== undefined) throw new Error(`tools/hide_streams.mjs does not know how ${missed} is used`);
  // https://streams.spec.whatwg.org/#readable-stream-default-reader-read, for the platform's own use
  const [owner, disturbed] = ["_ownerReadableStream", "_disturbed"].map((name) => `[${symbolOf(name)}]`);
  const end = shown.indexOf(`(e,t){const r=e${owner};r${disturbed}=!0,"closed"`);
  const read = shown.slice(0, end).match(/function (\w+)$/)?.[1];
  if (end === -1 || read === undefined) throw new Error("tools/hide_streams.mjs does not find the function that reads");
  const symbols = INTERNALS.map((name) => `${symbolOf(name)} = $private("${name}")`).join(", ");
  return `
    import { native as $native } from ${JSON.stringify(nativeModule)};
    const $private = $native.privateSymbol;
    const ${symbols};
    const $none = Object.freeze({ __proto__: null });
    ${PATCH_HELPERS}
    ${shown}
    export const internals = { ${EXPORTED.map((name) => `${name}: ${symbolOf(name)}`).join(", ")} };
    export { ${read} as readerRead };
  `;
}

/**
 * A plugin of esbuild. The library then also exports `internals`, name -> private symbol, and `readerRead(reader, steps)`, where
 * steps has the methods _chunkSteps(chunk), _closeSteps() and _errorSteps(error).
 */
export function hideStreams(nativeModule) {
  return {
    name: "hide-streams",
    setup(build) {
      build.onLoad({ filter: /web-streams-polyfill[\\/]dist[\\/]ponyfill\.mjs$/ }, async ({ path }) => ({
        contents: hide(await readFile(path, "utf8"), nativeModule),
        loader: "js",
      }));
    },
  };
}
