// Streams: https://streams.spec.whatwg.org/

interface QueuingStrategy<Chunk = any> {
  highWaterMark?: number;
  size?(chunk: Chunk): number;
}

declare class ByteLengthQueuingStrategy implements QueuingStrategy<ArrayBufferView> {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk?: any) => number;
}

declare class CountQueuingStrategy implements QueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk?: any) => number;
}

interface UnderlyingDefaultSource<Chunk = any> {
  type?: undefined;
  start?(controller: ReadableStreamDefaultController<Chunk>): unknown;
  pull?(controller: ReadableStreamDefaultController<Chunk>): void | PromiseLike<void>;
  cancel?(reason?: any): void | PromiseLike<void>;
}

interface UnderlyingByteSource {
  type: "bytes";
  autoAllocateChunkSize?: number;
  start?(controller: ReadableByteStreamController): unknown;
  pull?(controller: ReadableByteStreamController): void | PromiseLike<void>;
  cancel?(reason?: any): void | PromiseLike<void>;
}

interface StreamPipeOptions {
  preventAbort?: boolean;
  preventCancel?: boolean;
  preventClose?: boolean;
  signal?: AbortSignal;
}

interface ReadableWritablePair<Out = any, In = any> {
  readable: ReadableStream<Out>;
  writable: WritableStream<In>;
}

type ReadableStreamReadResult<Chunk> = { done: false; value: Chunk } | { done: true; value: Chunk | undefined };

declare class ReadableStream<Chunk = any> implements AsyncIterable<Chunk> {
  constructor(source: UnderlyingByteSource, strategy?: { highWaterMark?: number });
  constructor(source?: UnderlyingDefaultSource<Chunk>, strategy?: QueuingStrategy<Chunk>);
  static from<Chunk>(iterable: Iterable<Chunk | PromiseLike<Chunk>> | AsyncIterable<Chunk>): ReadableStream<Chunk>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(options: { mode: "byob" }): ReadableStreamBYOBReader;
  getReader(options?: { mode?: undefined }): ReadableStreamDefaultReader<Chunk>;
  pipeThrough<Out>(transform: ReadableWritablePair<Out, Chunk>, options?: StreamPipeOptions): ReadableStream<Out>;
  pipeTo(destination: WritableStream<Chunk>, options?: StreamPipeOptions): Promise<void>;
  tee(): [ReadableStream<Chunk>, ReadableStream<Chunk>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<Chunk>;
  [Symbol.asyncIterator](options?: { preventCancel?: boolean }): AsyncIterableIterator<Chunk>;
}

declare class ReadableStreamDefaultReader<Chunk = any> {
  constructor(stream: ReadableStream<Chunk>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read(): Promise<ReadableStreamReadResult<Chunk>>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBReader {
  constructor(stream: ReadableStream<Uint8Array>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read<View extends ArrayBufferView>(view: View, options?: { min?: number }): Promise<ReadableStreamReadResult<View>>;
  readAtLeast<View extends ArrayBufferView>(min: number, view: View): Promise<ReadableStreamReadResult<View>>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBRequest {
  /** Bytes that the reader wants at least. */
  readonly atLeast: number | null;
  private constructor();
  readonly view: Uint8Array<ArrayBuffer> | null;
  respond(bytesWritten: number): void;
  respondWithNewView(view: ArrayBufferView): void;
}

declare class ReadableStreamDefaultController<Chunk = any> {
  private constructor();
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk?: Chunk): void;
  error(reason?: any): void;
}

declare class ReadableByteStreamController {
  private constructor();
  readonly byobRequest: ReadableStreamBYOBRequest | null;
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk: ArrayBufferView): void;
  error(reason?: any): void;
}

interface UnderlyingSink<Chunk = any> {
  type?: undefined;
  start?(controller: WritableStreamDefaultController): unknown;
  write?(chunk: Chunk, controller: WritableStreamDefaultController): void | PromiseLike<void>;
  close?(): void | PromiseLike<void>;
  abort?(reason?: any): void | PromiseLike<void>;
}

declare class WritableStream<Chunk = any> {
  constructor(sink?: UnderlyingSink<Chunk>, strategy?: QueuingStrategy<Chunk>);
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamDefaultWriter<Chunk>;
}

declare class WritableStreamDefaultWriter<Chunk = any> {
  constructor(stream: WritableStream<Chunk>);
  readonly closed: Promise<void>;
  readonly desiredSize: number | null;
  readonly ready: Promise<void>;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  releaseLock(): void;
  write(chunk?: Chunk): Promise<void>;
}

declare class WritableStreamDefaultController {
  private constructor();
  readonly signal: AbortSignal;
  error(reason?: any): void;
}

interface Transformer<In = any, Out = any> {
  readableType?: undefined;
  writableType?: undefined;
  start?(controller: TransformStreamDefaultController<Out>): unknown;
  transform?(chunk: In, controller: TransformStreamDefaultController<Out>): void | PromiseLike<void>;
  flush?(controller: TransformStreamDefaultController<Out>): void | PromiseLike<void>;
  cancel?(reason?: any): void | PromiseLike<void>;
}

declare class TransformStream<In = any, Out = any> {
  constructor(
    transformer?: Transformer<In, Out>,
    writableStrategy?: QueuingStrategy<In>,
    readableStrategy?: QueuingStrategy<Out>,
  );
  readonly readable: ReadableStream<Out>;
  readonly writable: WritableStream<In>;
}

declare class TransformStreamDefaultController<Out = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk?: Out): void;
  error(reason?: any): void;
  terminate(): void;
}

type BytesOf = ArrayBuffer | ArrayBufferView;

// https://compression.spec.whatwg.org/
type CompressionFormat = "gzip" | "deflate" | "deflate-raw";

declare class CompressionStream {
  constructor(format: CompressionFormat);
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<BytesOf>;
}

declare class DecompressionStream {
  constructor(format: CompressionFormat);
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<BytesOf>;
}

// https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/
declare class IdentityTransformStream {
  constructor(options?: { highWaterMark?: number });
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<BytesOf>;
}

declare class FixedLengthStream extends IdentityTransformStream {
  constructor(length: number | bigint, options?: { highWaterMark?: number });
}

// Text: https://encoding.spec.whatwg.org/

declare class TextEncoder {
  constructor();
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}

interface TextDecoderOptions {
  fatal?: boolean;
  ignoreBOM?: boolean;
}

declare class TextDecoder {
  constructor(label?: string, options?: TextDecoderOptions);
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: BytesOf, options?: { stream?: boolean }): string;
}

declare class TextEncoderStream {
  constructor();
  readonly encoding: "utf-8";
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<string>;
}

declare class TextDecoderStream {
  constructor(label?: string, options?: TextDecoderOptions);
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<BytesOf>;
}

declare function atob(base64: string): string;
declare function btoa(bytes: string): string;
