// https://nodejs.org/api/webstreams.html#utility-consumers: reads a whole stream of Node or of the web, or any iterable.
import { TextDecoder } from "../encoding/text_decoder.js";
import { Blob } from "../file/blob.js";
import { Buffer } from "./buffer.js";

async function chunks(stream) {
  const all = [];
  for await (const chunk of stream) all.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  return all;
}

export async function buffer(stream) {
  return Buffer.concat(await chunks(stream));
}

export async function arrayBuffer(stream) {
  const { buffer: bytes, byteOffset, byteLength } = await buffer(stream);
  return bytes.slice(byteOffset, byteOffset + byteLength);
}

export async function bytes(stream) {
  return new Uint8Array(await arrayBuffer(stream));
}

export async function blob(stream) {
  return new Blob(await chunks(stream));
}

export async function text(stream) {
  const decoder = new TextDecoder();
  let all = "";
  for await (const chunk of stream) all += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  return all + decoder.decode();
}

export async function json(stream) {
  return JSON.parse(await text(stream));
}
