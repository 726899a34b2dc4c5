// The wire as the web platform sees it. Written by tools/gen_wire.py from protocol/wire.toml. Do not edit: run `make wire`.

export const ErrorCode = Object.freeze({
  INTERNAL: 1, // A bug in Atoll. The details are in the node's log.
  EXCEPTION: 2, // The handler threw.
  NOT_A_RESPONSE: 3, // The handler returned a value that is not a Response, or a Response that cannot be sent.
  NEVER_RESPONDS: 4, // The handler waits for something that can never happen.
  NO_DEFAULT: 5, // The main module has no default export.
  NO_FETCH: 6, // The worker has neither a fetch handler nor a fetch listener.
  FETCH_NOT_FUNCTION: 7, // `fetch` of the default export is not a function.
  COMPILE: 8, // The code does not parse, or an import cannot be resolved.
  STARTUP: 9, // The top-level code threw, or never finished.
  CPU: 10, // The call used more CPU time than its limit.
  MEMORY: 11, // The isolate used more memory than its limit.
  WALL: 12, // The call took longer than its limit.
  CANCELED: 13, // The client disconnected.
  ENGINE_DIED: 14, // The engine process ended while the call ran in it.
  OVERLOADED: 15, // Too many calls wait for this worker.
  UNAVAILABLE: 16, // No engine can take the call now.
  UNKNOWN_HOST: 17, // No worker answers on this host and path.
  UNLOADED: 18, // The isolate was unloaded before the call began. The call may be tried again.
  STREAM: 19, // The response body broke while it was being sent.
  INVALID_ARGUMENT: 20, // The worker passed an argument that the API does not accept.
  NOT_GRANTED: 21, // The worker used a binding that it does not have.
  QUOTA_EXCEEDED: 22, // A limit on the requests of a worker was reached.
  CPU_QUOTA: 50, // The tenant has used its CPU time for this minute.
  SHUTTING_DOWN: 23, // The node is shutting down.
  BLOCKED: 26, // The worker made engines fail repeatedly and is blocked for a while.
  LOOP: 30, // Workers called each other in a chain that is too long.
  EGRESS_HOST: 31, // A worker may not reach this host or port.
  EGRESS_ADDRESS: 32, // A worker may not reach this address.
  NETWORK: 33, // Another server could not be reached, or its response was not HTTP.
  BINDING: 40, // A binding refused a request of the worker. The message says why.
  STORAGE: 41, // The node could not read or write its storage, for example because the disk is full. Nothing was changed.
  OBJECT_RESET: 42, // A Durable Object was reset while the call ran in it or waited for it. The message says why.
});

// Error code -> the JavaScript class a worker sees.
export const ErrorClass = Object.freeze({
  1: "Error",
  2: "Error",
  3: "TypeError",
  4: "Error",
  5: "Error",
  6: "Error",
  7: "TypeError",
  8: "SyntaxError",
  9: "Error",
  10: "Error",
  11: "RangeError",
  12: "Error",
  13: "AbortError",
  14: "Error",
  15: "Error",
  16: "Error",
  17: "Error",
  18: "Error",
  19: "Error",
  20: "TypeError",
  21: "Error",
  22: "Error",
  50: "Error",
  23: "Error",
  26: "Error",
  30: "Error",
  31: "TypeError",
  32: "TypeError",
  33: "TypeError",
  40: "Error",
  41: "Error",
  42: "Error",
});

export const Level = Object.freeze({
  DEBUG: 0,
  LOG: 1,
  INFO: 2,
  WARN: 3,
  ERROR: 4,
});

// What a call starts.
export const Event = Object.freeze({
  FETCH: 0,
  EVENT: 1,
  BACKGROUND: 2,
  RPC: 3,
  ENTRYPOINT: 4,
});

export const MAX_PAYLOAD = 67108864;
export const INLINE_BODY = 65536;
export const CHUNK = 65536;
export const WINDOW = 262144;
export const MAX_HEAD = 147456;
export const MAX_REASON = 1024;
export const MAX_META = 1048576;
export const LEDGER = 65536;
export const LEDGER_THREADS = 64;
export const OPS_PER_CALL = 1000;
export const OP_BYTES = 67108864;
export const LINE_COST = 32;
export const SPARES_GROWTH = 4;
export const INNER_CALLS = 2147483648;
export const INNER_BODY = 262144;
export const INNER_HEAD = 16384;
export const OBJECT_INNER = 500;
export const MAX_HOPS = 16;
export const PAGE = 4096;
export const COMMIT_PAGES = 8192;
