// https://nodejs.org/api/http2.html: only constants and settings; a worker speaks HTTP through fetch.
import { Buffer } from "./buffer.js";
import { constants } from "./http2_constants.js";
import { notImplemented } from "./http_common.js";

export { constants };
export const sensitiveHeaders = Symbol("nodejs.http2.sensitiveHeaders");

export class Http2ServerRequest {
  constructor() {
    throw notImplemented("http2.Http2ServerRequest");
  }
}

export class Http2ServerResponse {
  constructor() {
    throw notImplemented("http2.Http2ServerResponse");
  }
}

export function connect() {
  throw notImplemented("http2.connect");
}

export function createServer() {
  throw notImplemented("http2.createServer");
}

export function createSecureServer() {
  throw notImplemented("http2.createSecureServer");
}

export function performServerHandshake() {
  throw notImplemented("http2.performServerHandshake");
}

const DEFAULTS = {
  headerTableSize: 4096, enablePush: true, initialWindowSize: 65535, maxFrameSize: 16384, maxConcurrentStreams: 4294967295,
  maxHeaderSize: 65535, maxHeaderListSize: 65535, enableConnectProtocol: false,
};

export function getDefaultSettings() {
  return Object.create(DEFAULTS);
}

export function getPackedSettings() {
  return Buffer.alloc(0);
}

export function getUnpackedSettings() {
  return {};
}
