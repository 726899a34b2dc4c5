// The wire as the engine sees it. Written by tools/gen_wire.py from protocol/wire.toml. Do not edit: run `make wire`.
#pragma once

#include <cstdint>

namespace engine::wire {

inline constexpr char kHash[] = "b19be4547c72a441";
inline constexpr uint32_t kMaxPayload = 67108864;
inline constexpr uint32_t kInlineBody = 65536;
inline constexpr uint32_t kChunk = 65536;
inline constexpr uint32_t kWindow = 262144;
inline constexpr uint32_t kMaxHead = 147456;
inline constexpr uint32_t kMaxReason = 1024;
inline constexpr uint32_t kMaxMeta = 1048576;
inline constexpr uint32_t kLedger = 65536;
inline constexpr uint32_t kLedgerThreads = 64;
inline constexpr uint32_t kOpsPerCall = 1000;
inline constexpr uint32_t kOpBytes = 67108864;
inline constexpr uint32_t kLineCost = 32;
inline constexpr uint32_t kSparesGrowth = 4;
inline constexpr uint32_t kInnerCalls = 2147483648;
inline constexpr uint32_t kInnerBody = 262144;
inline constexpr uint32_t kInnerHead = 16384;
inline constexpr uint32_t kObjectInner = 500;
inline constexpr uint32_t kMaxHops = 16;
inline constexpr uint32_t kPage = 4096;
inline constexpr uint32_t kCommitPages = 8192;

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
  kHello = 1,  // both: First frame in each direction: {wire, v8, ops, ...}. A mismatch ends the engine.
  kLoad = 2,  // python: Load a worker version into an isolate. The tenant decides whether a normal or a low-priority thread does it. Meta gives the sizes of the blobs (modules, then code caches). `call` in the header is the memory limit in MB.
  kLoaded = 3,  // engine: The version is ready {handlers, startup_us}; with FAIL it could not be loaded {code, message, ...}.
  kUnload = 4,  // python: Unload a version. Its open calls fail with UNAVAILABLE.
  kUnloaded = 5,  // engine: The isolate is gone: after UNLOAD, or condemned {code, message}. No frame about this worker follows.
  kCall = 6,  // python: Start a handler. Hops: workers in the chain of calls before this one. Head: METHOD SP URL LF, then raw `Name: value CRLF` lines (Latin-1).
  kResponse = 7,  // engine: The handler responded. Memory: roughly the recent use of its isolate. Head: `content-length: N CRLF` if a body of that length is streamed, `SP reason-phrase CRLF` if the worker set one, then `name: value CRLF` lines (Latin-1).
  kBody = 8,  // both: More of the request body (from Python) or of the response body (from the engine).
  kCredit = 9,  // both: The receiver of a body has read this many bytes; the sender may send as many more.
  kCancel = 10,  // both: From Python: the client disconnected; with FAIL the call took too long. From the engine: the worker does not read the rest of the request body.
  kFail = 11,  // engine: The call failed {code, message, name?, stack?, file?, line?, column?}. Before RESPONSE the client gets an error page, after it a broken body. With END the code of the call still runs and cannot be stopped: drop all its frames up to DONE.
  kDone = 12,  // engine: The call is over, including waitUntil(). Its id may be used again.
  kLog = 13,  // engine: A console line of a call (call 0: top-level code).
  kOp = 14,  // engine: A request of a worker to a binding; `call` in the header is the op id.
  kReply = 15,  // python: The reply to an OP; every OP gets exactly one. `worker` and `call` in the header are those of the OP. With FAIL the meta is {code, message}.
  kPing = 16,  // python: Checks that the engine is alive and asks for its statistics.
  kPong = 17,  // engine: The reply to PING: {workers, spares, isolates, heap_bytes, memory: {load id: bytes}, cpu_us: {load id: since its LOAD}}. The last two list the workers that use most.
  kStuck = 19,  // engine: Code of a worker can neither continue nor be ended {code, message, cpu_us}. Its calls have failed, and the process must be replaced. `call` is the call that ran, or 0. Only UNLOADED may follow about this worker.
  kCode = 18,  // both: From Python: a request for the V8 code caches of a loaded version. From the engine: the caches (u32 length per module, then blobs).
  kOpen = 20,  // python: Open a database in this isolate; `call` is its slot. Flag 1: it has a file, whose read-only descriptor was sent before on fd 6 with the message u32 worker, u32 slot. Pages: its size. Alarm: the time of its alarm, or -1.
  kClose = 21,  // python: Close the database of a slot and forget its object: what is not committed is lost.
  kCommit = 22,  // engine: A transaction of a slot. Pages: the size of the database after it. Alarm: 0 as before, 1 set to that time, 2 deleted. It precedes all frames that its turn wrote.
  kStored = 23,  // python: Commits of the slot up to `durable` are on disk. Pages of commits up to `merged` are in its file and may be read from there.
  kReset = 24,  // engine: The object of a slot broke {code, message, name?}: its storage failed, or a critical section threw. Its database is closed, its calls fail with this.
  kSocket = 25,  // engine: About a hibernatable WebSocket of a slot. What: 1 accepted (u8 flags, tags), 2 it is the response of a call (u32 call id; 101 follows), 3 more of its messages to the client, 4 its attachment, 5 the automatic response (u32 length, request, response), 6 the time limit of events (u32 ms), 7 the object has timers and asks for a call that they run in, 8 a call has connections and stays open after its response (u32 call id, u32 1), or has none any more (u32 0). Socket is 0 from 5 on.
  kSockets = 26,  // python: About hibernatable WebSockets of a slot. What: 1 a part of the table of an object that wakes up (before its first call), 2 credit (u32 socket, u32 bytes), 3 the time of an automatic response (u32 socket, f64 ms).
  kRoute = 27,  // python: Calls through the service binding `name` of this worker go straight to the isolate `callee` of this engine: at most `room` at a time, and at most `budget` of one chain of calls. Callee 0: no more. Slot: the object there that they are for, or 0; its door is open then, until SHUT. Named: 1 if a fetch is an ENTRYPOINT. Entry: the entry point in logs. Address: the entry point in heads. Zone: the host of this worker, for cf-worker.
  kInner = 28,  // engine: A call that went that way has begun: what the OP would have been, and the head of the CALL. `worker` and `call` are those of the callee; the engine chose the call id. With DONE the call is over, with these figures.
  kShut = 29,  // both: From Python: the door of a slot is shut, so no call from inside the engine begins there any more. From the engine, always: so it is, and every call that has come through it was announced before.
};

enum class Event : uint8_t {
  kFetch = 0,
  kEvent = 1,
  kBackground = 2,
  kRpc = 3,
  kEntrypoint = 4,
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
  kInternal = 1,  // A bug in Atoll. The details are in the node's log.
  kException = 2,  // The handler threw.
  kNotAResponse = 3,  // The handler returned a value that is not a Response, or a Response that cannot be sent.
  kNeverResponds = 4,  // The handler waits for something that can never happen.
  kNoDefault = 5,  // The main module has no default export.
  kNoFetch = 6,  // The worker has neither a fetch handler nor a fetch listener.
  kFetchNotFunction = 7,  // `fetch` of the default export is not a function.
  kCompile = 8,  // The code does not parse, or an import cannot be resolved.
  kStartup = 9,  // The top-level code threw, or never finished.
  kCpu = 10,  // The call used more CPU time than its limit.
  kMemory = 11,  // The isolate used more memory than its limit.
  kWall = 12,  // The call took longer than its limit.
  kCanceled = 13,  // The client disconnected.
  kEngineDied = 14,  // The engine process ended while the call ran in it.
  kOverloaded = 15,  // Too many calls wait for this worker.
  kUnavailable = 16,  // No engine can take the call now.
  kUnknownHost = 17,  // No worker answers on this host and path.
  kUnloaded = 18,  // The isolate was unloaded before the call began. The call may be tried again.
  kStream = 19,  // The response body broke while it was being sent.
  kInvalidArgument = 20,  // The worker passed an argument that the API does not accept.
  kNotGranted = 21,  // The worker used a binding that it does not have.
  kQuotaExceeded = 22,  // A limit on the requests of a worker was reached.
  kCpuQuota = 50,  // The tenant has used its CPU time for this minute.
  kShuttingDown = 23,  // The node is shutting down.
  kBlocked = 26,  // The worker made engines fail repeatedly and is blocked for a while.
  kLoop = 30,  // Workers called each other in a chain that is too long.
  kEgressHost = 31,  // A worker may not reach this host or port.
  kEgressAddress = 32,  // A worker may not reach this address.
  kNetwork = 33,  // Another server could not be reached, or its response was not HTTP.
  kBinding = 40,  // A binding refused a request of the worker. The message says why.
  kStorage = 41,  // The node could not read or write its storage, for example because the disk is full. Nothing was changed.
  kObjectReset = 42,  // A Durable Object was reset while the call ran in it or waited for it. The message says why.
};

inline constexpr uint8_t kFlagEnd = 1;
inline constexpr uint8_t kFlagDone = 2;
inline constexpr uint8_t kFlagLow = 8;
inline constexpr uint8_t kFlagFail = 4;
inline constexpr uint8_t kFlagInner = 16;

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
    case Error::kObjectReset:
      return Outcome::kException;
  }
  return Outcome::kInternalError;
}

}  // namespace engine::wire
