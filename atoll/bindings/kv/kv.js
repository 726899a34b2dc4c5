// KV as a worker sees it: env.NAME is a KVNamespace. The other half is ops.py, which checks everything.
// https://developers.cloudflare.com/kv/api/
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { encodeText, decodeText } from "#web/internal/text.js";
import { defineInterface } from "#web/internal/platform.js";
import { bytesOf, isBufferSource, requireArguments, toUSVString } from "#web/internal/webidl.js";
import { Body, streamOf } from "#web/fetch/body.js";
import { isReadableStream } from "#web/streams/streams.js";

const get = defineOp("kv.get");
const read = defineOp("kv.read");
const getMany = defineOp("kv.get_many");
const list = defineOp("kv.list");
const put = defineOp("kv.put");
const upload = defineOp("kv.upload");
const remove = defineOp("kv.delete");

const TYPES = ["text", "json", "arrayBuffer", "stream"];
const PIECE = 1 << 20; // bytes of one piece of a value that is stored from a stream

// JSON has no NaN: numbers are sent as text, and Python checks them.
const number = (value) => (value === undefined || value === null ? undefined : `${value}`);

/** A key as a string; Python checks its length. */
function keyOf(value) {
  const key = toUSVString(value);
  if (key === "") throw new TypeError("Key name cannot be empty.");
  if (key === "." || key === "..") throw new TypeError(`"${key}" is not allowed as a key name.`);
  return key;
}

/** Metadata as JSON; undefined for none, and for values that JSON leaves out. */
function metadataOf(value) {
  return value === undefined || value === null ? undefined : JSON.stringify(value)?.toWellFormed();
}

function readOptions(options, isMany) {
  const { type = "text", cacheTtl } = typeof options === "string" ? { type: options } : (options ?? {});
  if (isMany && type !== "text" && type !== "json") {
    throw new Error(`KV GET_BULK failed: 400 "${type}" is not a valid type. Use "json" or "text"`);
  }
  if (!TYPES.includes(type)) {
    throw new TypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".');
  }
  return { type, cache_ttl: number(cacheTtl) };
}

function convert(type, body) {
  if (type === "arrayBuffer") return body.byteLength === body.buffer.byteLength ? body.buffer : body.slice().buffer;
  const text = decodeText(body);
  return type === "json" ? JSON.parse(text) : text;
}

/** A value that arrives as it is read. A large one has a `reader` for the pieces after the `first`. */
function sourceOf(binding, { reader, size }, first) {
  let next = first;
  let left = reader === undefined ? 0 : size - first.length;
  return {
    async read() {
      const piece = next;
      next = null;
      if (piece !== null) return piece;
      if (left === 0) return null;
      const { body } = await read({ binding, reader });
      left -= body.length;
      return body;
    },
    cancel() {
      next = null;
      if (left > 0) void read({ binding, reader, cancel: true }).catch(() => {});
      left = 0;
    },
  };
}

/** All of a large value, read piece by piece so that several do not flood the connection that all workers share. */
async function wholeOf(binding, { reader, size }, first) {
  const whole = new Uint8Array(size);
  whole.set(first);
  for (let at = first.length; at < size; ) {
    const { body } = await read({ binding, reader });
    whole.set(body, at);
    at += body.length;
  }
  return whole;
}

/** Sends a stream in pieces; returns the number of the upload, or the bytes themselves if the stream was short. */
async function uploadStream(binding, stream) {
  let pieces = [];
  let size = 0;
  let id;
  for await (const chunk of stream) {
    const bytes = typeof chunk === "string" ? encodeText(chunk) : chunk;
    if (!isBufferSource(bytes)) throw new TypeError("The stream given to KV put() holds something that is not bytes.");
    pieces.push(bytesOf(bytes));
    size += bytes.byteLength;
    if (size < PIECE) continue;
    id = (await upload({ binding, upload: id }, concat(pieces, size))).meta.upload;
    pieces = [];
    size = 0;
  }
  const last = concat(pieces, size);
  if (id === undefined) return { body: last };
  await upload({ binding, upload: id }, last);
  return { upload: id };
}

function concat(pieces, size) {
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function contentOf(binding, value) {
  if (typeof value === "string") return { body: encodeText(value) };
  if (isReadableStream(value)) return uploadStream(binding, value);
  if (isBufferSource(value)) return { body: bytesOf(value) };
  if (value !== null && typeof value !== "object" && typeof value !== "function") return { body: encodeText(`${value}`) };
  throw new TypeError("KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values.");
}

export class KVNamespace {
  #name; // the name in env, never the namespace: the broker finds the grant

  constructor(name) {
    this.#name = name;
  }

  async get(key, options) {
    requireArguments(arguments.length, 1, "KVNamespace.get");
    if (Array.isArray(key)) return this.#getMany(key, options, (value) => value);
    return (await this.#getOne(key, options)).value;
  }

  async getWithMetadata(key, options) {
    requireArguments(arguments.length, 1, "KVNamespace.getWithMetadata");
    if (Array.isArray(key)) return this.#getMany(key, options, (value, metadata) => ({ value, metadata }));
    return this.#getOne(key, options);
  }

  async put(key, value, options) {
    requireArguments(arguments.length, 2, "KVNamespace.put");
    const { expiration, expirationTtl, metadata } = options ?? {};
    const meta = {
      binding: this.#name,
      key: keyOf(key),
      expiration: number(expiration),
      ttl: number(expirationTtl),
      metadata: metadataOf(metadata),
    };
    const content = contentOf(this.#name, value);
    if (content instanceof Promise) {
      const { body, upload: id } = await content;
      await put({ ...meta, upload: id }, body);
    } else {
      await put(meta, content.body);
    }
  }

  async delete(key) {
    requireArguments(arguments.length, 1, "KVNamespace.delete");
    await remove({ binding: this.#name, key: keyOf(key) });
  }

  async list(options) {
    const { prefix, limit, cursor } = options ?? {};
    const { meta, body } = await list({
      binding: this.#name,
      prefix: prefix === undefined || prefix === null ? undefined : toUSVString(prefix),
      limit: number(limit),
      cursor: cursor === undefined || cursor === null ? undefined : `${cursor}`,
    });
    const keys = JSON.parse(decodeText(body));
    if (meta.cursor === null) return { keys, list_complete: true, cacheStatus: null };
    return { keys, list_complete: false, cursor: meta.cursor, cacheStatus: null };
  }

  async #getOne(key, options) {
    const { type, cache_ttl } = readOptions(options, false);
    const { meta, body } = await get({ binding: this.#name, key: keyOf(key), cache_ttl });
    if (!meta.found) return { value: null, metadata: null, cacheStatus: null };
    const name = this.#name;
    let value;
    if (type === "stream") value = streamOf(new Body(sourceOf(name, meta, body)));
    else value = convert(type, meta.reader === undefined ? body : await wholeOf(name, meta, body));
    return { value, metadata: JSON.parse(meta.metadata), cacheStatus: null };
  }

  async #getMany(keys, options, shape) {
    const { type, cache_ttl } = readOptions(options, true);
    const names = keys.map(toUSVString);
    const { meta, body: first } = await getMany({ binding: this.#name, keys: names, cache_ttl });
    const body = meta.reader === undefined ? first : await wholeOf(this.#name, meta, first);
    const found = new Map();
    let at = 0;
    names.forEach((name, i) => {
      const size = meta.sizes[i];
      let value = null;
      if (size !== null) {
        value = textOf(type, body.subarray(at, at + size));
        at += size;
      }
      found.set(name, value === null ? null : shape(value, JSON.parse(meta.metadata[i])));
    });
    return found;
  }
}

function textOf(type, bytes) {
  const text = decodeText(bytes);
  if (type === "text") return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("KV GET_BULK failed: 400 At least one of the requested keys corresponds to a non-json value");
  }
}

defineInterface(KVNamespace, { describe: () => ({}) });
defineBinding("kv", KVNamespace);
