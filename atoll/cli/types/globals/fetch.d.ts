// Fetch, its bodies and files: https://fetch.spec.whatwg.org/ and https://w3c.github.io/FileAPI/

type HeadersInit = Headers | Iterable<readonly [string, string]> | Record<string, string>;
type BodyInit = string | ArrayBuffer | ArrayBufferView | Blob | FormData | URLSearchParams | ReadableStream;
type RequestInfo = Request | URL | string;

declare class Headers implements Iterable<[string, string]> {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  getAll(name: "Set-Cookie" | "set-cookie"): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void, thisArg?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** What requests and responses have in common. */
interface Body {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  formData(): Promise<FormData>;
  json<Value = any>(): Promise<Value>;
  text(): Promise<string>;
  textStream(): ReadableStream<string>;
}

/** What Cloudflare and Atoll take beyond the standard. */
interface RequestInitCfProperties {
  cacheEverything?: boolean;
  cacheKey?: string;
  cacheTtl?: number;
  cacheTtlByStatus?: Record<string, number>;
  [name: string]: unknown;
}

/** What the front knows of a connection: `request.cf`. */
interface IncomingRequestCfProperties {
  readonly httpProtocol?: string;
  readonly tlsVersion?: string;
  readonly tlsCipher?: string;
  readonly [name: string]: unknown;
}

interface RequestInit<Cf = RequestInitCfProperties> {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
  cf?: Cf;
  cache?: "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached";
  credentials?: "omit" | "same-origin" | "include";
  duplex?: "half";
  integrity?: string;
  keepalive?: boolean;
  mode?: "cors" | "no-cors" | "same-origin";
  referrer?: string;
  referrerPolicy?: string;
}

interface Request<Cf = IncomingRequestCfProperties> extends Body {}
declare class Request<Cf = IncomingRequestCfProperties> {
  constructor(input: RequestInfo, init?: RequestInit | Request);
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: "follow" | "error" | "manual";
  readonly signal: AbortSignal;
  readonly cf: Cf | undefined;
  readonly cache: string;
  readonly credentials: string;
  readonly destination: string;
  readonly duplex: "half";
  readonly integrity: string;
  readonly isHistoryNavigation: boolean;
  readonly isReloadNavigation: boolean;
  readonly keepalive: boolean;
  readonly mode: string;
  readonly referrer: string;
  readonly referrerPolicy: string;
  clone(): Request<Cf>;
}

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
  cf?: unknown;
  /** "manual": the body is already coded as Content-Encoding says. */
  encodeBody?: "automatic" | "manual";
  /** With status 101: the end of the pair that the client gets. */
  webSocket?: WebSocket | null;
}

interface Response extends Body {}
declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit | Response);
  static error(): Response;
  static json(value: unknown, init?: ResponseInit | Response): Response;
  static redirect(url: string | URL, status?: number): Response;
  readonly type: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly status: number;
  readonly ok: boolean;
  readonly statusText: string;
  readonly headers: Headers;
  readonly cf: unknown;
  readonly webSocket: WebSocket | null;
  clone(): Response;
}

declare function fetch(input: RequestInfo, init?: RequestInit): Promise<Response>;

// https://developers.cloudflare.com/workers/runtime-apis/cache/

declare class Cache {
  private constructor();
  match(request: RequestInfo, options?: { ignoreMethod?: boolean }): Promise<Response | undefined>;
  put(request: RequestInfo, response: Response): Promise<void>;
  delete(request: RequestInfo, options?: { ignoreMethod?: boolean }): Promise<boolean>;
  // These throw, as at Cloudflare.
  add(request: never): never;
  addAll(requests: never): never;
  keys(request: never): never;
  matchAll(request: never): never;
}

declare class CacheStorage {
  private constructor();
  readonly default: Cache;
  open(name: string): Promise<Cache>;
  // These throw, as at Cloudflare.
  delete(name: never): never;
  has(name: never): never;
  keys(name: never): never;
  match(request: never): never;
}
declare var caches: CacheStorage;

// Files and forms

type BlobPart = ArrayBuffer | ArrayBufferView | Blob | string;

interface BlobPropertyBag {
  type?: string;
  endings?: "transparent" | "native";
}

declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: BlobPropertyBag);
  readonly size: number;
  readonly type: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  slice(start?: number, end?: number, type?: string): Blob;
  stream(): ReadableStream<Uint8Array<ArrayBuffer>>;
  text(): Promise<string>;
  textStream(): ReadableStream<string>;
}

declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: BlobPropertyBag & { lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}

declare class FileList implements Iterable<File> {
  private constructor();
  readonly length: number;
  item(index: number): File | null;
  readonly [index: number]: File;
  [Symbol.iterator](): IterableIterator<File>;
}

interface FileReaderEvents extends Record<string, Event> {
  abort: ProgressEvent;
  error: ProgressEvent;
  load: ProgressEvent;
  loadend: ProgressEvent;
  loadstart: ProgressEvent;
  progress: ProgressEvent;
}

declare class FileReader extends EventTarget<FileReaderEvents> {
  constructor();
  static readonly EMPTY: 0;
  static readonly LOADING: 1;
  static readonly DONE: 2;
  readonly EMPTY: 0;
  readonly LOADING: 1;
  readonly DONE: 2;
  readonly readyState: number;
  readonly result: string | ArrayBuffer | null;
  readonly error: DOMException | null;
  onabort: EventHandlerOf<FileReader, ProgressEvent>;
  onerror: EventHandlerOf<FileReader, ProgressEvent>;
  onload: EventHandlerOf<FileReader, ProgressEvent>;
  onloadend: EventHandlerOf<FileReader, ProgressEvent>;
  onloadstart: EventHandlerOf<FileReader, ProgressEvent>;
  onprogress: EventHandlerOf<FileReader, ProgressEvent>;
  abort(): void;
  readAsArrayBuffer(blob: Blob): void;
  /** @deprecated Use `readAsArrayBuffer()`. */
  readAsBinaryString(blob: Blob): void;
  readAsDataURL(blob: Blob): void;
  readAsText(blob: Blob, encoding?: string): void;
}

type FormDataEntryValue = File | string;

declare class FormData implements Iterable<[string, FormDataEntryValue]> {
  constructor();
  append(name: string, value: string | Blob, filename?: string): void;
  delete(name: string): void;
  get(name: string): FormDataEntryValue | null;
  getAll(name: string): FormDataEntryValue[];
  has(name: string): boolean;
  set(name: string, value: string | Blob, filename?: string): void;
  forEach(callback: (value: FormDataEntryValue, name: string, form: FormData) => void, thisArg?: any): void;
  entries(): IterableIterator<[string, FormDataEntryValue]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<FormDataEntryValue>;
  [Symbol.iterator](): IterableIterator<[string, FormDataEntryValue]>;
}

// URLs: https://url.spec.whatwg.org/ and https://urlpattern.spec.whatwg.org/

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static createObjectURL(blob: Blob): string;
  static revokeObjectURL(url: string): void;
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toJSON(): string;
  toString(): string;
}

declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(init?: Iterable<readonly [string, string]> | Record<string, string> | string | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void, thisArg?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface URLPatternInit {
  protocol?: string;
  username?: string;
  password?: string;
  hostname?: string;
  port?: string;
  pathname?: string;
  search?: string;
  hash?: string;
  baseURL?: string;
}

interface URLPatternComponentResult {
  input: string;
  groups: Record<string, string | undefined>;
}

interface URLPatternResult {
  inputs: [URLPatternInit | string] | [string, string];
  protocol: URLPatternComponentResult;
  username: URLPatternComponentResult;
  password: URLPatternComponentResult;
  hostname: URLPatternComponentResult;
  port: URLPatternComponentResult;
  pathname: URLPatternComponentResult;
  search: URLPatternComponentResult;
  hash: URLPatternComponentResult;
}

declare class URLPattern {
  constructor(input: URLPatternInit | string, base: string | URL, options?: { ignoreCase?: boolean });
  constructor(input?: URLPatternInit | string, options?: { ignoreCase?: boolean });
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hostname: string;
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
  readonly hasRegExpGroups: boolean;
  exec(input?: URLPatternInit | string | URL, base?: string | URL): URLPatternResult | null;
  test(input?: URLPatternInit | string | URL, base?: string | URL): boolean;
}
