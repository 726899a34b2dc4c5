// Content that handlers insert: strings, streams and the bodies of responses.
import { Utf8Decoder } from "../encoding/decoders.js";
import { isResponse } from "../fetch/outgoing.js";
import { toUSVString } from "../internal/webidl.js";
import { isReadableStream, readNext } from "../streams/streams.js";

const SPECIAL = /[&<>]/g;
const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const PIECE = 65_536; // characters of a long string that are written at once

/** A string, or a stream. */
export function toContent(value) {
  if (isReadableStream(value)) return value;
  if (!isResponse(value)) return toUSVString(value);
  return value.body ?? "";
}

function escapeText(text, html) {
  return html ? text : text.replace(SPECIAL, (character) => ESCAPED[character]);
}

/** Yields the text of a content in pieces, escaped unless it is HTML. */
export async function* textPieces(content, html) {
  if (typeof content === "string") {
    for (let at = 0; at < content.length; ) {
      // A pair of surrogates stays together.
      const end = at + PIECE + (isLead(content.charCodeAt(at + PIECE - 1)) ? 1 : 0);
      yield escapeText(content.slice(at, end), html);
      at = end;
    }
    return;
  }
  const reader = content.getReader();
  try {
    const decoder = new Utf8Decoder(true, true);
    for (let bytes; (bytes = await readNext(reader)) !== null; ) yield escapeText(decoded(() => decoder.write(bytes)), html);
    yield escapeText(decoded(() => decoder.end(new Uint8Array(0))), html);
  } catch (error) {
    reader.cancel(error).catch(() => {});
    throw error;
  }
}

function isLead(code) {
  return code >= 0xd800 && code <= 0xdbff;
}

function decoded(decode) {
  try {
    return decode();
  } catch {
    throw new TypeError("Parser error: Invalid UTF-8");
  }
}
