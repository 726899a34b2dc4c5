// https://developers.cloudflare.com/analytics/analytics-engine/get-started/: a dataset that a worker writes to. The other half is ops.py.
import { console } from "#web/console.js";
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { defineInterface } from "#web/internal/platform.js";
import { encodeText } from "#web/internal/text.js";

const write = defineOp("analytics_engine.write", "The request is over.", { gated: false });

const MAX_INDEX_BYTES = 96;
const MAX_MEMBERS = 20;
const MAX_BLOB_BYTES = 16_000;
const PREFIX = "writeDataPoint(): ";

/** A member as a list, or an empty list if it is not given. */
function listOf(event, name) {
  const value = event[name];
  if (value === undefined || value === null) return [];
  if (typeof value !== "object" || typeof value[Symbol.iterator] !== "function") {
    throw new TypeError(`${PREFIX}\`${name}\` is not an array.`);
  }
  return Array.from(value);
}

function bytesOf(value) {
  if (value === undefined || value === null) return null;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return encodeText(`${value}`);
}

function checkCount(list, most, what) {
  if (list.length > most) throw new TypeError(`${PREFIX}Maximum of ${most} ${what} supported.`);
}

export class AnalyticsEngine {
  #name;

  constructor(name) {
    this.#name = name;
  }

  writeDataPoint(event = undefined) {
    if (event !== undefined && event !== null && typeof event !== "object") throw new TypeError(`${PREFIX}the data point is not an object.`);
    const given = event ?? {};
    const indexes = listOf(given, "indexes");
    checkCount(indexes, 1, "indexes");
    const index = bytesOf(indexes[0]);
    if (index !== null && index.length > MAX_INDEX_BYTES) {
      throw new TypeError(`${PREFIX}Size of indexes[0] exceeds ${MAX_INDEX_BYTES} bytes).`);
    }
    const blobs = listOf(given, "blobs").map(bytesOf);
    checkCount(blobs, MAX_MEMBERS, "blobs");
    if (blobs.reduce((sum, blob) => sum + (blob?.length ?? 0), 0) > MAX_BLOB_BYTES) {
      throw new TypeError(`${PREFIX}Cumulative size of blobs exceeds ${MAX_BLOB_BYTES} bytes).`);
    }
    const doubles = Float64Array.from(listOf(given, "doubles"), Number);
    checkCount(doubles, MAX_MEMBERS, "doubles");
    this.#write(doubles, index, blobs);
  }

  /** The doubles come first in the body, then the index and the blobs. */
  #write(doubles, index, blobs) {
    const parts = [new Uint8Array(doubles.buffer), index, ...blobs];
    const body = new Uint8Array(parts.reduce((sum, part) => sum + (part?.length ?? 0), 0));
    let at = 0;
    for (const part of parts) {
      if (part === null) continue;
      body.set(part, at);
      at += part.length;
    }
    const sizes = blobs.map((blob) => blob?.length ?? null);
    const wrote = write({ binding: this.#name, doubles: doubles.length, index: index?.length ?? null, blobs: sizes }, body);
    // The worker does not wait for it, so a point that was not stored is said in the log.
    wrote.then(null, (error) => console.warn(`${PREFIX}the data point was not stored: ${error.message}`));
  }
}

defineInterface(AnalyticsEngine, { describe: () => ({}) });
defineBinding("analytics_engine", AnalyticsEngine);
