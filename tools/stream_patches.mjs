// Where the streams of workers differ from the standard, as they do at Cloudflare. Each entry is [why, what the library has, how often,
// what takes its place]; tools/hide_streams.mjs applies them to the library's text while it is bundled.
const BEHAVIOURS = [
  [
    "a byte stream without `autoAllocateChunkSize` has a byobRequest for a default reader too; the platform's own streams do not",
    /autoAllocateChunkSize:void 0===o\?void 0:/g,
    1,
    "autoAllocateChunkSize:void 0===o?$chunkSize(r,s):",
  ],
  [
    "start() that throws makes a stream that has failed",
    /\(\)=>t\.start\((\w)\)/g,
    3,
    "()=>$tried(()=>t.start($1))",
  ],
  ["a transformer may say how long its output is", /void 0!==i\.start\?(?=b\(i\.start\(this\._transformStreamController\)\))/g, 1, "$expect(this._readable,e),void 0!==i.start?"],
  ["the same for a TransformStream", /b\(i\.start\((this\._transformStreamController)\)\)/g, 1, "b($tried(()=>i.start($1)))"],
  [
    "cancel() of one branch of tee() settles at once, and the source learns the latest reason",
    /\{if\((\w)=!0,(\w)=(\w),(\w)\)\{const \w=le\(\[\w,\w\]\),\w=Mr\(e,\w\);(\w)\(\w\)\}return (\w)\}/g,
    4,
    "{if($1=!0,$2=$3,$4)$5(Mr(e,$3));return $4?$6:Promise.resolve()}",
  ],
  [
    "readAtLeast() at the end of a stream returns what is left",
    /if\(e\._closeRequested\)\{(?=const t=new TypeError\("Insufficient bytes)/g,
    1,
    "if(e._closeRequested){if(d.bytesFilled>0&&d.bytesFilled%d.elementSize===0){const t=De(d);return Ye(e),void o._chunkSteps(t)}",
  ],
  [
    "the size function of a strategy is ignored for a byte stream",
    /if\(void 0!==r\.size\)throw new RangeError\("The strategy for a byte stream cannot have a size function"\);/g,
    1,
    "",
  ],
  ["the source of a stream may say how long it is", /if\(Lr\(this\),"bytes"===o\.type\)/g, 1, 'if(Lr(this),$expect(this,e),"bytes"===o.type)'],
  ["an answer that is too long says how long", /"bytesWritten out of range"/g, 1, "`Too many bytes [${t}] in response to a BYOB read request.`"],
  ["an unknown type of a WritableStream is ignored", /if\(void 0!==o\.type\)throw new RangeError\("Invalid type is specified"\);/g, 1, ""],
];

const READER_LOCKED = "This ReadableStream is currently locked to a reader.";
const WRITER_LOCKED = "This WritableStream is currently locked to a writer.";
const READER_RELEASED = "This ReadableStream reader has been released.";
const WRITER_RELEASED = "This WritableStream writer has been released.";
const CLOSED = "This WritableStream has been closed.";

// Texts of errors, which code compares.
const TEXTS = {
  '"This stream has already been locked for exclusive reading by another reader"': READER_LOCKED,
  '"This stream has already been locked for exclusive writing by another writer"': WRITER_LOCKED,
  '"Cannot construct a ReadableStreamBYOBReader for a stream not constructed with a byte source"': "This ReadableStream does not support BYOB reads.",
  '"Cannot cancel a stream that already has a reader"': READER_LOCKED,
  '"Cannot close a stream that already has a writer"': WRITER_LOCKED,
  '"Cannot abort a stream that already has a writer"': WRITER_LOCKED,
  '"ReadableStream.prototype.pipeTo cannot be used on a locked ReadableStream"': READER_LOCKED,
  '"ReadableStream.prototype.pipeThrough cannot be used on a locked ReadableStream"': READER_LOCKED,
  '"ReadableStream.prototype.pipeTo cannot be used on a locked WritableStream"': "This WritableStream is currently locked to a writer",
  '"ReadableStream.prototype.pipeThrough cannot be used on a locked WritableStream"': "This WritableStream is currently locked to a writer",
  '"ReadableStream.prototype.pipeTo\'s first argument must be a WritableStream"':
    "Failed to execute 'pipeTo' on 'ReadableStream': parameter 1 is not of type 'WritableStream'.",
  '"Cannot "+e+" a stream using a released reader"': READER_RELEASED,
  '"Cannot "+e+" a stream using a released writer"': WRITER_RELEASED,
  '"Reader was released and can no longer be used to monitor the stream\'s closedness"': READER_RELEASED,
  '"Reader was released"': READER_RELEASED,
  '"Writer was released and can no longer be used to monitor the stream\'s closedness"': WRITER_RELEASED,
  '"The stream is closing or closed and cannot be written to"': CLOSED,
  "`The stream (in ${t} state) is not in the writable state and cannot be closed`": CLOSED,
  '"The stream is not in a state that permits enqueue"': "Unable to enqueue",
  '"The stream is not in a state that permits close"': "This ReadableStream is closed.",
  '"The stream has already been closed; do not close it again!"': "This ReadableStream is closed.",
  "`The stream (in ${e} state) is not in the readable state and cannot be closed`": "This ReadableStream is closed.",
  "`The stream (in ${t} state) is not in the readable state and cannot be enqueued to`": "Unable to enqueue",
  '"stream is closed or draining"': "Unable to enqueue",
  '"chunk must be an array buffer view"': "Failed to execute 'enqueue' on 'ReadableByteStreamController': parameter 1 is not of type 'BufferSource'.",
  '"chunk must have non-zero byteLength"': "Cannot enqueue a zero-length ArrayBuffer.",
  '"chunk\'s buffer must have non-zero byteLength"': "Cannot enqueue a zero-length ArrayBuffer.",
  '"view must be an array buffer view"': "Failed to execute 'read' on 'ReadableStreamBYOBReader': parameter 1 is not of type 'ArrayBufferView'.",
  '"view must have non-zero byteLength"': 'You must call read() on a "byob" reader with a positive-sized TypedArray object.',
  '"view\'s buffer must have non-zero byteLength"': 'You must call read() on a "byob" reader with a positive-sized TypedArray object.',
  '"This BYOB request has been invalidated"': "This ReadableStreamBYOBRequest has been invalidated.",
  '"bytesWritten must be greater than 0 when calling respond() on a readable stream"': "The bytesWritten must be more than zero while the stream is open.",
  '"The buffer of view has different capacity than byobRequest"': "The underlying ArrayBuffer is not the correct length.",
  '"options.min must be greater than 0"': "Requested invalid minimum number of bytes to read (0).",
  '"autoAllocateChunkSize must be greater than 0"': "The autoAllocateChunkSize option cannot be zero.",
  '"Insufficient bytes to fill elements in the given buffer"': "Insufficient bytes to fill elements in the given buffer",
  "`${t} '${e}' is not a valid enumeration value for ReadableStreamReaderMode`": "mode must be undefined or 'byob' in call to getReader().",
};

export function patchStreams(source) {
  let text = source;
  for (const [why, pattern, count, replacement] of BEHAVIOURS) {
    if (text.match(pattern)?.length !== count) throw new Error(`tools/stream_patches.mjs does not find the place for: ${why}`);
    text = text.replace(pattern, replacement);
  }
  for (const [there, wanted] of Object.entries(TEXTS)) {
    if (!text.includes(there)) throw new Error(`tools/stream_patches.mjs does not find the text ${there}`);
    text = text.replaceAll(there, JSON.stringify(wanted));
  }
  return text.replace(
    "`${t} '${e}' is not a valid enumeration value for ReadableStreamType`",
    '`"${e}" is not a valid type of ReadableStream.`',
  );
}

/** The functions that the patches use. Sources of the platform have the property PLAIN. */
export const PATCH_HELPERS = `
  export const PLAIN = Symbol("plain");
  let $isPlain = false;
  export const setPlainByteStreams = (isPlain) => { $isPlain = isPlain; };
  const $chunkSize = (source, type) => (type === "bytes" && !$isPlain && source[PLAIN] !== true ? 4096 : undefined);
  let $told = () => {};
  export const onExpectedLength = (told) => { $told = told; };
  const $expect = (stream, source) => {
    const expected = source === null ? undefined : source.expectedLength;
    if (expected !== undefined && expected !== null) $told(stream, expected);
  };
  const $tried = (start) => { try { return start(); } catch (error) { return Promise.reject(error); } };
`;
