// R2Object and R2ObjectBody: https://developers.cloudflare.com/r2/api/workers/workers-api-reference/#r2object-definition
import { defineInterface } from "#web/internal/platform.js";
import { illegalConstructor } from "#web/internal/webidl.js";
import { Body, bodyArrayBuffer, bodyBlob, bodyBytes, bodyJson, bodyText, isUsed, streamOf } from "#web/fetch/body.js";
import { StoredContent } from "./r2_content.js";
import { writeHttp } from "./r2_options.js";

const OURS = Symbol("ours");
const USED = "Body has already been used. It can only be used once. Use tee() first if you need to read it twice.";

export class R2Checksums {
  #hex;

  constructor(key, hex) {
    if (key !== OURS) throw illegalConstructor();
    this.#hex = hex;
  }

  #bytes(name) {
    const hex = this.#hex[name];
    return hex === undefined ? undefined : Uint8Array.fromHex(hex).buffer;
  }

  get md5() {
    return this.#bytes("md5");
  }

  get sha1() {
    return this.#bytes("sha1");
  }

  get sha256() {
    return this.#bytes("sha256");
  }

  get sha384() {
    return this.#bytes("sha384");
  }

  get sha512() {
    return this.#bytes("sha512");
  }

  toJSON() {
    return { ...this.#hex };
  }
}

function httpOf({ cacheExpiry, ...rest }) {
  return cacheExpiry === undefined ? rest : { ...rest, cacheExpiry: new Date(cacheExpiry) };
}

export class R2Object {
  /** `facts` as ops.py sends them; `includes` are the metadata that they have. */
  constructor(key, facts, includes, range) {
    if (key !== OURS) throw illegalConstructor();
    this.key = facts.key;
    this.version = facts.version;
    this.size = facts.size;
    this.etag = facts.etag;
    this.httpEtag = `"${facts.etag}"`;
    this.checksums = new R2Checksums(OURS, facts.checksums);
    this.uploaded = new Date(facts.uploaded);
    this.httpMetadata = includes.includes("httpMetadata") ? httpOf(facts.http) : undefined;
    this.customMetadata = includes.includes("customMetadata") ? facts.custom : undefined;
    this.range = range;
    this.storageClass = facts.storageClass;
    this.ssecKeyMd5 = undefined;
  }

  writeHttpMetadata(headers) {
    if (this.httpMetadata === undefined) {
      throw new TypeError(
        `HTTP metadata unknown for key \`${this.key}\`. Did you forget to add 'httpMetadata' to \`include\` when listing?`,
      );
    }
    writeHttp(this.httpMetadata, headers);
  }
}

export class R2ObjectBody extends R2Object {
  #body;

  constructor(key, facts, includes, range, source) {
    super(key, facts, includes, range);
    this.#body = new Body(source);
  }

  get body() {
    return streamOf(this.#body);
  }

  get bodyUsed() {
    return isUsed(this.#body);
  }

  #unused() {
    if (isUsed(this.#body)) throw new TypeError(USED);
    return this.#body;
  }

  async arrayBuffer() {
    return bodyArrayBuffer(this.#unused());
  }

  async bytes() {
    return bodyBytes(this.#unused());
  }

  async text() {
    return bodyText(this.#unused());
  }

  async json() {
    return bodyJson(this.#unused());
  }

  async blob() {
    return bodyBlob(this.#unused(), this.httpMetadata.contentType ?? "");
  }
}

const ALL = ["httpMetadata", "customMetadata"];

export function objectOf(facts, includes = ALL) {
  return new R2Object(OURS, facts, includes, undefined);
}

/** An object with its content: `first` is its first piece, or all of it if there is no `reader`. */
export function objectWithBody(binding, { object, range, reader, whole }, first) {
  const source = reader === undefined ? first : new StoredContent(binding, reader, first, range.length, whole);
  return new R2ObjectBody(OURS, object, ALL, range, source);
}

defineInterface(R2Checksums);
defineInterface(R2Object);
defineInterface(R2ObjectBody);
