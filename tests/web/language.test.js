// The language itself: a clock that stands still, no shared memory, no code from strings.
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const sleep = (delay) => new Promise((resolve) => setTimeout(resolve, delay));

function spin() {
  let sum = 0;
  for (let i = 0; i < 3e6; i++) sum += i % 7;
  return sum;
}

const clocks = {
  "Date.now()": () => Date.now(),
  "new Date()": () => new Date().getTime(),
  "Date()": () => Date(),
  "Reflect.construct": () => Reflect.construct(Date, [], Object).getTime?.() ?? 0,
  "a subclass": () => new (class extends Date {})().getTime(),
  "the constructor of a date": () => new (new Date(0).constructor)().getTime(),
  "performance.now()": () => performance.now(),
  "Intl format": () => new Intl.DateTimeFormat("en", { fractionalSecondDigits: 3 }).format(),
  "Intl formatToParts": () => JSON.stringify(new Intl.DateTimeFormat("en", { fractionalSecondDigits: 3 }).formatToParts()),
  "an event": () => new Event("x").timeStamp,
  "a file": () => new File([], "x").lastModified,
};

export const tests = {
  "bytes as base64 and hex": () => {
    equal(new Uint8Array([251, 255, 0, 1]).toBase64(), "+/8AAQ==");
    equal(new Uint8Array([251, 255, 0, 1]).toBase64({ alphabet: "base64url", omitPadding: true }), "-_8AAQ");
    equal(new Uint8Array([251, 0, 16]).toHex(), "fb0010");
    deepEqual([...Uint8Array.fromBase64(" +/8A\nAQ ")], [251, 255, 0, 1]);
    deepEqual([...Uint8Array.fromBase64("-_8AAQ==", { alphabet: "base64url", lastChunkHandling: "strict" })], [251, 255, 0, 1]);
    deepEqual([...Uint8Array.fromBase64("AAECAw", { lastChunkHandling: "stop-before-partial" })], [0, 1, 2]);
    deepEqual([...Uint8Array.fromHex("fB0010")], [251, 0, 16]);
    const bytes = new Uint8Array(4);
    deepEqual([bytes.setFromBase64("AAEC AwQF"), [...bytes]], [{ read: 4, written: 3 }, [0, 1, 2, 0]]);
    deepEqual([bytes.setFromHex("0908070605"), [...bytes]], [{ read: 8, written: 4 }, [9, 8, 7, 6]]);
    for (const text of ["A", "AA=", "AA==A", "A===", "AA-A", "AAA\u0100"]) throws(() => Uint8Array.fromBase64(text), SyntaxError);
    for (const text of ["AA", "AB==", "AAB="]) throws(() => Uint8Array.fromBase64(text, { lastChunkHandling: "strict" }), SyntaxError);
    for (const text of ["0", "0g", "\u01300"]) throws(() => Uint8Array.fromHex(text), SyntaxError);
    throws(() => Uint8Array.fromBase64(5), TypeError);
    throws(() => Uint8Array.fromBase64("", { alphabet: "other" }), TypeError);
    throws(() => Uint8Array.prototype.toHex.call(new Uint16Array(1)), TypeError);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    throws(() => bytes.toBase64(), TypeError);
    throws(() => bytes.setFromHex(""), TypeError);
  },
  ...Object.fromEntries(
    Object.entries(clocks).map(([name, clock]) => [
      `${name} stands still while code runs`,
      () => {
        const before = clock();
        for (let i = 0; i < 5; i++) {
          spin();
          equal(clock(), before);
        }
      },
    ]),
  ),
  "the clock advances while a worker waits": async () => {
    const [date, mark] = [Date.now(), performance.now()];
    await sleep(30);
    ok(Date.now() - date >= 25 && Date.now() - date < 5000, `${Date.now() - date}`);
    ok(performance.now() - mark >= 25);
    ok(Math.abs(Date.now() - (performance.timeOrigin + performance.now())) < 2);
  },
  "no clock is finer than a tenth of a millisecond": async () => {
    for (let i = 0; i < 20; i++) {
      await sleep(0);
      for (const time of [performance.now(), new Event("x").timeStamp, performance.mark("x").startTime]) {
        equal(time, Math.round(time * 10) / 10);
      }
      const origin = performance.timeOrigin * 10;
      ok(Math.abs(origin - Math.round(origin)) < 0.01, `${origin}`);
    }
  },
  "Date works as usual": () => {
    equal(typeof Date(), "string");
    ok(!Number.isNaN(Date.parse(Date())));
    equal(Date.name, "Date");
    equal(Date.length, 7);
    ok(new Date() instanceof Date);
    equal(new Date(2020, 0, 2, 3, 4, 5, 6).toISOString(), "2020-01-02T03:04:05.006Z");
    equal(new Date("2020-01-02").getTime(), Date.UTC(2020, 0, 2));
    equal(new Date(undefined).getTime() === new Date(undefined).getTime(), false);
    equal(new Date(5).valueOf(), 5);
    equal(structuredClone(new Date(7)).getTime(), 7);
    ok(structuredClone(new Date(7)) instanceof Date);
    class Moment extends Date {
      twice() {
        return this.getTime() * 2;
      }
    }
    equal(new Moment(4).twice(), 8);
    deepEqual(Object.keys(Date), []);
    deepEqual(Object.getOwnPropertyNames(Date).sort(), ["UTC", "length", "name", "now", "parse", "prototype"]);
    const { writable } = Object.getOwnPropertyDescriptor(Date, "prototype");
    equal(writable, false);
  },
  "a date formatter formats given dates": () => {
    const formatter = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC" });
    equal(formatter.format, formatter.format);
    equal(formatter.format(0), "01/01/1970");
    equal(formatter.formatToParts(0)[0].value, "01");
    throws(() => formatter.format(NaN), RangeError);
    throws(() => Intl.DateTimeFormat.prototype.format.call({}), TypeError);
    equal(new Date(0).toLocaleDateString("en-GB", { timeZone: "UTC" }), "01/01/1970");
  },
  "shared memory cannot leave the isolate": () => {
    equal(typeof SharedArrayBuffer, "undefined");
    const { buffer } = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    throws(() => structuredClone(buffer), DOMException);
    throws(() => new MessageChannel().port1.postMessage(buffer), DOMException);
    throws(() => Atomics.wait(new Int32Array(buffer), 0, 0, 1), TypeError);
    equal(Atomics.waitAsync, undefined);
  },
  "shared memory counts with its maximum size": () => {
    const { Memory } = WebAssembly;
    throws(() => new Memory({ initial: 1, maximum: 2048, shared: true }), RangeError);
    throws(() => new (new Memory({ initial: 1 }).constructor)({ initial: 1, maximum: 2048, shared: true }), RangeError);
    throws(() => Reflect.construct(Memory, [{ initial: 1, maximum: 2048, shared: true }], class {}), RangeError);
    let asked = 0;
    const descriptor = { initial: 1, maximum: 2048, get shared() { return asked++ > 0; } };
    equal(new Memory(descriptor).buffer.constructor, ArrayBuffer);
    const order = [];
    const told = (name, value) => ({ valueOf: () => (order.push(name), value) });
    throws(() => new Memory({ initial: told("initial", 0), maximum: told("maximum", 2048), shared: true }), RangeError);
    deepEqual(order, ["initial", "maximum"]);
    ok(new Memory({ initial: 0, maximum: 0, shared: true }) instanceof Memory);
  },
  "WebAssembly.Memory works as usual": () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 3 });
    ok(memory instanceof WebAssembly.Memory);
    equal(memory.grow(1), 1);
    equal(memory.buffer.byteLength, 2 * 65536);
    throws(() => WebAssembly.Memory({ initial: 1 }), TypeError);
    throws(() => new WebAssembly.Memory(), TypeError);
    throws(() => new WebAssembly.Memory({}), TypeError);
  },
  "there is no code from strings": async () => {
    throws(() => eval("1"), EvalError);
    throws(() => (0, eval)("1"), EvalError);
    throws(() => new Function("return 1"), EvalError);
    throws(() => (() => {}).constructor("return 1"), EvalError);
    throws(() => (async () => {}).constructor("return 1"), EvalError);
    throws(() => (function* () {}).constructor("yield 1"), EvalError);
    throws(() => (async function* () {}).constructor("yield 1"), EvalError);
    throws(() => ({}).constructor.constructor("return this")(), EvalError);
    throws(() => setTimeout("1", 0), EvalError);
    throws(() => setInterval("1", 1), EvalError);
    await rejects(WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), WebAssembly.CompileError);
    throws(() => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), WebAssembly.CompileError);
  },
};
