import { deepEqual, equal, ok, throws } from "./assert.js";

function read(method, blob, ...rest) {
  const reader = new FileReader();
  const events = [];
  for (const type of ["loadstart", "progress", "load", "abort", "error"]) {
    reader.addEventListener(type, (event) => events.push(`${type} ${event.loaded}/${event.total}`));
  }
  return new Promise((resolve) => {
    reader.onloadend = () => resolve({ result: reader.result, error: reader.error, state: reader.readyState, events });
    reader[method](blob, ...rest);
  });
}

export const tests = {
  "a blob is read in the requested form": async () => {
    const blob = new Blob(["h\u00e9"], { type: "text/plain" });
    equal((await read("readAsText", blob)).result, "h\u00e9");
    equal((await read("readAsText", blob, "latin1")).result, "h\u00c3\u00a9");
    equal((await read("readAsText", new Blob([new Uint8Array([0xe9])], { type: "text/plain;charset=latin1" }))).result, "\u00e9");
    equal((await read("readAsBinaryString", blob)).result, "h\u00c3\u00a9");
    equal((await read("readAsDataURL", blob)).result, "data:text/plain;base64,aMOp");
    equal((await read("readAsDataURL", new Blob([]))).result, "data:application/octet-stream;base64,");
    deepEqual(new Uint8Array((await read("readAsArrayBuffer", blob)).result), new Uint8Array([0x68, 0xc3, 0xa9]));
  },
  "the events come in order with progress numbers": async () => {
    const { events, state, error } = await read("readAsText", new Blob(["abc"]));
    deepEqual(events, ["loadstart 0/3", "progress 3/3", "load 3/3"]);
    deepEqual([state, error], [FileReader.DONE, null]);
    deepEqual((await read("readAsText", new Blob([]))).events, ["loadstart 0/0", "load 0/0"]);
  },
  "a reader reads one thing at a time and can be stopped": async () => {
    const reader = new FileReader();
    const events = [];
    for (const type of ["load", "abort", "loadend"]) reader[`on${type}`] = () => events.push(type);
    reader.readAsText(new Blob(["a"]));
    equal(reader.readyState, 1);
    equal(throws(() => reader.readAsText(new Blob(["b"]))).name, "InvalidStateError");
    reader.abort();
    deepEqual([reader.readyState, reader.result, events.join()], [2, null, "abort,loadend"]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    equal(events.length, 2);
    throws(() => reader.readAsText("text"), TypeError);
    throws(() => reader.readAsText(), TypeError);
    throws(() => FileReader.prototype.readyState, TypeError);
  },
  "a lazily created interface has the usual shape": () => {
    const { value, ...rest } = Object.getOwnPropertyDescriptor(globalThis, "ProgressEvent");
    deepEqual(rest, { writable: true, enumerable: false, configurable: true });
    equal(value, ProgressEvent);
    ok(new ProgressEvent("x", { loaded: 1.5 }) instanceof Event);
    globalThis.PerformanceObserverEntryList = 5;
    equal(globalThis.PerformanceObserverEntryList, 5);
  },
};
