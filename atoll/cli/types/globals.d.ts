// The globals of a worker. What the web platform defines comes from TypeScript's own declarations of it.
/// <reference lib="es2024" />
/// <reference lib="webworker" />
/// <reference lib="webworker.iterable" />
/// <reference lib="webworker.asynciterable" />

// Handlers

interface ExecutionContext<Props = unknown> {
  waitUntil(promise: Promise<unknown>): void;
  passThroughOnException(): void;
  readonly props: Props;
}

interface ScheduledController {
  readonly scheduledTime: number;
  readonly cron: string;
  noRetry(): void;
}

interface ExportedHandler<Env = unknown, QueueBody = unknown> {
  fetch?(request: Request, env: Env, ctx: ExecutionContext): Response | Promise<Response>;
  scheduled?(controller: ScheduledController, env: Env, ctx: ExecutionContext): void | Promise<void>;
  queue?(batch: MessageBatch<QueueBody>, env: Env, ctx: ExecutionContext): void | Promise<void>;
  tail?(events: TraceItem[], env: Env, ctx: ExecutionContext): void | Promise<void>;
}

interface TraceItem {
  readonly scriptName: string | null;
  readonly eventTimestamp: number | null;
  readonly outcome: string;
  readonly logs: { readonly timestamp: number; readonly level: string; readonly message: unknown }[];
  readonly exceptions: { readonly timestamp: number; readonly name: string; readonly message: string; readonly stack?: string }[];
  readonly event: unknown;
}

// KV

type KVValueType = "text" | "json" | "arrayBuffer" | "stream";

interface KVGetOptions<Type extends KVValueType> {
  type: Type;
  cacheTtl?: number;
}

interface KVPutOptions {
  expiration?: number;
  expirationTtl?: number;
  metadata?: unknown;
}

interface KVListOptions {
  limit?: number;
  prefix?: string | null;
  cursor?: string | null;
}

interface KVListKey<Metadata> {
  name: string;
  expiration?: number;
  metadata?: Metadata;
}

type KVListResult<Metadata> =
  | { list_complete: false; keys: KVListKey<Metadata>[]; cursor: string; cacheStatus: string | null }
  | { list_complete: true; keys: KVListKey<Metadata>[]; cacheStatus: string | null };

interface KVWithMetadata<Value, Metadata> {
  value: Value | null;
  metadata: Metadata | null;
  cacheStatus: string | null;
}

interface KVNamespace<Key extends string = string> {
  get(key: Key, options?: "text" | Partial<KVGetOptions<"text">>): Promise<string | null>;
  get<Value = unknown>(key: Key, options: "json" | KVGetOptions<"json">): Promise<Value | null>;
  get(key: Key, options: "arrayBuffer" | KVGetOptions<"arrayBuffer">): Promise<ArrayBuffer | null>;
  get(key: Key, options: "stream" | KVGetOptions<"stream">): Promise<ReadableStream<Uint8Array> | null>;
  get(keys: Key[], options?: "text" | Partial<KVGetOptions<"text">>): Promise<Map<string, string | null>>;
  get<Value = unknown>(keys: Key[], options: "json" | KVGetOptions<"json">): Promise<Map<string, Value | null>>;
  getWithMetadata<Metadata = unknown>(
    key: Key,
    options?: "text" | Partial<KVGetOptions<"text">>,
  ): Promise<KVWithMetadata<string, Metadata>>;
  getWithMetadata<Value = unknown, Metadata = unknown>(
    key: Key,
    options: "json" | KVGetOptions<"json">,
  ): Promise<KVWithMetadata<Value, Metadata>>;
  put(key: Key, value: string | ArrayBuffer | ArrayBufferView | ReadableStream, options?: KVPutOptions): Promise<void>;
  list<Metadata = unknown>(options?: KVListOptions): Promise<KVListResult<Metadata>>;
  delete(key: Key): Promise<void>;
}

// Queues

interface QueueSendOptions {
  contentType?: "text" | "bytes" | "json" | "v8";
  delaySeconds?: number;
}

interface Queue<Body = unknown> {
  send(message: Body, options?: QueueSendOptions): Promise<void>;
  sendBatch(messages: Iterable<{ body: Body } & QueueSendOptions>, options?: { delaySeconds?: number }): Promise<void>;
}

interface Message<Body = unknown> {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: Body;
  readonly attempts: number;
  ack(): void;
  retry(options?: { delaySeconds?: number }): void;
}

interface MessageBatch<Body = unknown> {
  readonly queue: string;
  readonly messages: readonly Message<Body>[];
  ackAll(): void;
  retryAll(options?: { delaySeconds?: number }): void;
}

// Other bindings

interface Fetcher {
  fetch(input: Request | URL | string, init?: RequestInit): Promise<Response>;
}

interface RateLimit {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

interface WorkerVersionMetadata {
  readonly id: string;
  readonly tag: string;
  readonly timestamp: string;
}

// What workers have beyond the web platform

declare class IdentityTransformStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(options?: { highWaterMark?: number });
}

declare class FixedLengthStream extends IdentityTransformStream {
  constructor(length: number | bigint, options?: { highWaterMark?: number });
}

interface SubtleCrypto {
  timingSafeEqual(a: ArrayBuffer | ArrayBufferView, b: ArrayBuffer | ArrayBufferView): boolean;
}

interface Crypto {
  readonly DigestStream: {
    new (algorithm: string | { name: string }): WritableStream<ArrayBuffer | ArrayBufferView> & {
      readonly digest: Promise<ArrayBuffer>;
    };
  };
}

interface Scheduler {
  wait(milliseconds: number, options?: { signal?: AbortSignal }): Promise<void>;
}
declare var scheduler: Scheduler;

declare function setImmediate<Args extends unknown[]>(callback: (...args: Args) => void, ...args: Args): number;
declare function clearImmediate(id: number | null): void;

declare module "cloudflare:workers" {
  export const env: unknown;
  export function waitUntil(promise: Promise<unknown>): void;
  export abstract class WorkerEntrypoint<Env = unknown, Props = unknown> {
    protected ctx: ExecutionContext<Props>;
    protected env: Env;
    constructor(ctx: ExecutionContext<Props>, env: Env);
    fetch?(request: Request): Response | Promise<Response>;
    scheduled?(controller: ScheduledController): void | Promise<void>;
    queue?(batch: MessageBatch): void | Promise<void>;
  }
}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
declare module "*.txt" {
  const text: string;
  export default text;
}
declare module "*.html" {
  const text: string;
  export default text;
}
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.bin" {
  const data: ArrayBuffer;
  export default data;
}
