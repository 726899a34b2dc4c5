// https://nodejs.org/api/net.html#class-netsocket: a Duplex over a TCP connection (sockets/tcp_port.js).
//
// A function instead of a class, because packages call it without `new` and inherit from it with util.inherits.
import { addAbortAlgorithm, isAbortSignal } from "../dom/abort.js";
import { TcpPort } from "../sockets/tcp_port.js";
import { readAddress } from "../sockets/tcp_socket.js";
import { clearTimeout, setTimeout } from "../timers.js";
import { Buffer } from "./buffer.js";
import { AbortError, codedError, invalidArgument, requireFunction } from "./errors.js";
import { closedBefore, socketClosed, withCode } from "./net_errors.js";
import { isIP, isIPv6 } from "./net_addresses.js";
import { checkSocketOptions, normalizeArgs, readTarget, readTimeout } from "./net_options.js";
import { nextTick } from "./process.js";
import { Duplex } from "./stream.js";

/** A connection, and what Node counts of it. */
export class Handle {
  constructor(port, host, number) {
    this.port = port;
    this.host = host;
    this.number = number;
    this.bytesRead = 0;
    this.bytesWritten = 0;
    this.reading = false;
  }
}

export function Socket(options = undefined) {
  if (!(this instanceof Socket)) return new Socket(options);
  const given = typeof options === "number" ? { fd: options } : { ...options };
  checkSocketOptions(given);
  const { allowHalfOpen, signal, onread, handle, ...rest } = given;
  Duplex.call(this, {
    ...rest,
    signal: undefined,
    allowHalfOpen: Boolean(allowHalfOpen),
    emitClose: false,
    autoDestroy: true,
    decodeStrings: false,
    readable: true,
    writable: true,
  });
  this._handle = handle instanceof Handle ? handle : null;
  this.connecting = false;
  this._hadError = false;
  this._host = null;
  this._parent = null;
  this._timer = null;
  this._counted = { bytesRead: 0, bytesWritten: 0 }; // of the last connection
  this._onread = readOnread(onread);
  this._aborted = false;
  this.autoSelectFamilyAttemptedAddresses = [];
  if (signal !== undefined) abortWith(this, signal);
}

Object.setPrototypeOf(Socket.prototype, Duplex.prototype);
Object.setPrototypeOf(Socket, Duplex);

function abortWith(socket, signal) {
  if (!isAbortSignal(signal)) throw invalidArgument("options.signal", "an instance of AbortSignal", signal);
  const abort = () => {
    socket._aborted = true;
    socket.destroy(new AbortError(signal));
  };
  if (signal.aborted) nextTick(abort);
  else addAbortAlgorithm(signal, abort);
  if (signal.aborted) socket._aborted = true;
}

/** The option `onread`: bytes go into one buffer, and a callback is told how many. */
function readOnread(onread) {
  if (typeof onread !== "object" || onread === null || typeof onread.callback !== "function") return null;
  const { buffer, callback } = onread;
  if (typeof buffer !== "function" && !(buffer instanceof Uint8Array)) return null;
  return { next: typeof buffer === "function" ? buffer : () => buffer, callback };
}

/** Gives bytes to `onread`. False: stop reading. */
function deliver(socket, bytes) {
  const { next, callback } = socket._onread;
  for (let at = 0; at < bytes.length; ) {
    const buffer = next();
    const piece = bytes.subarray(at, at + buffer.length);
    buffer.set(piece);
    at += piece.length;
    if (callback.call(socket, piece.length, buffer) === false) return false;
  }
  return true;
}

async function readLoop(socket, handle) {
  handle.reading = true;
  try {
    for (;;) {
      const bytes = await handle.port.read();
      if (socket._handle !== handle) return;
      socket._unrefTimer();
      if (bytes === null) {
        socket.push(null);
        socket.read(0);
        return;
      }
      handle.bytesRead += bytes.length;
      const more = socket._onread === null ? socket.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)) : deliver(socket, bytes);
      if (more) continue;
      handle.reading = false;
      return;
    }
  } catch (error) {
    if (socket._handle === handle) socket.destroy(withCode(error));
  }
}

function bytesOfChunk(chunk, encoding) {
  if (typeof chunk === "string") return Buffer.from(chunk, encoding);
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw invalidArgument("chunk", "of type string or an instance of Buffer, TypedArray, or DataView", chunk);
}

/** Calls `then` once the socket is connected, or `otherwise` if it is closed before. */
function whenConnected(socket, then, otherwise) {
  const onClose = () => {
    socket.off("connect", onConnect);
    otherwise();
  };
  const onConnect = () => {
    socket.off("close", onClose);
    then();
  };
  socket.once("connect", onConnect);
  socket.once("close", onClose);
}

const methods = {
  connect(...args) {
    const [options, listener] = normalizeArgs(args);
    if (this.connecting) throw codedError(Error, "ERR_SOCKET_CONNECTING", "Socket is already connecting");
    if (this._aborted) throw new AbortError({ reason: undefined });
    const target = readTarget(options);
    if (listener !== null) this.once("connect", listener);
    this._handle?.port.close();
    this._handle = null;
    this._hadError = false;
    this._undestroy();
    this.connecting = true;
    this._unrefTimer();
    this._host = target.host;
    if (target.lookup !== undefined && isIP(target.host) === 0) this._lookup(target, options);
    else this._open(target.host, target.port, options);
    return this;
  },

  _lookup({ host, port, lookup, family, hints }, options) {
    lookup(host, { family: family ?? 0, hints: hints ?? 0, all: false }, (error, address, kind) => {
      if (!this.connecting) return; // destroyed meanwhile
      const found = Array.isArray(address) ? address[0]?.address : address;
      this.emit("lookup", error, found, Array.isArray(address) ? address[0]?.family : kind, host);
      if (error) this.destroy(error);
      else this._open(found, port, options);
    });
  },

  _open(host, port, options) {
    let handle;
    try {
      const address = readAddress(`${isIPv6(host) ? `[${host}]` : host}:${port}`);
      handle = new Handle(new TcpPort(address.host, address.port, this._tlsWish(options)), host, port);
    } catch (error) {
      nextTick(() => {
        if (!this.connecting) return;
        this.emit("lookup", error, undefined, undefined, host);
        this.destroy(error);
      });
      return;
    }
    this._handle = handle;
    handle.port.onMisuse = (error) => this.destroy(error);
    handle.port.opened.then(
      () => this._handle === handle && this._connected(),
      (error) => this._handle === handle && this.destroy(withCode(error)),
    );
  },

  /** What TLS needs, if the connection begins with it. */
  _tlsWish() {
    return undefined;
  },

  _connected() {
    this.connecting = false;
    this._unrefTimer();
    this.emit("connect");
    this.emit("ready");
    if (!this.destroyed && this.readableFlowing !== false) this.read(0);
  },

  /** https://nodejs.org/api/net.html#socketsettimeouttimeout-callback */
  setTimeout(msecs, callback = undefined) {
    if (this.destroyed) return this;
    const timeout = readTimeout(msecs);
    if (callback !== undefined) requireFunction(callback, "callback");
    this.timeout = msecs;
    clearTimeout(this._timer);
    this._timer = null;
    if (timeout === 0) {
      if (callback !== undefined) this.removeListener("timeout", callback);
      return this;
    }
    this._arm(timeout);
    if (callback !== undefined) this.once("timeout", callback);
    return this;
  },

  _arm(timeout) {
    try {
      this._timer = setTimeout(() => this._onTimeout(), timeout);
    } catch {
      this._timer = null; // longer than timers may be: the call ends before
    }
  },

  _onTimeout() {
    this.emit("timeout");
  },

  /** Something happened: the timeout begins anew. */
  _unrefTimer() {
    if (this._timer === null) return;
    clearTimeout(this._timer);
    this._arm(this.timeout);
  },

  _read(size) {
    if (this.connecting || this._handle === null) {
      this.once("connect", () => this._read(size));
    } else if (!this._handle.reading) {
      readLoop(this, this._handle);
    }
  },

  _write(chunk, encoding, callback) {
    this._send(() => bytesOfChunk(chunk, encoding), callback);
  },

  _writev(chunks, callback) {
    this._send(() => Buffer.concat(chunks.map(({ chunk, encoding }) => bytesOfChunk(chunk, encoding))), callback);
  },

  _send(make, callback) {
    let bytes;
    try {
      bytes = make();
    } catch (error) {
      callback(error);
      return;
    }
    if (this.connecting) {
      whenConnected(this, () => this._send(() => bytes, callback), () => callback(closedBefore()));
      return;
    }
    const handle = this._handle;
    if (handle === null) {
      callback(socketClosed());
      return;
    }
    this._unrefTimer();
    handle.port.write(bytes).then(
      () => {
        handle.bytesWritten += bytes.length;
        this._unrefTimer();
        callback();
      },
      (error) => callback(withCode(error)),
    );
  },

  _final(callback) {
    if (this.connecting) {
      whenConnected(this, () => this._final(callback), () => callback(closedBefore()));
      return;
    }
    if (this._handle === null) {
      callback();
      return;
    }
    this._handle.port.end().then(
      () => callback(),
      () => callback(), // the peer is gone: reading tells
    );
  },

  resetAndDestroy() {
    if (this._handle === null && !this.connecting) return this.destroy(socketClosed());
    if (this.connecting) {
      this.once("connect", () => this.destroy());
      return this;
    }
    return this.destroy();
  },

  destroySoon() {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  },

  _destroy(error, callback) {
    this.connecting = false;
    clearTimeout(this._timer);
    this._timer = null;
    const handle = this._handle;
    if (handle !== null) {
      this._counted = handle;
      this._handle = null;
      handle.port.close();
    }
    this._hadError = Boolean(error);
    callback(error);
    nextTick(() => this.emit("close", this._hadError));
  },

  setNoDelay() {
    return this; // Python always sets it
  },

  setKeepAlive() {
    return this;
  },

  ref() {
    return this;
  },

  unref() {
    return this;
  },

  address() {
    return this._handle === null ? {} : { address: "0.0.0.0", port: 0, family: "IPv4" };
  },
};

for (const [name, value] of Object.entries(methods)) {
  Object.defineProperty(Socket.prototype, name, { value, writable: true, configurable: true });
}

const peer = (read) => ({
  get() {
    return this._handle && !this.connecting ? read(this._handle) : undefined;
  },
});

Object.defineProperties(Socket.prototype, {
  _connecting: { get() { return this.connecting; } },
  pending: { get() { return !this._handle || this.connecting; }, configurable: true },
  readyState: {
    get() {
      if (this.connecting) return "opening";
      if (this.readable && this.writable) return "open";
      if (this.readable) return "readOnly";
      return this.writable ? "writeOnly" : "closed";
    },
  },
  bufferSize: { get() { return this._handle ? this.writableLength : undefined; } },
  bytesRead: { get() { return (this._handle ?? this._counted)?.bytesRead; }, enumerable: true },
  bytesWritten: {
    get() {
      if (this._counted === undefined) return undefined; // of the prototype
      return (this._handle ?? this._counted).bytesWritten + this.writableLength;
    },
    enumerable: true,
  },
  remoteAddress: { ...peer(({ host }) => host), enumerable: true },
  remoteFamily: { ...peer(({ host }) => (isIPv6(host) ? "IPv6" : "IPv4")), enumerable: true },
  remotePort: { ...peer(({ number }) => number), enumerable: true },
  localAddress: { get() { return this.address().address; }, enumerable: true },
  localPort: { get() { return this.address().port; }, enumerable: true },
  localFamily: { get() { return this.address().family; }, enumerable: true },
});
