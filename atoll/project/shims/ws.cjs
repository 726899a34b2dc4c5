// The package `ws` in a worker: its client on the platform's WebSocket. Servers get their sockets from requests instead.
const { EventEmitter } = require("node:events");
const { Duplex } = require("node:stream");

const STATES = ["CONNECTING", "OPEN", "CLOSING", "CLOSED"];
const EVENTS = ["open", "message", "close", "error"];

function toBuffer(data) {
  if (Array.isArray(data)) return Buffer.concat(data.map(toBuffer));
  if (data instanceof ArrayBuffer) return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(`${data}`);
}

/** The error of fetch() with the code that Node would give. */
function coded(error) {
  if (/refused/.test(`${error.message} ${error.cause?.message}`)) error.code = "ECONNREFUSED";
  return error;
}

class WebSocket extends EventEmitter {
  constructor(address, protocols, options) {
    super();
    if (typeof protocols === "object" && protocols !== null && !Array.isArray(protocols)) [protocols, options] = [[], protocols];
    const { headers = {}, origin, handshakeTimeout, auth } = options ?? {};
    this.url = `${address}`;
    this.protocol = this.extensions = "";
    this.readyState = 0;
    this.bufferedAmount = 0;
    this.binaryType = "nodebuffer";
    const target = new URL(this.url);
    if (!["ws:", "wss:", "http:", "https:"].includes(target.protocol)) throw new SyntaxError(`The URL's protocol must be one of "ws:", "wss:", "http:", "https:"`);
    if (target.hash) throw new SyntaxError("The URL contains a fragment identifier");
    target.protocol = target.protocol.replace("ws", "http");
    const sent = new Headers(headers);
    sent.set("Upgrade", "websocket");
    if (origin !== undefined) sent.set("Origin", origin);
    const login = auth ?? (target.username && `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`);
    if (login) sent.set("Authorization", `Basic ${Buffer.from(login).toString("base64")}`);
    target.username = target.password = "";
    const offered = [protocols ?? []].flat();
    if (offered.length) sent.set("Sec-WebSocket-Protocol", offered.join(","));
    this._abort = new AbortController();
    const timer = handshakeTimeout && setTimeout(() => this._fail(new Error("Opening handshake has timed out")), handshakeTimeout);
    fetch(target, { headers: sent, redirect: "manual", signal: this._abort.signal })
      .then((response) => this._connected(response), (error) => this._fail(coded(error)))
      .finally(() => clearTimeout(timer));
  }

  _connected(response) {
    if (this.readyState !== 0) return response.webSocket?.accept(), response.webSocket?.close();
    if (!response.webSocket) {
      if (this.listenerCount("unexpected-response")) return this.emit("unexpected-response", null, { statusCode: response.status, headers: Object.fromEntries(response.headers) });
      return this._fail(new Error(`Unexpected server response: ${response.status}`));
    }
    const socket = (this._socket = response.webSocket);
    this.protocol = socket.protocol || response.headers.get("sec-websocket-protocol") || "";
    this.extensions = socket.extensions ?? "";
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => this._receive(data));
    socket.addEventListener("close", ({ code, reason }) => this._ended(code, reason));
    socket.addEventListener("error", (event) => this._report(event.error ?? new Error(event.message)));
    socket.accept();
    this.readyState = 1;
    this.emit("upgrade", { statusCode: response.status, headers: Object.fromEntries(response.headers) });
    this.emit("open");
  }

  _receive(data) {
    if (typeof data === "string") return this.emit("message", Buffer.from(data), false);
    this.emit("message", this.binaryType === "arraybuffer" ? data : this.binaryType === "fragments" ? [Buffer.from(data)] : Buffer.from(data), true);
  }

  _report(error) {
    this.emit("error", error);
  }

  _fail(error) {
    if (this.readyState >= 2) return;
    this.readyState = 2;
    this._abort.abort();
    this._report(error);
    this._ended(1006, "");
  }

  _ended(code, reason) {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.emit("close", code, Buffer.from(reason ?? ""));
  }

  send(data, options, done) {
    if (typeof options === "function") [options, done] = [undefined, options];
    if (this.readyState === 0) throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
    if (this.readyState !== 1) {
      const error = new Error(`WebSocket is not open: readyState ${this.readyState} (${STATES[this.readyState]})`);
      return done ? void done(error) : undefined;
    }
    const binary = options?.binary ?? (typeof data !== "string" && typeof data !== "number");
    this._socket.send(binary ? toBuffer(data) : typeof data === "string" ? data : toBuffer(data).toString());
    if (done) queueMicrotask(done);
  }

  close(code, reason) {
    if (this.readyState === 0) return this._fail(new Error("WebSocket was closed before the connection was established"));
    if (this.readyState !== 1) return;
    this.readyState = 2;
    this._socket.close(code, reason === undefined ? undefined : `${reason}`);
  }

  terminate() {
    if (this.readyState === 0) return this.close();
    if (this.readyState === 3) return;
    this.readyState = 2;
    this._socket.close();
    this._ended(1006, "");
  }

  ping() {
    throw new Error("ws: a worker cannot send pings; the runtime answers those of the other side");
  }

  pong() {
    throw new Error("ws: a worker cannot send pongs; the runtime answers pings by itself");
  }

  pause() {
    throw new Error("ws: pause() is not available in a worker");
  }

  resume() {}

  addEventListener(type, listener, { once = false } = {}) {
    if (!EVENTS.includes(type)) return;
    const call = (event) => (typeof listener === "function" ? listener.call(this, event) : listener.handleEvent(event));
    const wrapped = (first, second) => {
      const more = {
        message: () => ({ data: second ? first : first.toString() }),
        close: () => ({ code: first, reason: second.toString(), wasClean: first !== 1006 }),
        error: () => ({ error: first, message: first.message }),
        open: () => ({}),
      }[type]();
      call({ type, target: this, ...more });
    };
    wrapped.listener = listener;
    this[once ? "once" : "on"](type, wrapped);
  }

  removeEventListener(type, listener) {
    this.off(type, listener);
  }
}

STATES.forEach((name, value) => {
  for (const target of [WebSocket, WebSocket.prototype]) Object.defineProperty(target, name, { value, enumerable: true });
});
for (const type of EVENTS) {
  Object.defineProperty(WebSocket.prototype, `on${type}`, {
    enumerable: true,
    get() {
      return this[`_on${type}`] ?? null;
    },
    set(listener) {
      if (this[`_on${type}`]) this.removeEventListener(type, this[`_on${type}`]);
      this[`_on${type}`] = listener;
      if (typeof listener === "function") this.addEventListener(type, listener);
    },
  });
}

class WebSocketServer extends EventEmitter {
  constructor() {
    super();
    throw new Error("ws: a worker has no WebSocketServer. Answer the request with a WebSocketPair: `new Response(null, { status: 101, webSocket })`");
  }
}

function createWebSocketStream(socket, options) {
  const stream = new Duplex({
    ...options,
    read() {},
    write(chunk, _, done) {
      if (socket.readyState === 0) return void socket.once("open", () => this._write(chunk, _, done));
      socket.send(chunk, done);
    },
    final(done) {
      socket.close();
      done();
    },
    destroy(error, done) {
      socket.terminate();
      done(error);
    },
  });
  socket.on("message", (data, binary) => stream.push(binary ? data : data.toString()));
  socket.once("close", () => stream.push(null));
  socket.once("error", (error) => stream.destroy(error));
  return stream;
}

module.exports = Object.assign(WebSocket, { WebSocket, WebSocketServer, Server: WebSocketServer, createWebSocketStream });
