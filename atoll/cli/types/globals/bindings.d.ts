// What `env` may hold

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
  getWithMetadata<Metadata = unknown>(
    key: Key,
    options: "arrayBuffer" | KVGetOptions<"arrayBuffer">,
  ): Promise<KVWithMetadata<ArrayBuffer, Metadata>>;
  getWithMetadata<Metadata = unknown>(
    key: Key,
    options: "stream" | KVGetOptions<"stream">,
  ): Promise<KVWithMetadata<ReadableStream<Uint8Array>, Metadata>>;
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
  fetch(input: RequestInfo, init?: RequestInit): Promise<Response>;
}

interface RateLimit {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

interface WorkerVersionMetadata {
  readonly id: string;
  readonly tag: string;
  readonly timestamp: string;
}

/** A service binding with methods: `Service<typeof import("../other/src/index").default.prototype>`, or an interface. */
type Service<Methods = {}> = Fetcher & {
  [Name in Exclude<keyof Methods, "fetch" | "scheduled" | "queue" | "tail">]: Methods[Name] extends (
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};
