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
