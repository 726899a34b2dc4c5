// Known lengths of streams: the readable side of a FixedLengthStream, and a fetched body.
const lengths = new WeakMap();

export function setLength(stream, length) {
  lengths.set(stream, length);
}

/** The length in bytes, or undefined if it is unknown. */
export function lengthOfStream(stream) {
  return lengths.get(stream);
}
