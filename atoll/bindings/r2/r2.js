// R2 as a worker sees it: env.NAME is an R2Bucket. The other half is ops.py, which checks everything.
// https://developers.cloudflare.com/r2/api/workers/workers-api-reference/
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { decodeText } from "#web/internal/text.js";
import { defineInterface } from "#web/internal/platform.js";
import { illegalConstructor, requireArguments, toUSVString } from "#web/internal/webidl.js";
import { sendValue, valueOf } from "./r2_content.js";
import { objectOf, objectWithBody } from "./r2_object.js";
import { getOptions, listOptions, metadataOf, putOptions } from "./r2_options.js";

const head = defineOp("r2.head");
const get = defineOp("r2.get");
const put = defineOp("r2.put");
const remove = defineOp("r2.delete");
const list = defineOp("r2.list");
const create = defineOp("r2.create");
const part = defineOp("r2.part");
const complete = defineOp("r2.complete");
const abort = defineOp("r2.abort");

const OURS = Symbol("ours");
const MOST_PARTS = 10_000;

function partNumberOf(value) {
  const number = Math.trunc(Number(value));
  if (number >= 1 && number <= MOST_PARTS) return number;
  throw new TypeError(`Part number must be between 1 and ${MOST_PARTS} (inclusive). Actual value was: ${number}`);
}

export class R2MultipartUpload {
  #binding;
  #key;
  #uploadId;

  constructor(key, binding, objectKey, uploadId) {
    if (key !== OURS) throw illegalConstructor();
    this.#binding = binding;
    this.#key = objectKey;
    this.#uploadId = uploadId;
  }

  get key() {
    return this.#key;
  }

  get uploadId() {
    return this.#uploadId;
  }

  #meta() {
    return { binding: this.#binding, key: this.#key, uploadId: this.#uploadId };
  }

  async uploadPart(partNumber, value, options = undefined) {
    requireArguments(arguments.length, 2, "R2MultipartUpload.uploadPart");
    const number = partNumberOf(partNumber);
    metadataOf(options ?? {}); // refuses ssecKey
    const { etag } = await sendValue(part, { ...this.#meta(), number }, valueOf(value), true);
    return { partNumber: number, etag };
  }

  async abort() {
    await abort(this.#meta());
  }

  async complete(uploadedParts) {
    requireArguments(arguments.length, 1, "R2MultipartUpload.complete");
    const parts = Array.from(uploadedParts, ({ partNumber, etag }) => [partNumberOf(partNumber), `${etag}`]);
    return objectOf((await complete({ ...this.#meta(), parts })).meta.object);
  }
}

export class R2Bucket {
  #name; // the name in env, never the bucket: the broker finds the grant

  constructor(name) {
    this.#name = name;
  }

  async head(key) {
    requireArguments(arguments.length, 1, "R2Bucket.head");
    const { meta } = await head({ binding: this.#name, key: toUSVString(key) });
    return meta.found ? objectOf(meta.object) : null;
  }

  async get(key, options = undefined) {
    requireArguments(arguments.length, 1, "R2Bucket.get");
    const { meta, body } = await get({ binding: this.#name, key: toUSVString(key), ...getOptions(options) });
    if (!meta.found) return null;
    if (meta.range === undefined) return objectOf(meta.object); // a condition does not hold
    return objectWithBody(this.#name, meta, body);
  }

  async put(key, value, options = undefined) {
    requireArguments(arguments.length, 2, "R2Bucket.put");
    const meta = { binding: this.#name, key: toUSVString(key), ...putOptions(options) };
    const { object } = await sendValue(put, meta, valueOf(value), false);
    return object === null ? null : objectOf(object);
  }

  async delete(keys) {
    requireArguments(arguments.length, 1, "R2Bucket.delete");
    const names = Array.isArray(keys) ? keys.map(toUSVString) : [toUSVString(keys)];
    await remove({ binding: this.#name, keys: names });
  }

  async list(options = undefined) {
    const asked = listOptions(options);
    const { meta, body } = await list({ binding: this.#name, ...asked });
    const { objects, groups } = JSON.parse(decodeText(body));
    const found = { objects: objects.map((facts) => objectOf(facts, asked.include)), truncated: meta.cursor !== null };
    if (found.truncated) found.cursor = meta.cursor;
    found.delimitedPrefixes = groups;
    return found;
  }

  async createMultipartUpload(key, options = undefined) {
    requireArguments(arguments.length, 1, "R2Bucket.createMultipartUpload");
    const name = toUSVString(key);
    const { meta } = await create({ binding: this.#name, key: name, ...metadataOf(options ?? {}) });
    return new R2MultipartUpload(OURS, this.#name, name, meta.uploadId);
  }

  resumeMultipartUpload(key, uploadId) {
    requireArguments(arguments.length, 2, "R2Bucket.resumeMultipartUpload");
    return new R2MultipartUpload(OURS, this.#name, toUSVString(key), toUSVString(uploadId));
  }
}

defineInterface(R2MultipartUpload);
defineInterface(R2Bucket, { describe: () => ({}) });
defineBinding("r2", R2Bucket);
