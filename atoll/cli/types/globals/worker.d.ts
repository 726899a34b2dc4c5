// What a worker exports, what it is given, and its global object

interface ExecutionContext<Props = unknown> {
  /** Go on after the answer until the promise is settled. */
  waitUntil(promise: Promise<unknown>): void;
  passThroughOnException(): void;
  readonly props: Props;
  /** Stubs of the worker's own entry points; `ctx.exports.Name({ props })` sets their `ctx.props`. */
  readonly exports: Record<string, any>;
  /** Custom spans. They are not recorded. */
  readonly tracing: Tracing;
}

interface Span {
  readonly isTraced: boolean;
  setAttribute(name: string, value?: string | number | boolean): this;
  setAttributes(attributes: Record<string, string | number | boolean>): this;
  end(): void;
}

interface Tracing {
  enterSpan<Result, Args extends unknown[]>(name: string, callback: (span: Span, ...args: Args) => Result, ...args: Args): Result;
  startActiveSpan<Result, Args extends unknown[]>(
    name: string,
    callback: (span: Span, ...args: Args) => Result,
    ...args: Args
  ): Result;
}

interface ScheduledController {
  readonly scheduledTime: number;
  readonly cron: string;
  noRetry(): void;
}

type ExportedHandlerFetchHandler<Env = unknown> = (
  request: Request,
  env: Env,
  ctx: ExecutionContext,
) => Response | Promise<Response>;
type ExportedHandlerScheduledHandler<Env = unknown> = (
  controller: ScheduledController,
  env: Env,
  ctx: ExecutionContext,
) => void | Promise<void>;
type ExportedHandlerQueueHandler<Env = unknown, Body = unknown> = (
  batch: MessageBatch<Body>,
  env: Env,
  ctx: ExecutionContext,
) => void | Promise<void>;
type ExportedHandlerTailHandler<Env = unknown> = (
  events: TraceItem[],
  env: Env,
  ctx: ExecutionContext,
) => void | Promise<void>;

type ExportedHandlerEmailHandler<Env = unknown> = (
  message: ForwardableEmailMessage,
  env: Env,
  ctx: ExecutionContext,
) => void | Promise<void>;

interface EmailSendResult {
  messageId: string;
}

/** A message that was received, for email(). */
interface ForwardableEmailMessage {
  /** The sender of the envelope. */
  readonly from: string;
  readonly to: string;
  readonly headers: Headers;
  readonly raw: ReadableStream<Uint8Array>;
  readonly rawSize: number;
  /** Do not take the message: its sender gets the reason. */
  setReject(reason: string): void;
  forward(rcptTo: string, headers?: Headers): Promise<EmailSendResult>;
  /** An EmailMessage, or the fields of a message; `to` is the sender in any case. */
  reply(message: import("cloudflare:email").EmailMessage | { from: string | object; subject: string; text?: string; html?: string; [field: string]: unknown }): Promise<EmailSendResult>;
}

interface ExportedHandler<Env = unknown, QueueBody = unknown> {
  fetch?: ExportedHandlerFetchHandler<Env>;
  scheduled?: ExportedHandlerScheduledHandler<Env>;
  queue?: ExportedHandlerQueueHandler<Env, QueueBody>;
  tail?: ExportedHandlerTailHandler<Env>;
  email?: ExportedHandlerEmailHandler<Env>;
}

interface TraceLog {
  readonly timestamp: number;
  readonly level: string;
  readonly message: any;
}

interface TraceException {
  readonly timestamp: number;
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
}

interface TraceItem {
  readonly scriptName: string | null;
  readonly eventTimestamp: number | null;
  readonly outcome: string;
  readonly logs: TraceLog[];
  readonly exceptions: TraceException[];
  readonly event: any;
}

// The older syntax: addEventListener("fetch", …)

// Only the platform makes events of calls.
declare class ExtendableEvent extends Event {
  protected constructor();
  waitUntil(promise: Promise<unknown>): void;
}

declare class FetchEvent extends ExtendableEvent {
  private constructor();
  readonly request: Request;
  respondWith(response: Response | Promise<Response>): void;
  passThroughOnException(): void;
}

declare class ScheduledEvent extends ExtendableEvent {
  private constructor();
}
declare class TailEvent extends ExtendableEvent {
  private constructor();
}
declare class TraceEvent extends ExtendableEvent {
  private constructor();
}

interface WorkerEvents extends Record<string, Event> {
  fetch: FetchEvent;
  scheduled: ScheduledEvent & ScheduledController;
  error: ErrorEvent;
  unhandledrejection: PromiseRejectionEvent;
  rejectionhandled: PromiseRejectionEvent;
}

declare class WorkerGlobalScope extends EventTarget<WorkerEvents> {
  protected constructor();
}
declare class ServiceWorkerGlobalScope extends WorkerGlobalScope {
  private constructor();
}

declare var isSecureContext: boolean;
declare var crossOriginIsolated: boolean;
declare var origin: string;
declare var self: ServiceWorkerGlobalScope & typeof globalThis;
declare function addEventListener<Type extends keyof WorkerEvents>(
  type: Type,
  listener: EventListenerOf<WorkerEvents[Type]> | null,
  options?: AddEventListenerOptions | boolean,
): void;
declare function removeEventListener<Type extends keyof WorkerEvents>(
  type: Type,
  listener: EventListenerOf<WorkerEvents[Type]> | null,
  options?: { capture?: boolean } | boolean,
): void;
declare function dispatchEvent(event: Event): boolean;
declare function when<Type extends keyof WorkerEvents>(
  type: Type,
  options?: { capture?: boolean; passive?: boolean },
): Observable<WorkerEvents[Type]>;
declare function reportError(error: any): void;
declare var onerror:
  | ((message: string, file?: string, line?: number, column?: number, error?: any) => unknown)
  | null;
declare var onunhandledrejection: EventHandlerOf<ServiceWorkerGlobalScope, PromiseRejectionEvent>;
declare var onrejectionhandled: EventHandlerOf<ServiceWorkerGlobalScope, PromiseRejectionEvent>;

// Modules that are there for every worker, and files that can be imported

declare module "cloudflare:workers" {
  export const env: any;
  export function waitUntil(promise: Promise<unknown>): void;
  export abstract class WorkerEntrypoint<Env = unknown, Props = unknown> {
    protected ctx: ExecutionContext<Props>;
    protected env: Env;
    constructor(ctx: ExecutionContext<Props>, env: Env);
    fetch?(request: Request): Response | Promise<Response>;
    scheduled?(controller: ScheduledController): void | Promise<void>;
    queue?(batch: MessageBatch): void | Promise<void>;
    tail?(events: TraceItem[]): void | Promise<void>;
    email?(message: ForwardableEmailMessage): void | Promise<void>;
  }
  export abstract class DurableObject<Env = unknown> {
    protected ctx: any;
    protected env: Env;
    constructor(ctx: any, env: Env);
    fetch?(request: Request): Response | Promise<Response>;
    alarm?(info?: { scheduledTime: number; isRetry: boolean; retryCount: number }): void | Promise<void>;
    webSocketMessage?(ws: WebSocket, message: string | ArrayBuffer): void | Promise<void>;
    webSocketClose?(ws: WebSocket, code: number, reason: string, wasClean: boolean): void | Promise<void>;
    webSocketError?(ws: WebSocket, error: unknown): void | Promise<void>;
  }
  /** Instances stay in their worker; others get stubs of them. */
  export abstract class RpcTarget {
    /** For the types only: marks what is passed by reference. */
    readonly __rpcTarget: RpcTargetMark;
  }
  /** A stub of a function, a plain object or an RpcTarget. */
  export type RpcStub<Target> = RpcStubOf<Target>;
  export const RpcStub: { new <Target>(target: Target): RpcStubOf<Target>; readonly prototype: any };
  export type RpcPromise<Value> = RpcPromiseOf<Value>;
  export const RpcPromise: { readonly prototype: any };
  export const RpcProperty: { readonly prototype: any };
  export const ServiceStub: { readonly prototype: any };
  /** The same as `ctx.exports`. */
  export const exports: Record<string, any>;
  /** Calls `callback` with another `env`, for all code that it starts. */
  export function withEnv<Result>(env: unknown, callback: () => Result): Result;
  /** Calls `callback` with other `exports`, for all code that it starts. */
  export function withExports<Result>(exports: unknown, callback: () => Result): Result;
  export function withEnvAndExports<Result>(env: unknown, exports: unknown, callback: () => Result): Result;
  /** Custom spans. They are not recorded. */
  export const tracing: Tracing;
  type StepDuration = `${number} ${"second" | "minute" | "hour" | "day" | "week" | "month" | "year"}${"" | "s"}` | number;
  export interface WorkflowEvent<Payload> {
    payload: Readonly<Payload>;
    timestamp: Date;
    instanceId: string;
    workflowName: string;
  }
  export interface WorkflowStepEvent<Payload> {
    payload: Readonly<Payload>;
    timestamp: Date;
    type: string;
  }
  export interface WorkflowStepContext {
    step: { name: string; count: number };
    attempt: number;
    config: WorkflowStepConfig;
  }
  export interface WorkflowStepConfig {
    /** Without it: 5 more attempts, after 1, 2, 4, 8 and 16 seconds. */
    retries?: {
      limit: number;
      delay: StepDuration | ((input: { ctx: WorkflowStepContext; error: Error }) => StepDuration | Promise<StepDuration>);
      backoff?: "constant" | "linear" | "exponential";
    };
    /** Of one attempt; without it "10 minutes". */
    timeout?: StepDuration;
    /** The output is not shown to operators. */
    sensitive?: "output";
  }
  export interface WorkflowStepRollback<Value> {
    /** Undoes the step if the workflow fails later. Is tried again like a step. */
    rollback?: (input: { error: Error; output: Value | undefined; stepName: string }) => Promise<void> | void;
    rollbackConfig?: WorkflowStepConfig;
  }
  export interface WorkflowStep {
    do<Value>(name: string, callback: (ctx: WorkflowStepContext) => Promise<Value> | Value, options?: WorkflowStepRollback<Value>): Promise<Value>;
    do<Value>(
      name: string,
      config: WorkflowStepConfig,
      callback: (ctx: WorkflowStepContext) => Promise<Value> | Value,
      options?: WorkflowStepRollback<Value>,
    ): Promise<Value>;
    sleep(name: string, duration: StepDuration): Promise<void>;
    sleepUntil(name: string, time: Date | number): Promise<void>;
    /** Rejects with a WorkflowTimeoutError if no event comes in time: within 24 hours, unless `timeout` says otherwise. */
    waitForEvent<Payload>(name: string, options: { type: string; timeout?: StepDuration }): Promise<WorkflowStepEvent<Payload>>;
  }
  /** The code of a workflow. Export a class that extends it, and name it in the config. */
  export abstract class WorkflowEntrypoint<Env = unknown, Params = unknown> {
    protected ctx: any;
    protected env: Env;
    constructor(ctx: any, env: Env);
    run(event: Readonly<WorkflowEvent<Params>>, step: WorkflowStep): Promise<unknown>;
  }
}

declare module "cloudflare:workflows" {
  /** Thrown in a step, it ends the retries of the step. */
  export class NonRetryableError extends Error {
    constructor(message: string, name?: string);
  }
}

declare module "cloudflare:node" {
  interface NodeServer {
    listen(...args: any[]): unknown;
    address(): any;
  }
  /** A handler that passes requests to the server of node:http that listens on the port. */
  export function httpServerHandler(server: number | { port?: number | null } | NodeServer): {
    fetch(request: Request, env?: unknown, ctx?: unknown): Promise<Response>;
  };
  /** Passes one request to the server of node:http that listens on the port. */
  export function handleAsNodeRequest(
    server: number | { port?: number | null },
    request: Request,
    env?: unknown,
    ctx?: unknown,
  ): Promise<Response>;
}

declare module "cloudflare:email" {
  /** A message as it is: headers, an empty line, content. */
  export class EmailMessage {
    constructor(from: string, to: string, raw: ReadableStream | string);
    readonly from: string;
    readonly to: string;
  }
}

declare module "cloudflare:sockets" {
  export interface SocketAddress {
    hostname: string;
    port: number;
  }
  export interface SocketOptions {
    /** "off" by default. With "starttls", `startTls()` may be called later. */
    secureTransport?: "off" | "on" | "starttls";
    /** Whether the socket may still be written to when the peer has ended its side. */
    allowHalfOpen?: boolean;
    /** Bytes that may wait in `writable`. */
    highWaterMark?: number;
  }
  export interface SocketInfo {
    remoteAddress?: string;
    localAddress?: string;
  }
  export interface TlsOptions {
    /** The name in the server's certificate; by default the host of the address. */
    expectedServerHostname?: string;
  }
  export interface Socket {
    readonly readable: ReadableStream<Uint8Array>;
    readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
    readonly opened: Promise<SocketInfo>;
    readonly closed: Promise<void>;
    readonly upgraded: boolean;
    readonly secureTransport: "off" | "on" | "starttls";
    close(): Promise<void>;
    startTls(options?: TlsOptions): Socket;
  }
  export function connect(address: string | SocketAddress, options?: SocketOptions): Socket;
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
