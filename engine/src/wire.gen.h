// The wire as the engine sees it. Written by tools/gen_wire.py from protocol/wire.toml. Do not edit: run `make wire`.
#pragma once

#include <cstdint>

namespace engine::wire {

inline constexpr char kHash[] = "e80a88fe3ccb0bdc";
inline constexpr uint32_t kMaxPayload = 67108864;
inline constexpr uint32_t kInlineBody = 65536;
inline constexpr uint32_t kChunk = 65536;
inline constexpr uint32_t kWindow = 262144;
inline constexpr uint32_t kMaxHead = 147456;
inline constexpr uint32_t kMaxReason = 1024;
inline constexpr uint32_t kMaxMeta = 1048576;
inline constexpr uint32_t kLedger = 65536;
inline constexpr uint32_t kLedgerThreads = 64;

struct Header {
  uint32_t length;
  uint8_t kind;
  uint8_t flags;
  uint16_t spare;
  uint32_t worker;
  uint32_t call;
};
static_assert(sizeof(Header) == 16);

enum class Frame : uint8_t {
  kHello = 1,  // both: First frame each way: {wire, v8, ops, ...}. A mismatch ends the engine.
  kLoad = 2,  // python: Prepare a worker version in an isolate, on a thread such as its tenant deserves; meta gives the sizes of the blobs (modules, then code cache). `call` in the header is the memory limit in MB.
  kLoaded = 3,  // engine: The version is ready {handlers, startup_us}, or with FAIL could not be loaded {code, message, ...}.
  kUnload = 4,  // python: Dispose of a loaded version; calls still in it fail with UNAVAILABLE.
  kUnloaded = 5,  // engine: The isolate is gone: asked for by UNLOAD, or condemned {code, message}. No frame for this worker follows.
  kCall = 6,  // python: Start a handler. Head: METHOD SP URL LF, then raw `Name: value CRLF` lines (Latin-1).
  kResponse = 7,  // engine: The handler answered. Memory: about what its isolate used lately. Head: `content-length: N CRLF` if a body of that length is streamed, `SP reason-phrase CRLF` if the worker gave one, then `name: value CRLF` lines (Latin-1).
  kBody = 8,  // both: More of the request body (from Python) or of the response body (from the engine).
  kCredit = 9,  // both: The receiver of a body took so many bytes; the sender may send as many more.
  kCancel = 10,  // both: Python: the client is gone, or with FAIL the call took too long. Engine: the worker does not want the rest of the request body.
  kFail = 11,  // engine: The call failed {code, message, name?, stack?, file?, line?, column?}; before RESPONSE an error page, after it a broken body. With END its code still runs and does not listen: what comes before DONE is to be dropped.
  kDone = 12,  // engine: The call is over, waitUntil included. Its id may be used again.
  kLog = 13,  // engine: A console line of a call (call 0: of top-level code).
  kOp = 14,  // engine: A worker asks the broker for something; `call` in the header is the op id.
  kReply = 15,  // python: The answer to an OP, exactly one each; `worker` and `call` in the header are those of the OP; with FAIL the meta is {code, message}.
  kPing = 16,  // python: Are you alive?
  kPong = 17,  // engine: Yes; {workers, spares, isolates, heap_bytes, memory: {load id: bytes}, cpu_us: {load id: since its LOAD}, both of the workers that use most}.
  kStuck = 19,  // engine: Code of a worker can be neither run nor ended {code, message, cpu_us}: its calls have failed, and the process must be replaced. `call` is the one that ran, or 0. Only UNLOADED may follow for this worker.
  kEcho = 20,  // engine: The rest of the request body is the rest of the response body: the engine sends back what it has of it, Python does the rest itself and tells only the end.
  kCode = 18,  // both: Python asks for the V8 code cache of a loaded version; the engine answers with it (u32 length per module, then blobs).
};

enum class Event : uint8_t {
  kFetch = 0,
  kScheduled = 1,
  kQueue = 2,
  kTail = 3,
  kRpc = 4,
  kEntrypoint = 5,
};

enum class Level : uint8_t {
  kDebug = 0,
  kLog = 1,
  kInfo = 2,
  kWarn = 3,
  kError = 4,
};

enum class Outcome : uint32_t {
  kOk = 0,
  kException = 1,
  kExceededCpu = 2,
  kExceededMemory = 3,
  kExceededWallTime = 4,
  kCanceled = 5,
  kResponseStreamDisconnected = 6,
  kInternalError = 7,
  kLoadShed = 8,
  kScriptNotFound = 9,
  kKillSwitch = 10,
};

enum class Error : uint32_t {
  kInternal = 1,  // A bug of Atoll's; the details are in the node's own log.
  kException = 2,  // The handler threw.
  kNotAResponse = 3,  // The handler returned something that is no Response, or a response that cannot be sent.
  kNeverResponds = 4,  // The handler waits for something that can never happen.
  kNoDefault = 5,  // The main module has no default export.
  kNoFetch = 6,  // Neither a fetch handler nor a fetch listener exists.
  kFetchNotFunction = 7,  // `fetch` of the default export is not a function.
  kCompile = 8,  // The code does not parse, or an import cannot be resolved.
  kStartup = 9,  // The top-level code threw or never finished.
  kCpu = 10,  // The call used more CPU time than its limit.
  kMemory = 11,  // The isolate used more memory than its limit.
  kWall = 12,  // The call took longer than its limit.
  kCanceled = 13,  // The client went away.
  kEngineDied = 14,  // The engine process ended while the call ran in it.
  kOverloaded = 15,  // Too many calls wait for this worker.
  kUnavailable = 16,  // No engine can take the call now.
  kUnknownHost = 17,  // No worker answers on this host and path.
  kUnloaded = 18,  // The isolate went away before the call began; it may be tried again.
  kStream = 19,  // The response body broke while it was being sent.
  kInvalidArgument = 20,  // The worker passed something the API does not take.
  kNotGranted = 21,  // The worker named a binding it was not given.
  kQuotaExceeded = 22,  // A limit on what a worker may ask for was reached.
  kCpuQuota = 50,  // The tenant has used the CPU time it may use per minute.
  kShuttingDown = 23,  // The node is shutting down.
  kBlocked = 26,  // The worker ended engines again and again, and is refused for a while.
  kLoop = 30,  // Workers called each other in too long a chain.
  kEgressHost = 31,  // A worker may not reach this host or port.
  kEgressAddress = 32,  // A worker may not reach this address.
  kNetwork = 33,  // Another server could not be reached, or answered with something that is no HTTP.
  kBinding = 40,  // A binding refused what the worker asked of it; the message says why.
  kStorage = 41,  // The node could not store or read: a full disk, say. Nothing was changed.
};

inline constexpr uint8_t kFlagEnd = 1;
inline constexpr uint8_t kFlagDone = 2;
inline constexpr uint8_t kFlagLow = 8;
inline constexpr uint8_t kFlagFail = 4;

// How a call that failed with `error` ended.
constexpr Outcome OutcomeOf(Error error) {
  switch (error) {
    case Error::kInternal:
      return Outcome::kInternalError;
    case Error::kException:
      return Outcome::kException;
    case Error::kNotAResponse:
      return Outcome::kException;
    case Error::kNeverResponds:
      return Outcome::kException;
    case Error::kNoDefault:
      return Outcome::kException;
    case Error::kNoFetch:
      return Outcome::kException;
    case Error::kFetchNotFunction:
      return Outcome::kException;
    case Error::kCompile:
      return Outcome::kException;
    case Error::kStartup:
      return Outcome::kException;
    case Error::kCpu:
      return Outcome::kExceededCpu;
    case Error::kMemory:
      return Outcome::kExceededMemory;
    case Error::kWall:
      return Outcome::kExceededWallTime;
    case Error::kCanceled:
      return Outcome::kCanceled;
    case Error::kEngineDied:
      return Outcome::kInternalError;
    case Error::kOverloaded:
      return Outcome::kLoadShed;
    case Error::kUnavailable:
      return Outcome::kInternalError;
    case Error::kUnknownHost:
      return Outcome::kScriptNotFound;
    case Error::kUnloaded:
      return Outcome::kInternalError;
    case Error::kStream:
      return Outcome::kResponseStreamDisconnected;
    case Error::kInvalidArgument:
      return Outcome::kException;
    case Error::kNotGranted:
      return Outcome::kException;
    case Error::kQuotaExceeded:
      return Outcome::kException;
    case Error::kCpuQuota:
      return Outcome::kExceededCpu;
    case Error::kShuttingDown:
      return Outcome::kLoadShed;
    case Error::kBlocked:
      return Outcome::kKillSwitch;
    case Error::kLoop:
      return Outcome::kException;
    case Error::kEgressHost:
      return Outcome::kException;
    case Error::kEgressAddress:
      return Outcome::kException;
    case Error::kNetwork:
      return Outcome::kException;
    case Error::kBinding:
      return Outcome::kException;
    case Error::kStorage:
      return Outcome::kException;
  }
  return Outcome::kInternalError;
}

}  // namespace engine::wire
