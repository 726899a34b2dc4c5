// Known lengths of streams: the readable side of a FixedLengthStream, a fetched body, and `expectedLength` of a source.
const lengths = new WeakMap();

export function setLength(stream, length) {
  lengths.set(stream, length);
}

/** What a worker gives as a length. */
export function toLength(value) {
  const length = Number(value);
  if (length < 0) throw new TypeError("The value cannot be converted because it is negative and this API expects a positive bigint.");
  if (Number.isSafeInteger(length)) return length;
  throw new TypeError("The value cannot be converted because it is not an integer.");
}

/** The length in bytes, or undefined if it is unknown. */
export function lengthOfStream(stream) {
  return lengths.get(stream);
}
