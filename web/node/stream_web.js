// https://nodejs.org/api/webstreams.html: the web streams under Node's module name.
export {
  ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStream, ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader, TransformStream,
  TransformStreamDefaultController, WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter,
} from "../streams/streams.js";
export const { CompressionStream, DecompressionStream, TextDecoderStream, TextEncoderStream } = globalThis;
