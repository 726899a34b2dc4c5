// How large keys and values may be. Classes that were made with new_classes have limits of their own, from the time when each
// value was an entry of a remote store; SQLite itself limits the others.
import { sizeOf, writeValue } from "./keys.js";

const KEY_BYTES = 2048;
const VALUE_BYTES = 131_072;
const MOST_KEYS = 128;

const legacy = {
  key(key) {
    if (sizeOf(key) > KEY_BYTES) throw new RangeError(`Keys cannot be larger than ${KEY_BYTES} bytes.`);
  },

  keys(keys) {
    if (keys.length > MOST_KEYS) throw new RangeError(`Maximum number of keys is ${MOST_KEYS}.`);
    for (const key of keys) {
      if (sizeOf(key) > KEY_BYTES) throw new RangeError(`Key "${key}" is larger than the limit of ${KEY_BYTES} bytes.`);
    }
  },

  pairs(entries) {
    if (entries.length > MOST_KEYS) throw new RangeError(`Maximum number of pairs is ${MOST_KEYS}.`);
    this.keys(entries.map(([key]) => key));
  },

  value(key, value) {
    const bytes = writeValue(value);
    if (bytes.length > VALUE_BYTES) {
      throw new RangeError(`Values cannot be larger than ${VALUE_BYTES} bytes. A value of size ${bytes.length} was provided.`);
    }
    return bytes;
  },

  valueOf(key, value) {
    const bytes = writeValue(value);
    if (bytes.length > VALUE_BYTES) throw new RangeError(`Value for key "${key}" is above the limit of ${VALUE_BYTES} bytes.`);
    return bytes;
  },
};

const none = {
  key() {},
  keys() {},
  pairs() {},
  value: (key, value) => writeValue(value),
  valueOf: (key, value) => writeValue(value),
};

/** The checks of an object's storage. */
export function limitsOf(sql) {
  return sql ? none : legacy;
}
