// Service bindings

interface Fetcher {
  fetch(input: RequestInfo, init?: RequestInit): Promise<Response>;
}

/** A service binding with methods: `Service<typeof import("../other/src/index").default.prototype>`, or an interface. */
type Service<Methods = {}> = Fetcher & {
  [Name in Exclude<keyof Methods, "fetch" | "scheduled" | "queue" | "tail">]: Methods[Name] extends (
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

/** The binding to an export of another worker: with the methods of a class, or with `fetch` alone. */
type ServiceOf<Export> = Export extends abstract new (...args: any[]) => infer Methods ? Service<Methods> : Fetcher;
