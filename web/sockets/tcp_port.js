// One TCP connection of this isolate, as bytes: cloudflare:sockets and node:net are built on it. Python has the connection and
// closes it when the call that opened it ends; a Durable Object keeps that call open (holding.js).
import { closeTcp, LOST, openTcp, readTcp, secureTcp, writeTcp } from "#bindings/tcp/tcp.js";
import { wrongContext } from "../rpc/errors.js";
import { ConnectionCall } from "./holding.js";

const PIECE = 128 * 1024; // most bytes of one write
const NO_SCOPE =
  "Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), setting a timeout, and generating " +
  "random values are not allowed within global scope. To fix this error, perform this operation within a handler. " +
  "https://developers.cloudflare.com/workers/runtime-apis/handlers/";
const FETCH_PORTS = [80, 443];
const FETCH_INSTEAD = ". It looks like you might be trying to connect to a HTTP-based service — consider using fetch instead";

let last = 0;

/** Why a connection could not be opened, in the words of Cloudflare; `cause` has ours. */
function cannotConnect(port, reason) {
  const more = FETCH_PORTS.includes(port) ? FETCH_INSTEAD : "";
  return new Error(`proxy request failed, cannot connect to the specified address${more}`, { cause: new Error(reason) });
}

export class TcpPort {
  #number = ++last;
  #call = new ConnectionCall();
  #port;
  #isOver = false;
  /** A callback for the moment when another request uses it: (error) => void. */
  onMisuse = null;

  /** `tls`: undefined, or { name, ca, unchecked }. */
  constructor(host, port, tls = undefined) {
    if (!this.#call.isThere) throw new Error(NO_SCOPE);
    this.#port = port;
    const meta = { socket: this.#number, host, port };
    /** Resolves when it is connected. */
    this.opened = openTcp(tls === undefined ? meta : { ...meta, tls: true, ...tls }).then(({ meta: { failed } }) => {
      if (failed === undefined) return;
      this.#end();
      throw cannotConnect(this.#port, failed);
    });
    this.opened.catch(() => {});
    this.#call.hold(); // after the op: Python keeps a call that it knows
  }

  get isOver() {
    return this.#isOver;
  }

  /** I/O belongs to the request that began it. */
  #requireCall() {
    if (this.#call.isOurs) return;
    const error = wrongContext();
    this.onMisuse?.(error);
    throw error;
  }

  /** The bytes that have arrived; null at the end. */
  async read() {
    this.#requireCall();
    if (this.#isOver) return null;
    const { meta, body } = await this.#ask(() => readTcp({ socket: this.#number }));
    if (body.length > 0) return body;
    return meta.ended ? null : this.read();
  }

  /** Resolves when there is room for more. */
  async write(bytes) {
    this.#requireCall();
    for (let at = 0; at < bytes.length; at += PIECE) {
      if (this.#isOver) throw new Error(LOST);
      await this.#ask(() => writeTcp({ socket: this.#number }, bytes.subarray(at, at + PIECE)));
    }
  }

  /** The peer gets no more bytes. */
  async end() {
    this.#requireCall();
    if (!this.#isOver) await this.#ask(() => writeTcp({ socket: this.#number, ended: true }));
  }

  async #ask(op) {
    try {
      return await this.#call.run(op);
    } catch (error) {
      throw new Error(LOST, { cause: error });
    }
  }

  /** Begins TLS; `tls`: { name, ca, unchecked }. */
  async secure(tls) {
    this.#requireCall();
    if (this.#isOver) throw new Error(LOST);
    const { meta } = await this.#call.run(() => secureTcp({ socket: this.#number, ...tls }));
    if (meta.failed === undefined) return;
    this.#end();
    throw new Error("connection attempt failed", { cause: new Error(meta.failed) });
  }

  /** Ends it in any state. */
  close() {
    if (this.#isOver) return;
    if (this.#call.isOurs) this.#call.run(() => closeTcp({ socket: this.#number }).catch(() => {}));
    this.#end();
  }

  #end() {
    this.#isOver = true;
    this.#call.release();
  }
}
