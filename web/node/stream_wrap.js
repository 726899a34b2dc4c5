// `node:_stream_wrap`: a socket over a stream, which node:tls makes itself here.
import { notImplemented } from "./http_common.js";

export default class JSStreamSocket {
  constructor() {
    throw notImplemented("JSStreamSocket");
  }
}
