// node:util, node:events, node:stream, node:http and others: functions that need no process and no network.
import { Assert } from "node:assert";
import events, { EventEmitter, EventEmitterAsyncResource, getEventListeners, getMaxListeners, once, setMaxListeners } from "node:events";
import http from "node:http";
import { constants as http2 } from "node:http2";
import https from "node:https";
import os from "node:os";
import { Duplex, PassThrough, Readable, Writable, getDefaultHighWaterMark } from "node:stream";
import util from "node:util";
import { table } from "./run.js";

const values = [undefined, null, 0, 1, -1, 1.5, NaN, Infinity, "", "x", "A b", "a\r\nb", "\u3042", "\u00e9", true, {}, [], [1], ["x"], () => {}, 5n];
const each = (label, call) => table(label, call, ...values.map((value) => [value]));
const codes = [...util.getSystemErrorMap().keys()];

const message = (change) => {
  const made = new http.OutgoingMessage();
  const found = change(made);
  return [found === made ? "this" : found, made.getHeaders(), made.getHeaderNames(), made.getRawHeaderNames()];
};

const response = (change, request = { method: "GET", httpVersionMajor: 1, httpVersionMinor: 1 }) => {
  const made = new http.ServerResponse(request);
  made.sendDate = false;
  const found = change(made);
  return [found === made ? "this" : found, made._header, made.statusCode, made.statusMessage, made.headersSent, made.writableEnded, made.finished];
};

const incoming = (...lines) => {
  const made = new http.IncomingMessage();
  made._addHeaderLines(lines, lines.length);
  return [made.headers, made.headersDistinct, made.rawHeaders, made.trailers];
};

const names = ["Content-Type", "content-type", "Set-Cookie", "Cookie", "X-Foo", "Host", "Age", "ETag", "Date", "Vary", "Expires", "Accept", "Origin", "Server", "Referer", "Location", "Retry-After", "Content-Length", "User-Agent", "Last-Modified", "Authorization", "If-Match", "Max-Forwards", "Upgrade", "Transfer-Encoding", "__proto__x", "constructor"];

export const cases = {
  ...table("getSystemErrorName", util.getSystemErrorName, ...codes.map((code) => [code]), [-9999], ...values.map((value) => [value])),
  ...table("getSystemErrorMessage", util.getSystemErrorMessage, ...codes.map((code) => [code])),
  ...each("styleText format", (value) => util.styleText(value, "x", { validateStream: false })),
  ...table("styleText", (name) => util.styleText(name, "x", { validateStream: false }), ...Object.getOwnPropertyNames(util.inspect.colors).map((name) => [name]), [["bold", "red"]], [["none"]], [[]]),
  ...each("styleText text", (value) => util.styleText("red", value, { validateStream: false })),
  ...each("validateStream", (value) => value !== null && util.styleText("red", "x", { validateStream: value })),
  ...table("colors", (name) => util.inspect.colors[name], ...Object.getOwnPropertyNames(util.inspect.colors).map((name) => [name])),
  styles: () => ({ ...util.inspect.styles }),
  ...each("parseEnv", util.parseEnv),
  ...table("parseEnv text", util.parseEnv, ["A=1\nB = 2\n"], ["#c\nA='x y' # z"], ["A=\"1\\n2\""], ["A=`1`\nexport B=2"], ["A=\"x\ny\"\nB=1"], ["A=1 # c"], ["A='1\nB=2"], ["=x"], ["A"], ["A=\nB="], ["A==1"], ["\r\nA=1\r\nB=2"]),
  ...table("diff", util.diff, ["abc", "abc"], ["abc", "abd"], [["a", "b"], ["b"]], ["", "a"], ["kitten", "sitting"]),
  ...each("diff argument", (value) => util.diff(value, "x")),
  ...each("getCallSites", (value) => util.getCallSites(value).length >= 0),
  ...each("stripVTControlCharacters", util.stripVTControlCharacters),
  ...each("toUSVString", util.toUSVString),
  ...each("inherits", (value) => util.inherits(value, EventEmitter)),
  ...each("promisify", (value) => typeof util.promisify(value)),
  ...each("callbackify", (value) => typeof util.callbackify(value)),
  ...each("_extend", (value) => util._extend({ a: 1 }, value)),
  ...table("_errnoException", (...args) => ({ ...util._errnoException(...args), message: util._errnoException(...args).message }), [-2, "open", "x"], [-13, "stat"]),
  ...table("_exceptionWithHostPort", (...args) => util._exceptionWithHostPort(...args).message, [-111, "connect", "h", 80], [-111, "connect", "h"]),
  ...each("validateHeaderName", http.validateHeaderName),
  ...each("validateHeaderName label", (value) => http.validateHeaderName(value, "Label")),
  ...each("validateHeaderValue", (value) => http.validateHeaderValue("x", value)),
  ...each("setHeader name", (value) => message((made) => made.setHeader(value, "v"))),
  ...each("setHeader value", (value) => message((made) => made.setHeader("X-Name", value))),
  ...each("appendHeader", (value) => message((made) => made.setHeader("a", "1").appendHeader("A", value))),
  ...each("setHeaders", (value) => message((made) => made.setHeaders(value))),
  ...table("setHeaders map", (value) => message((made) => made.setHeaders(value)), [new Map([["A", "1"], ["set-cookie", ["x", "y"]]])], [new Headers([["a", "1"], ["set-cookie", "x"], ["set-cookie", "y"]])]),
  ...each("getHeader", (value) => message((made) => made.getHeader(value))),
  ...each("hasHeader", (value) => message((made) => made.hasHeader(value))),
  ...each("removeHeader", (value) => message((made) => made.removeHeader(value))),
  ...each("addTrailers", (value) => message((made) => [made.addTrailers({ a: value }), made._trailer])),
  ...each("write chunk", (value) => message((made) => {
    made._implicitHeader = () => {};
    return [made.write(value), made.writableLength > 0];
  })),
  ...each("writeHead status", (value) => (Number(value) >= 100 && Number(value) < 200 ? 0 : response((made) => made.writeHead(value)))),
  ...table("writeHead", (...args) => response((made) => made.writeHead(...args)), ...Object.keys(http.STATUS_CODES).filter((code) => code >= 200).map((code) => [Number(code)]), [200, "Fine"], [200, { a: "1" }], [200, "Fine", { a: ["1", "2"] }], [200, ["a", "1", "a", "2"]], [200, [["a", "1"], ["b", "2"]]], [200, ["a"]], [204, { a: "1" }], [304], [600], [999], [1000], [99], ["200"], [200, "a\nb"], [200, { "a b": "1" }], [200, { a: "\n" }], [200, { "Content-Length": "3" }], [200, { "Transfer-Encoding": "chunked" }], [200, { Connection: "close" }], [200, { Trailer: "x" }], [200, { Trailer: "x", "Content-Length": 1 }], [200, { Cookie: ["a", "b"] }]),
  ...table("writeHead after setHeader", (...args) => response((made) => made.setHeader("A", "0").writeHead(...args)), [200], [200, { a: "1" }], [200, ["a", "1", "a", "2"]], [200, ["a"]], [200, { b: "1" }], [200, { "": "x" }]),
  ...each("end", (value) => (typeof value === "function" ? 0 : response((made) => made.end(value)))),
  ...table("end after headers", (body, headers) => response((made) => made.setHeaders(new Map(headers)).end(body)), ["x", []], ["\u00e9", []], ["", [["content-length", "5"]]], ["x", [["connection", "close"]]]),
  ...table("HEAD", (body) => response((made) => made.end(body), { method: "HEAD", httpVersionMajor: 1, httpVersionMinor: 1 }), ["x"], [undefined]),
  ...table("HTTP/1.0", (body) => response((made) => made.end(body), { method: "GET", httpVersionMajor: 1, httpVersionMinor: 0, headers: {} }), ["x"], [undefined]),
  ...table("twice", (change) => response((made) => [made.writeHead(200) === made, change(made)]), [(made) => made.writeHead(200)], [(made) => made.setHeader("a", "b")], [(made) => made.removeHeader("a")], [(made) => made.appendHeader("a", "b")], [(made) => made.setHeaders(new Map())], [(made) => made._renderHeaders()]),
  ...table("incoming", incoming, ...names.map((name) => [name, "1", name.toUpperCase(), "2"]), ["a", "1", "b", "2"], []),
  ...table("flags of a message", (name) => new http.OutgoingMessage()[name], ["writableLength"], ["writableHighWaterMark"], ["writableObjectMode"], ["writableCorked"], ["writableEnded"], ["writableFinished"], ["writableNeedDrain"], ["errored"], ["closed"], ["destroyed"], ["finished"], ["headersSent"], ["chunkedEncoding"], ["shouldKeepAlive"], ["useChunkedEncodingByDefault"], ["sendDate"], ["_last"], ["strictContentLength"], ["outputSize"], ["socket"], ["connection"]),
  ...table("flags of a request", (name) => new http.IncomingMessage()[name], ["httpVersion"], ["complete"], ["headers"], ["rawHeaders"], ["trailers"], ["rawTrailers"], ["aborted"], ["upgrade"], ["url"], ["method"], ["statusCode"], ["statusMessage"], ["socket"], ["connection"], ["joinDuplicateHeaders"], ["headersDistinct"], ["trailersDistinct"]),
  ...each("option requestTimeout", (value) => http.createServer({ requestTimeout: value }).requestTimeout),
  ...each("option joinDuplicateHeaders", (value) => value !== undefined && http.createServer({ joinDuplicateHeaders: value }).joinDuplicateHeaders),
  ...each("option method", (value) => (value === "a\r\nb" ? 0 : codeOf(() => http.request({ method: value, host: "localhost", port: 1 })))),
  ...each("option host", (value) => codeOf(() => http.request({ host: value, port: 1 }))),
  ...each("option protocol", (value) => codeOf(() => http.request({ protocol: value, host: "localhost", port: 1 }))),
  ...each("option agent", (value) => codeOf(() => http.request({ agent: value, host: "localhost", port: 1 }))),
  ...table("agent getName", (options) => new http.Agent().getName(options), [undefined], [{}], [{ host: "h", port: 80, localAddress: "1" }], [{ family: 4 }], [{ family: 5 }], [{ socketPath: "/x" }]),
  ...table("https agent getName", (options) => new https.Agent().getName(options), [undefined], [{}], [{ host: "h", port: 443, servername: "s" }], [{ ca: "c", rejectUnauthorized: false }]),
  ...each("agent scheduling", (value) => new http.Agent({ scheduling: value }).scheduling),
  ...each("agent maxTotalSockets", (value) => new http.Agent({ maxTotalSockets: value }).maxTotalSockets),
  ...table("agent", (name) => http.globalAgent[name], ["defaultPort"], ["protocol"], ["keepAlive"], ["maxSockets"], ["maxFreeSockets"], ["scheduling"], ["maxTotalSockets"]),
  METHODS: () => http.METHODS,
  STATUS_CODES: () => http.STATUS_CODES,
  maxHeaderSize: () => http.maxHeaderSize,
  ...table("http2", (name) => http2[name], ...Object.keys(http2).map((name) => [name])),
  ...table("os", (kind, name) => os.constants[kind][name], ...["errno", "signals", "priority", "dlopen"].flatMap((kind) => Object.keys(os.constants[kind]).map((name) => [kind, name]))),
  "default high-water marks": () => [getDefaultHighWaterMark(false), getDefaultHighWaterMark(true), new Readable().readableHighWaterMark, new Writable().writableHighWaterMark, new Duplex().readableHighWaterMark, new PassThrough({ objectMode: true }).writableHighWaterMark],
  "a corked Duplex that is destroyed": () => new Promise((resolve) => {
    const duplex = new Duplex({ read() {}, write: (chunk, encoding, callback) => callback() });
    duplex.cork();
    duplex.write("a", (error) => resolve(error.code));
    duplex.destroy();
  }),
  "listeners of an EventTarget": () => {
    const target = new EventTarget();
    const listener = () => {};
    target.addEventListener("x", listener);
    setMaxListeners(5, target);
    return [getEventListeners(target, "x").length, getEventListeners(target, "x")[0] === listener, getEventListeners(target, "y"), getMaxListeners(target), getMaxListeners(new EventTarget())];
  },
  ...each("getEventListeners", (value) => getEventListeners(value, "x")),
  ...each("getMaxListeners", (value) => getMaxListeners(value)),
  ...each("setMaxListeners", (value) => setMaxListeners(3, value)),
  ...each("once", (value) => once(value, "x")),
  "EventEmitterAsyncResource": () => {
    const made = new EventEmitterAsyncResource({ name: "x" });
    return [typeof made.asyncId, typeof made.triggerAsyncId, typeof made.asyncResource.runInAsyncScope, made.emitDestroy(), made.emit("y")];
  },
  "static members of events": () => [typeof events.init, events.usingDomains, events.defaultMaxListeners],
  "Assert": () => {
    const own = new Assert();
    return [own instanceof Assert, typeof own.equal, codeOf(() => own.equal(1, "1")), codeOf(() => new Assert({ strict: false }).equal(1, "1"))];
  },
};

function codeOf(action) {
  try {
    const made = action();
    made?.on?.("error", () => {});
    made?.destroy?.();
    return "no error";
  } catch (error) {
    return `${error.name} ${error.code} ${error.message}`;
  }
}
