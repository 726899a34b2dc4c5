// The payload of messages: what a worker gives to send() and gets in an event.
import { Blob, blobBytes, isBlob } from "../file/blob.js";
import { decodeText, encodeText } from "../internal/text.js";
import { bytesOf, copyBytes, isBufferSource, toUSVString } from "../internal/webidl.js";

export const TEXT = 1;
export const BINARY = 2;

/** https://www.rfc-editor.org/rfc/rfc6455#section-7.4: codes that a server may send. */
export function isOfServers(code) {
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

/** Kind and bytes of a message. */
export function encode(data) {
  if (isBufferSource(data)) return [BINARY, copyBytes(data)];
  if (isBlob(data)) return [BINARY, bytesOf(blobBytes(data))];
  return [TEXT, encodeText(toUSVString(data))];
}

export function decode({ kind, bytes }, binaryType) {
  if (kind === TEXT) return decodeText(bytes);
  const buffer = bytes.slice().buffer;
  return binaryType === "blob" ? new Blob([buffer]) : buffer;
}
