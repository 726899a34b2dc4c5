// Service bindings and RPC

interface Fetcher {
  fetch(input: RequestInfo, init?: RequestInit): Promise<Response>;
}

interface RpcTargetMark {
  readonly isPassedByReference: true;
}

/** What arrives at the other side: functions and RpcTargets as stubs, plain objects and arrays with stubs in them. */
type RpcReceived<Value> = Value extends { readonly __rpcTarget: RpcTargetMark } | ((...args: any[]) => any)
  ? RpcStubOf<Value>
  : Value extends string | number | boolean | bigint | null | undefined | void | Date | RegExp | Error
    ? Value
    : Value extends Request | Response | Headers | Blob | ReadableStream | WritableStream | AbortSignal | ArrayBuffer
      ? Value
      : Value extends ArrayBufferView
        ? Value
        : Value extends Map<infer Key, infer Item>
          ? Map<Key, RpcReceived<Item>>
          : Value extends Set<infer Item>
            ? Set<RpcReceived<Item>>
            : Value extends object
              ? { [Name in keyof Value]: RpcReceived<Value[Name]> } & Partial<Disposable>
              : Value;

/** A method or property of the other side. Arguments may hold stubs in place of what they stand for. */
type RpcMember<Member> = Member extends (...args: infer Args) => infer Result
  ? (...args: { [Index in keyof Args]: Args[Index] | RpcReceived<Args[Index]> }) => RpcPromiseOf<Awaited<Result>>
  : RpcPromiseOf<Awaited<Member>>;

type RpcMembers<Target> = { [Name in Exclude<keyof Target, symbol | "dup" | "__rpcTarget">]: RpcMember<Target[Name]> };

/** A stub: every method returns a promise that can be used before it resolves. */
type RpcStubOf<Target> = (Target extends (...args: any[]) => any ? RpcMember<Target> : unknown) &
  RpcMembers<Target> &
  Disposable & { dup(): RpcStubOf<Target> };

/** A promise and a stub of its value at once: calls and properties are pipelined. */
type RpcPromiseOf<Value> = Promise<RpcReceived<Value>> &
  Disposable &
  (Value extends object ? (Value extends (...args: any[]) => any ? RpcMember<Value> : unknown) & RpcMembers<Value> : unknown);

/** A service binding with methods: `Service<typeof import("../other/src/index").default.prototype>`, or an interface. */
type Service<Methods = {}> = Fetcher & {
  [Name in Exclude<keyof Methods, "fetch" | "scheduled" | "queue" | "tail">]: RpcMember<Methods[Name]>;
};

/** The binding to an export of another worker: with the methods of a class, or with `fetch` alone. */
type ServiceOf<Export> = Export extends abstract new (...args: any[]) => infer Methods ? Service<Methods> : Fetcher;
