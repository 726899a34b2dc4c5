/* eslint-disable no-sparse-arrays */
import { Buffer } from "node:buffer";
import * as util from "node:util";
import { table } from "./run.js";

const { inspect, format } = util;
class Animal {
  constructor() {
    this.name = "cat";
  }
  get legs() {
    return 4;
  }
}
class Cat extends Animal {
  static count = 3;
}
class Listing extends Array {}
class Dictionary extends Map {}
const circular = { name: "loop" };
circular.self = circular;
circular.list = [circular, { circular }];
const nested = { a: { b: { c: { d: { e: 1 } } } }, list: [[[[[1]]]]] };
const bare = Object.assign(Object.create(null), { x: 1 });
const tagged = { [Symbol.toStringTag]: "Tagged", x: 1 };
const withSymbol = { [Symbol("key")]: 1, plain: 2, "needs-quotes": 3, 12: 4 };
const accessors = { get a() { return 1; }, set a(value) {}, get b() { return 2; }, set c(value) {} };
const custom = { [inspect.custom]: (depth, options, inner) => `<custom ${depth} ${typeof options.stylize} ${inner === inspect}>` };
const long = Array.from({ length: 120 }, (_, i) => i);
const words = Array.from({ length: 30 }, (_, i) => "word".repeat((i % 5) + 1));
const error = new TypeError("bad thing");
error.stack = "TypeError: bad thing\n    at somewhere (file.js:1:2)";
const coded = Object.assign(new Error("coded"), { code: "E_CODE", detail: { a: 1 } });
coded.stack = "Error: coded\n    at x";
const caused = new Error("outer", { cause: error });
caused.stack = "Error: outer\n    at y";
const stackless = new RangeError("none");
stackless.stack = "";
// Errors of custom classes, and with names that are not in their stacks.
const errors = { Error: (name) => ({ [name]: class extends Error {} })[name], TypeError: (name) => ({ [name]: class extends TypeError {} })[name] };
const EDITS = {
  none: () => {}, name: (it) => (it.name = "Other"), errorName: (it) => (it.name = "OtherError"), noName: (it) => (it.name = undefined), message: (it) => Object.assign(it, { message: "changed" }), shown: (it) => Object.defineProperty(it, "message", { value: "v", enumerable: true }),
  free: (it) => (it.stack = "free text"), other: (it) => (it.stack = "A: b\n    at q"), bare: (it) => (it.stack = it.stack.split("\n")[0]), extended: (it) => (it.stack = it.stack.replace("Error", "Errorx")),
};
const OWN = {};
for (const [base, make] of Object.entries(errors)) {
  for (const name of [base, "MyError", "MyTypeError", "ErrorX", "HTTPException", "E"]) {
    for (const [edit, change] of Object.entries(EDITS)) {
      const own = new (make(name))("msg");
      own.stack = `${base}: msg\n    at x`;
      change(own);
      OWN[`${base} ${name} ${edit}`] = own;
    }
  }
}
const settled = Object.assign(Promise.resolve(1), { own: { a: 1 } });
const later = Object.assign(new (class Later extends Promise {})(() => {}), { own: 1 });
const block = Object.assign(new ArrayBuffer(101), { own: 1 });
const frozen = Object.freeze([1, 2]);
const sparse = [1, , 3, , ,];
const extra = Object.assign([1, 2], { more: "yes", "-1": 0 });
function named() {}
const dressed = Object.assign(() => {}, { property: 1 });

const VALUES = {
  undefined, null: null, true: true, number: 1.5, minusZero: -0, nan: NaN, bigint: 10n, string: "text", quotes: "it's", both: "it's \"x\"", all: "'\"`", newline: "a\nb\tc\\", control: "\x00\x1b\x7f", lone: "\ud800", symbol: Symbol("s"), emptySymbol: Symbol(),
  object: { a: 1, b: "x", c: [1, 2] }, empty: {}, emptyArray: [], nested, circular, bare, tagged, withSymbol, accessors, custom, long, words, frozen, sparse, extra, hole: [, ,],
  named, dressed, arrow: () => {}, anonymous: (() => () => {})(), async: async function run() {}, generator: function* gen() {}, asyncGenerator: async function* agen() {}, class: Animal, subclass: Cat, anonymousClass: class {}, bareFunction: Object.setPrototypeOf(() => {}, null),
  instance: new Animal(), subInstance: new Cat(), listing: Listing.from([1, 2]), dictionary: new Dictionary([[1, 2]]),
  map: new Map([["a", 1], [{ b: 2 }, new Map()]]), set: new Set([1, "a", { b: 1 }]), emptyMap: new Map(), weakMap: new WeakMap(), weakSet: new WeakSet(), mapIterator: new Map([[1, 2]]).keys(), setIterator: new Set([5]).values(), arrayIterator: [1][Symbol.iterator](),
  date: new Date(0), invalidDate: new Date(NaN), regexp: /a+/gi, boxedNumber: new Number(3), boxedString: new String("abc"), boxedBoolean: new Boolean(false), boxedSymbol: Object(Symbol("b")), boxedBigint: Object(5n),
  error, coded, caused, stackless, aggregate: Object.assign(new AggregateError([], "many"), { stack: "AggregateError: many" }), inObject: { error: Object.assign(new Error("x"), { stack: "Error: x\n    at z" }) },
  ...OWN, settled, later, block, block100: new ArrayBuffer(100), ownBuffer: new (class Bytes extends ArrayBuffer {})(2), ownView: Object.assign(new DataView(new ArrayBuffer(2)), { own: 1 }),
  promise: Promise.resolve(5), pending: new Promise(() => {}), proxy: new Proxy({ a: 1 }, {}), proxyFunction: new Proxy(named, {}),
  bytes: new Uint8Array([1, 2, 3]), floats: new Float64Array(2), buffer: new Uint8Array([1, 255]).buffer, view: new DataView(new ArrayBuffer(2)), node: Buffer.from("hi"),
  arguments: (function () { return arguments; })(1, 2), global: typeof globalThis, math: Math, json: JSON, reflect: Reflect, intl: Intl,
  multiline: { text: "a".repeat(90), other: "b".repeat(30) }, longString: "x".repeat(200), lines: { text: "one\ntwo\nthree".repeat(8) }, deepArray: [[[[1, [2, [3]]]]]], mixed: [undefined, null, NaN, -0, Symbol("q"), 1n, "s", [], {}],
  numbers: [1.5, -2, 1000000, 0.1], objects: Array.from({ length: 8 }, (_, i) => ({ id: i, name: `n${i}` })), url: new URL("https://a.example/b?c#d"), params: new URLSearchParams("a=1&b=2")
};
// Without the oldest layout, which util.inspect does not support here.
const OPTIONS = [
  undefined, { depth: 0 }, { depth: Infinity }, { compact: false }, { compact: 1 }, { breakLength: 40 }, { breakLength: Infinity }, { sorted: true }, { getters: true }, { maxArrayLength: 2 }, { maxStringLength: 10 },
  { numericSeparator: true }, { depth: 1, compact: 3, breakLength: 20 }, { colors: true }, { colors: true, depth: 0, getters: true }, { colors: true, breakLength: 40 }, { showProxy: true }, { showProxy: true, colors: true, depth: 0 },
];

// Node throws if these are shown as a number or as JSON.
const UNCONVERTIBLE = ["bare", "bareFunction", "bigint", "boxedBigint", "boxedSymbol", "mixed"];
// Values without stacks, whose classes have no getters (which Node shows too).
const PLAIN = /^(object|empty|emptyArray|nested|bare|tagged|withSymbol|accessors|frozen|sparse|extra|listing|dictionary|map|set|emptyMap|date|regexp|boxed\w+|named|arrow|deepArray|mixed|lines)$/;
const shown = {};
for (const [name, value] of Object.entries(VALUES)) {
  // Node's own web classes ignore the layout options.
  const isOfWeb = value instanceof URL || value instanceof URLSearchParams;
  if (PLAIN.test(name)) shown[`inspect hidden ${name}`] = () => inspect(value, { showHidden: true });
  for (const [index, options] of isOfWeb ? [[0, undefined]] : OPTIONS.entries()) shown[`inspect ${name} ${index}`] = () => inspect(value, options);
  if (typeof value !== "function") shown[`format ${name}`] = () => format("%O|%s|%%|%c", value, value, value);
  if (!UNCONVERTIBLE.includes(name)) shown[`format %j ${name}`] = () => format("%j|%d|%i|%f", value, value, value, value);
  shown[`format rest ${name}`] = () => format(value, value, "text");
  for (const [other, right] of Object.entries({ same: value, empty: {}, zero: 0, text: "text" })) {
    shown[`isDeepStrictEqual ${name} ${other}`] = () => util.isDeepStrictEqual(value, right);
  }
  for (const [kind, test] of Object.entries(util.types)) {
    if (typeof test === "function") shown[`types.${kind} ${name}`] = () => test(value);
  }
}

export const cases = {
  ...shown,
  ...table("format", (...args) => format(...args), [], ["%s", null, undefined], ["%s"], ["%d", "12abc"], ["%i", "12.7"], ["%f", "1.5x"], ["%j", circular], ["%x", 1], ["a", "b", { c: 1 }], [1, 2, "3"], ["%s", { toString: () => "own" }], ["%s", new Animal()], ["%s", Symbol("a")], ["%s", -0], ["%s", 12n], ["%d", 12n], ["%s", [1, [2, [3]]]], ["%O", nested], ["%s %s", "a"], ["%%s", "a"], ["100%", 1], ["%", 1], ["%s", () => 1], ["%s", class A {}], ["%s", new Date(0)], ["%s", error]),
  ...table("inspect legacy", (...args) => inspect(...args), [nested, false, 1], [nested, false, null], [[1], true], [{ a: "x" }, false, 2, true]),
  ...table("stripVTControlCharacters", (text) => util.stripVTControlCharacters(text), ["\u001b[31mred\u001b[0m"], ["plain"], [5]),
  ...table("toUSVString", (text) => util.toUSVString(text), ["\ud800x"], [5]),
  ...table("inherits", (...args) => util.inherits(...args), [null, Animal], [function Sub() {}, null]),
  ...table("deprecate", (fn) => typeof util.deprecate(fn, "old"), [() => 1]),
  ...table("promisify", (value) => typeof util.promisify(value), [() => {}], [5], [null]),
  ...table("callbackify", (value) => typeof util.callbackify(value), [async () => {}], [5]),
  ...table("parseArgs", (config) => util.parseArgs(config), [{ args: ["-f", "--bar", "b"], options: { foo: { type: "boolean", short: "f" }, bar: { type: "string" } } }], [{ args: ["--x"], options: {} }], [{ args: ["a", "b"], allowPositionals: true }], [{ args: ["--no-color"], options: { color: { type: "boolean" } }, allowNegative: true }], [{ args: ["--n=1", "--n=2"], options: { n: { type: "string", multiple: true } } }], [{ args: ["--n"], options: { n: { type: "string" } } }], [{ args: ["-abc"], options: { a: { type: "boolean", short: "a" }, b: { type: "boolean", short: "b" }, c: { type: "boolean", short: "c" } } }], [{ args: [], options: { d: { type: "string", default: "q" } } }], [{ args: ["--", "-x"], allowPositionals: true, tokens: true }]),
  ...table("MIMEType", (text) => String(new util.MIMEType(text)), ["text/html; charset=utf-8"], ["TEXT/Plain;a=\"b c\""], ["nonsense"], ["a/b;x"]),
  "promisify resolves": () => util.promisify((a, done) => done(null, a + 1))(1),
  "promisify rejects": () => util.promisify((done) => done(new Error("no")))(),
  "promisify custom": () => util.promisify(Object.assign(() => {}, { [util.promisify.custom]: () => Promise.resolve("custom") }))(),
  "callbackify calls": () => new Promise((resolve) => util.callbackify(async (x) => x * 2)(4, (error, value) => resolve([error, value]))),
  "callbackify null": () => new Promise((resolve) => util.callbackify(() => Promise.reject(null))((error) => resolve([error.code, error.message]))),
  "inherits works": () => {
    function Parent() {}
    function Child() {}
    util.inherits(Child, Parent);
    return [new Child() instanceof Parent, Child.super_ === Parent];
  },
  "inspect.defaultOptions": () => inspect.defaultOptions,
  "isArray": () => [util.isArray([]), util.isArray({})],
  "inspect with a custom that returns an object": () => inspect({ [inspect.custom]: () => ({ shown: true }) }),
  "debuglog": () => typeof util.debuglog("x"),
  "TextEncoder": () => [util.TextEncoder === TextEncoder, util.TextDecoder === TextDecoder],
  "aborted": () => util.aborted.length,
  "custom inspect with colours": () => inspect({ [inspect.custom]: (depth, { colors, showHidden, showProxy, stylize }) => `${colors} ${showHidden} ${showProxy} ${stylize("a", "number")}` }, { colors: true, showHidden: true, showProxy: true }),
  "formatWithOptions colours": () => util.formatWithOptions({ colors: true }, "%s %O %j", "a", { a: 1 }, { b: "c" }),
  "formatWithOptions": () => util.formatWithOptions({ compact: false }, "%O", { a: { b: 1 } }),
};
