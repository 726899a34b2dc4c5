// How long streams will be, of those that know: the readable side of a FixedLengthStream, and a fetched body.
const lengths = new WeakMap();

export function setLength(stream, length) {
  lengths.set(stream, length);
}

/** Undefined for a stream that does not know. */
export function lengthOfStream(stream) {
  return lengths.get(stream);
}
