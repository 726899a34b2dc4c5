// https://developers.cloudflare.com/workers/runtime-apis/tcp-sockets/: the module cloudflare:sockets.
import { defineInterface } from "../internal/platform.js";
import { bytesOf, isBufferSource, toDictionary, toDOMString } from "../internal/webidl.js";
import { ReadableStream, WritableStream, writerOf } from "../streams/streams.js";
import { parseHref, URL } from "../url/url.js";
import { TcpPort } from "./tcp_port.js";

const INTERNAL = Symbol("made by the platform");
const KINDS = ["off", "on", "starttls"];
const HOST = /^[\w.:[\]-]{1,255}$/;
const CLOSED = "This WritableStream has been closed.";

let setUp; // (Socket, state)

export class Socket {
  #port;
  #host; // for startTls
  #options;
  #secureTransport;
  #readable = null;
  #writable = null;
  #reading = null; // the controllers
  #writing = null;
  #opened;
  #closed = Promise.withResolvers();
  #isUpgraded = false; // startTls() was called
  #isClosing = false;

  constructor(key) {
    if (key !== INTERNAL) throw new TypeError("Illegal constructor");
  }

  static {
    setUp = (socket, state) => socket.#setUp(state);
  }

  #setUp({ port, host, options, secureTransport, opened, info }) {
    this.#port = port;
    this.#host = host;
    this.#options = options;
    this.#secureTransport = secureTransport;
    this.#opened = opened.then(() => info);
    this.#opened.catch((error) => this.#fail(error));
    this.#closed.promise.catch(() => {});
    port.onMisuse = (error) => this.#fail(error);
    this.#readable = new ReadableStream(
      {
        type: "bytes",
        start: (controller) => {
          this.#reading = controller;
          return opened;
        },
        pull: () => this.#pull(),
        cancel: () => this.#readEnded(),
      },
      { highWaterMark: 0 },
    );
    const { highWaterMark } = options;
    const strategy = highWaterMark === undefined ? undefined : { highWaterMark, size: (chunk) => chunk.byteLength };
    this.#writable = new WritableStream(
      {
        start: (controller) => {
          this.#writing = controller;
          return opened;
        },
        write: (chunk) => this.#write(chunk),
        close: () => this.#end(),
        abort: () => this.#drop(),
      },
      strategy,
    );
  }

  get readable() {
    return this.#readable;
  }

  get writable() {
    return this.#writable;
  }

  get opened() {
    return this.#opened;
  }

  get closed() {
    return this.#closed.promise;
  }

  get upgraded() {
    return this.#isUpgraded;
  }

  get secureTransport() {
    return this.#secureTransport;
  }

  async #pull() {
    let bytes;
    try {
      bytes = await this.#port.read();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    if (this.#isUpgraded) return; // the next socket reads
    if (bytes !== null) this.#reading.enqueue(bytes);
    else this.#finishReading();
  }

  #finishReading() {
    try {
      this.#reading.close();
      this.#reading.byobRequest?.respond(0);
    } catch {
      // It is closed, or failed.
    }
    this.#readEnded();
  }

  /** No more is read: unless half-open sockets are allowed, no more is written either. */
  #readEnded() {
    if (this.#options.allowHalfOpen || this.#isClosing || this.#isUpgraded) return;
    const writer = writerOf(this.#writable);
    const ended = writer === undefined ? this.#writable.close() : writer.close();
    ended.catch(() => {}).then(() => this.#drop());
  }

  async #write(chunk) {
    if (!isBufferSource(chunk)) throw new TypeError("This WritableStream only supports writing byte types.");
    try {
      await this.#port.write(bytesOf(chunk));
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  async #end() {
    try {
      await this.#port.end();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  #drop() {
    if (this.#isUpgraded) return;
    this.#port.close();
    this.#closed.resolve();
  }

  /** Both streams and `closed` fail with the error. */
  #fail(error) {
    if (this.#isUpgraded || this.#isClosing) return;
    this.#closed.reject(error);
    this.#reading?.error(error);
    this.#writing?.error(error);
    this.#port.close();
  }

  /** Flushes what was written, then closes both sides. */
  close() {
    if (this.#isClosing) return this.#closed.promise;
    this.#isClosing = true;
    return this.#close();
  }

  async #close() {
    await this.#opened.catch(() => {});
    await this.#flush();
    if (this.#isUpgraded) return;
    this.#detach();
    this.#port.close();
    this.#closed.resolve();
    await this.#closed.promise.catch(() => {});
  }

  /** Resolves when what was written so far has been sent. */
  async #flush() {
    const writer = writerOf(this.#writable);
    const taken = writer ?? this.#writable.getWriter();
    try {
      await taken.write(new Uint8Array(0));
    } catch {
      // It is closed, or failed.
    } finally {
      if (writer === undefined) taken.releaseLock();
    }
  }

  #detach() {
    try {
      this.#reading.close();
      this.#reading.byobRequest?.respond(0);
    } catch {
      // It is closed, or failed.
    }
    this.#writing.error(new TypeError(CLOSED));
  }

  /** The same connection with TLS: a new socket. The streams of this one end. */
  startTls(options = {}) {
    const { expectedServerHostname } = toDictionary(options, "startTls");
    if (this.#secureTransport === "on") throw new TypeError("Cannot startTls on a TLS socket.");
    if (this.#isUpgraded) {
      throw new TypeError("startTls has already been called on this socket, or the socket was transferred over RPC.");
    }
    if (this.#isClosing || this.#port.isOver) throw new TypeError("The connection was closed before startTls could be started.");
    if (this.#secureTransport !== "starttls") {
      throw new TypeError("The `secureTransport` socket option must be set to 'starttls' for startTls to be used.");
    }
    const name = expectedServerHostname === undefined ? this.#host : toDOMString(expectedServerHostname);
    const opened = this.#secure(name);
    opened.catch(() => {});
    this.#isUpgraded = true;
    const socket = new Socket(INTERNAL);
    const info = this.#opened;
    setUp(socket, { port: this.#port, host: this.#host, options: this.#options, secureTransport: "on", opened, info });
    return socket;
  }

  async #secure(name) {
    await this.#opened;
    await this.#flush();
    this.#detach();
    this.#closed.resolve();
    await this.#port.secure({ name });
  }
}

defineInterface(Socket, { name: "Socket" });

/** https://developers.cloudflare.com/workers/runtime-apis/tcp-sockets/#connect: { host, port } of an address. */
export function readAddress(address) {
  if (typeof address === "object" && address !== null) {
    const { hostname, port } = address;
    if (hostname === undefined) throw new TypeError("Specified address is missing hostname.");
    if (port === undefined) throw new TypeError("Specified address is missing port.");
    const number = Math.trunc(Number(port));
    if (!(number >= 0 && number <= 65535)) throw new TypeError("The port of the specified address is not a number from 0 to 65535.");
    return checked(toDOMString(hostname), number);
  }
  const text = toDOMString(address);
  // A scheme without a default port, so that every port is seen.
  const href = parseHref(`fake://${text}`);
  if (href === undefined) throw new TypeError("Specified address could not be parsed.");
  const { hostname, port } = new URL(href);
  if (hostname === "") throw new TypeError("Specified address is missing hostname.");
  if (port === "") throw new TypeError("Specified address is missing port.");
  if (!HOST.test(text)) refuse();
  return checked(hostname, Number(port));
}

function refuse() {
  throw new TypeError("Specified address is empty string, contains unsupported characters or is too long.");
}

function checked(host, port) {
  if (!HOST.test(`${host}:${port}`) || host === "") refuse();
  return { host, port };
}

function readOptions(options) {
  const { secureTransport, allowHalfOpen, highWaterMark } = toDictionary(options, "connect");
  const kind = secureTransport === undefined ? "off" : toDOMString(secureTransport);
  if (!KINDS.includes(kind)) throw new TypeError(`Unsupported value in secureTransport socket option: ${kind}`);
  return { kind, options: { allowHalfOpen: !!allowHalfOpen, highWaterMark: highWaterMark === undefined ? undefined : Number(highWaterMark) } };
}

/** Opens a socket at once; `opened` tells when it is connected. */
export function connect(address, options = {}) {
  const { host, port } = readAddress(address);
  const { kind, options: rest } = readOptions(options);
  const tcp = new TcpPort(host, port, kind === "on" ? {} : undefined);
  const socket = new Socket(INTERNAL);
  const info = { remoteAddress: `${host}:${port}`, localAddress: undefined };
  setUp(socket, { port: tcp, host, options: rest, secureTransport: kind, opened: tcp.opened, info });
  return socket;
}
