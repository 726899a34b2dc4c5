// https://nodejs.org/api/tls.html: connections over TLS. Python has the handshake, the keys and the trusted certificates.
import { Buffer } from "./buffer.js";
import { codedError, invalidArgument, outOfRange } from "./errors.js";
import { closedBefore, withCode } from "./net_errors.js";
import { isIP } from "./net_addresses.js";
import { normalizeArgs } from "./net_options.js";
import { Socket } from "./net_socket.js";
import { createSecureContext, SecureContext } from "./tls_context.js";
import { checkServerIdentity } from "./tls_identity.js";

export { checkServerIdentity, createSecureContext, SecureContext };

export const CLIENT_RENEG_LIMIT = 3;
export const CLIENT_RENEG_WINDOW = 600;
export const DEFAULT_CIPHERS = "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:HIGH:!aNULL:!eNULL";
export const DEFAULT_ECDH_CURVE = "auto";
export const DEFAULT_MIN_VERSION = "TLSv1.2";
export const DEFAULT_MAX_VERSION = "TLSv1.3";
export const rootCertificates = Object.freeze([]); // those of the node are its own

function refuse(name) {
  throw codedError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The ${name} method is not implemented`);
}

/** A TLS connection of its own, or over an open socket. */
export function TLSSocket(socket, options = {}) {
  if (!(this instanceof TLSSocket)) return new TLSSocket(socket, options);
  const { secureContext, allowHalfOpen, signal, highWaterMark, onread } = options;
  if (secureContext !== undefined && !(secureContext instanceof SecureContext)) {
    throw codedError(TypeError, "ERR_TLS_INVALID_CONTEXT", "secureContext must be a SecureContext");
  }
  if (options.isServer) refuse("tls.TLSSocket as a server");
  Socket.call(this, { allowHalfOpen: socket?.allowHalfOpen ?? allowHalfOpen, signal, highWaterMark, onread });
  this._tlsOptions = options;
  this._context = (secureContext ?? new SecureContext(options)).context;
  this.encrypted = true;
  this.authorized = false;
  this.authorizationError = null;
  this.alpnProtocol = false;
  this.servername = options.servername ?? null;
  if (socket !== undefined && socket !== null) adopt(this, socket);
}

Object.setPrototypeOf(TLSSocket.prototype, Socket.prototype);
Object.setPrototypeOf(TLSSocket, Socket);

/** TLS over a socket that is connected, or will be. */
function adopt(secure, socket) {
  if (!(socket instanceof Socket)) {
    throw invalidArgument("options.socket", "an instance of net.Socket", socket);
  }
  secure.connecting = true;
  secure._parent = socket;
  const begin = () => {
    const handle = socket._handle;
    if (handle === null || secure.destroyed) {
      secure.destroy(secure.destroyed ? undefined : closedBefore());
      return;
    }
    socket._handle = null; // it reads and writes no more
    handle.reading = false;
    secure._handle = handle;
    secure._host = socket._host;
    handle.port.onMisuse = (error) => secure.destroy(error);
    handle.port.secure(secure._tlsWish({ host: socket._host })).then(
      () => secure._handle === handle && secure._connected(),
      (error) => secure._handle === handle && secure.destroy(withCode(error)),
    );
  };
  socket.once("close", () => secure.destroy());
  secure.once("close", () => socket.destroy());
  if (socket.connecting) socket.once("connect", begin);
  else begin();
}

const methods = {
  _tlsWish({ host }) {
    const { servername, rejectUnauthorized } = this._tlsOptions;
    const name = servername || (typeof host === "string" && !isIP(host) ? host : undefined);
    return { name, ca: this._context.ca || undefined, unchecked: rejectUnauthorized === false || undefined };
  },

  _connected() {
    this.authorized = this._tlsOptions.rejectUnauthorized !== false;
    if (!this.authorized) this.authorizationError = "the certificate was not checked";
    Socket.prototype._connected.call(this);
    this.emit("secure");
    this.emit("secureConnect");
  },

  disableRenegotiation() {},
  enableTrace() {},
  setServername(name) {
    if (typeof name !== "string") throw invalidArgument("name", "of type string", name);
    this._tlsOptions = { ...this._tlsOptions, servername: name };
    this.servername = name;
  },
  setMaxSendFragment: () => false,
  setSession() {},
  getSession: () => undefined,
  getTLSTicket: () => undefined,
  isSessionReused: () => false,
  getPeerCertificate: () => ({}),
  getPeerX509Certificate: () => undefined,
  getCertificate: () => ({}),
  getX509Certificate: () => undefined,
  getEphemeralKeyInfo: () => ({}),
  getFinished: () => undefined,
  getPeerFinished: () => undefined,
  getSharedSigalgs: () => [],
  getCipher() {
    return this._handle === null ? undefined : { name: "TLS_AES_256_GCM_SHA384", standardName: "TLS_AES_256_GCM_SHA384", version: "TLSv1.3" };
  },
  getProtocol() {
    return this._handle === null ? null : "TLSv1.3";
  },
  exportKeyingMaterial: () => refuse("exportKeyingMaterial"),
  renegotiate: () => refuse("renegotiate"),
};

for (const [name, value] of Object.entries(methods)) {
  Object.defineProperty(TLSSocket.prototype, name, { value, writable: true, configurable: true });
}

/** (options), (port, options) or (port, host, options), each with a listener. */
function readArguments(args) {
  const [options, listener] = normalizeArgs(args);
  const more = args.slice(1).find((value) => typeof value === "object" && value !== null);
  return [more === undefined || more === options ? options : { ...options, ...more }, listener];
}

/** https://nodejs.org/api/tls.html#tlsconnectoptions-callback */
export function connect(...args) {
  const [options, listener] = readArguments(args);
  const socket = new TLSSocket(options.socket, options);
  if (listener !== null) socket.once("secureConnect", listener);
  if (options.socket !== undefined && options.socket !== null) return socket;
  if (options.timeout) socket.setTimeout(options.timeout);
  if (socket._aborted) return socket;
  return socket.connect(options);
}

export function createServer() {
  refuse("tls.createServer");
}

export function Server() {
  refuse("tls.Server");
}

export function getCiphers() {
  return ["tls_aes_128_gcm_sha256", "tls_aes_256_gcm_sha384", "tls_chacha20_poly1305_sha256"];
}

export function getCACertificates() {
  return [];
}

/** https://nodejs.org/api/tls.html: names of protocols in the form of the extension: each with its length before it. */
export function convertALPNProtocols(protocols, out) {
  if (Array.isArray(protocols)) {
    const names = protocols.map((name) => Buffer.from(name));
    const long = names.findIndex((name) => name.length > 255);
    if (long !== -1) {
      const what = `The byte length of the protocol at index ${long} exceeds the maximum length.`;
      const error = outOfRange("protocols", "<= 255", names[long].length);
      error.message = `${what} It must be <= 255. Received ${names[long].length}`;
      throw error;
    }
    out.ALPNProtocols = Buffer.concat(names.flatMap((name) => [Buffer.from([name.length]), name]));
  } else if (ArrayBuffer.isView(protocols)) {
    out.ALPNProtocols = Buffer.from(new Uint8Array(protocols.buffer, protocols.byteOffset, protocols.byteLength));
  }
}
