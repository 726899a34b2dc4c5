"""The wire as Python sees it. Written by tools/gen_wire.py from protocol/wire.toml. Do not edit: run `make wire`."""

from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

WIRE_HASH = "b19be4547c72a441"
HEADER_LAYOUT = "<IBBHII"  # length, kind, flags, spare, worker, call
MAX_PAYLOAD: Final = 67108864
INLINE_BODY: Final = 65536
CHUNK: Final = 65536
WINDOW: Final = 262144
MAX_HEAD: Final = 147456
MAX_REASON: Final = 1024
MAX_META: Final = 1048576
LEDGER: Final = 65536
LEDGER_THREADS: Final = 64
OPS_PER_CALL: Final = 1000
OP_BYTES: Final = 67108864
LINE_COST: Final = 32
SPARES_GROWTH: Final = 4
INNER_CALLS: Final = 2147483648
INNER_BODY: Final = 262144
INNER_HEAD: Final = 16384
OBJECT_INNER: Final = 500
MAX_HOPS: Final = 16
PAGE: Final = 4096
COMMIT_PAGES: Final = 8192


class Frame(IntEnum):
    """The kinds of frame; each says who sends it."""

    # both: First frame in each direction: {wire, v8, ops, ...}. A mismatch ends the engine.
    HELLO = 1
    # python: Load a worker version into an isolate. The tenant decides whether a normal or a low-priority thread does it. Meta gives the sizes of the blobs (modules, then code caches). `call` in the header is the memory limit in MB.
    LOAD = 2
    # engine: The version is ready {handlers, startup_us}; with FAIL it could not be loaded {code, message, ...}.
    LOADED = 3
    # python: Unload a version. Its open calls fail with UNAVAILABLE.
    UNLOAD = 4
    # engine: The isolate is gone: after UNLOAD, or condemned {code, message}. No frame about this worker follows.
    UNLOADED = 5
    # python: Start a handler. Hops: workers in the chain of calls before this one. Head: METHOD SP URL LF, then raw `Name: value CRLF` lines (Latin-1).
    CALL = 6
    # engine: The handler responded. Memory: roughly the recent use of its isolate. Head: `content-length: N CRLF` if a body of that length is streamed, `SP reason-phrase CRLF` if the worker set one, then `name: value CRLF` lines (Latin-1).
    RESPONSE = 7
    # both: More of the request body (from Python) or of the response body (from the engine).
    BODY = 8
    # both: The receiver of a body has read this many bytes; the sender may send as many more.
    CREDIT = 9
    # both: From Python: the client disconnected; with FAIL the call took too long. From the engine: the worker does not read the rest of the request body.
    CANCEL = 10
    # engine: The call failed {code, message, name?, stack?, file?, line?, column?}. Before RESPONSE the client gets an error page, after it a broken body. With END the code of the call still runs and cannot be stopped: drop all its frames up to DONE.
    FAIL = 11
    # engine: The call is over, including waitUntil(). Its id may be used again.
    DONE = 12
    # engine: A console line of a call (call 0: top-level code).
    LOG = 13
    # engine: A request of a worker to a binding; `call` in the header is the op id.
    OP = 14
    # python: The reply to an OP; every OP gets exactly one. `worker` and `call` in the header are those of the OP. With FAIL the meta is {code, message}.
    REPLY = 15
    # python: Checks that the engine is alive and asks for its statistics.
    PING = 16
    # engine: The reply to PING: {workers, spares, isolates, heap_bytes, memory: {load id: bytes}, cpu_us: {load id: since its LOAD}}. The last two list the workers that use most.
    PONG = 17
    # engine: Code of a worker can neither continue nor be ended {code, message, cpu_us}. Its calls have failed, and the process must be replaced. `call` is the call that ran, or 0. Only UNLOADED may follow about this worker.
    STUCK = 19
    # both: From Python: a request for the V8 code caches of a loaded version. From the engine: the caches (u32 length per module, then blobs).
    CODE = 18
    # python: Open a database in this isolate; `call` is its slot. Flag 1: it has a file, whose read-only descriptor was sent before on fd 6 with the message u32 worker, u32 slot. Pages: its size. Alarm: the time of its alarm, or -1.
    OPEN = 20
    # python: Close the database of a slot and forget its object: what is not committed is lost.
    CLOSE = 21
    # engine: A transaction of a slot. Pages: the size of the database after it. Alarm: 0 as before, 1 set to that time, 2 deleted. It precedes all frames that its turn wrote.
    COMMIT = 22
    # python: Commits of the slot up to `durable` are on disk. Pages of commits up to `merged` are in its file and may be read from there.
    STORED = 23
    # engine: The object of a slot broke {code, message, name?}: its storage failed, or a critical section threw. Its database is closed, its calls fail with this.
    RESET = 24
    # engine: About a hibernatable WebSocket of a slot. What: 1 accepted (u8 flags, tags), 2 it is the response of a call (u32 call id; 101 follows), 3 more of its messages to the client, 4 its attachment, 5 the automatic response (u32 length, request, response), 6 the time limit of events (u32 ms), 7 the object has timers and asks for a call that they run in, 8 a call has connections and stays open after its response (u32 call id, u32 1), or has none any more (u32 0). Socket is 0 from 5 on.
    SOCKET = 25
    # python: About hibernatable WebSockets of a slot. What: 1 a part of the table of an object that wakes up (before its first call), 2 credit (u32 socket, u32 bytes), 3 the time of an automatic response (u32 socket, f64 ms).
    SOCKETS = 26
    # python: Calls through the service binding `name` of this worker go straight to the isolate `callee` of this engine: at most `room` at a time, and at most `budget` of one chain of calls. Callee 0: no more. Slot: the object there that they are for, or 0; its door is open then, until SHUT. Named: 1 if a fetch is an ENTRYPOINT. Entry: the entry point in logs. Address: the entry point in heads. Zone: the host of this worker, for cf-worker.
    ROUTE = 27
    # engine: A call that went that way has begun: what the OP would have been, and the head of the CALL. `worker` and `call` are those of the callee; the engine chose the call id. With DONE the call is over, with these figures.
    INNER = 28
    # both: From Python: the door of a slot is shut, so no call from inside the engine begins there any more. From the engine, always: so it is, and every call that has come through it was announced before.
    SHUT = 29


class Flag(IntFlag):
    """Bits of a frame's flags."""

    END = 1
    DONE = 2
    LOW = 8
    FAIL = 4
    INNER = 16


class Event(IntEnum):
    """What a CALL starts."""

    FETCH = 0
    EVENT = 1
    BACKGROUND = 2
    RPC = 3
    ENTRYPOINT = 4


class Level(IntEnum):
    """How loud a console line is."""

    DEBUG = 0
    LOG = 1
    INFO = 2
    WARN = 3
    ERROR = 4


class Outcome(IntEnum):
    """How a call ended."""

    OK = 0
    EXCEPTION = 1
    EXCEEDED_CPU = 2
    EXCEEDED_MEMORY = 3
    EXCEEDED_WALL_TIME = 4
    CANCELED = 5
    RESPONSE_STREAM_DISCONNECTED = 6
    INTERNAL_ERROR = 7
    LOAD_SHED = 8
    SCRIPT_NOT_FOUND = 9
    KILL_SWITCH = 10


class ErrorCode(IntEnum):
    """Permanent codes of everything that goes wrong on purpose."""

    # A bug in Atoll. The details are in the node's log.
    INTERNAL = 1
    # The handler threw.
    EXCEPTION = 2
    # The handler returned a value that is not a Response, or a Response that cannot be sent.
    NOT_A_RESPONSE = 3
    # The handler waits for something that can never happen.
    NEVER_RESPONDS = 4
    # The main module has no default export.
    NO_DEFAULT = 5
    # The worker has neither a fetch handler nor a fetch listener.
    NO_FETCH = 6
    # `fetch` of the default export is not a function.
    FETCH_NOT_FUNCTION = 7
    # The code does not parse, or an import cannot be resolved.
    COMPILE = 8
    # The top-level code threw, or never finished.
    STARTUP = 9
    # The call used more CPU time than its limit.
    CPU = 10
    # The isolate used more memory than its limit.
    MEMORY = 11
    # The call took longer than its limit.
    WALL = 12
    # The client disconnected.
    CANCELED = 13
    # The engine process ended while the call ran in it.
    ENGINE_DIED = 14
    # Too many calls wait for this worker.
    OVERLOADED = 15
    # No engine can take the call now.
    UNAVAILABLE = 16
    # No worker answers on this host and path.
    UNKNOWN_HOST = 17
    # The isolate was unloaded before the call began. The call may be tried again.
    UNLOADED = 18
    # The response body broke while it was being sent.
    STREAM = 19
    # The worker passed an argument that the API does not accept.
    INVALID_ARGUMENT = 20
    # The worker used a binding that it does not have.
    NOT_GRANTED = 21
    # A limit on the requests of a worker was reached.
    QUOTA_EXCEEDED = 22
    # The tenant has used its CPU time for this minute.
    CPU_QUOTA = 50
    # The node is shutting down.
    SHUTTING_DOWN = 23
    # The worker made engines fail repeatedly and is blocked for a while.
    BLOCKED = 26
    # Workers called each other in a chain that is too long.
    LOOP = 30
    # A worker may not reach this host or port.
    EGRESS_HOST = 31
    # A worker may not reach this address.
    EGRESS_ADDRESS = 32
    # Another server could not be reached, or its response was not HTTP.
    NETWORK = 33
    # A binding refused a request of the worker. The message says why.
    BINDING = 40
    # The node could not read or write its storage, for example because the disk is full. Nothing was changed.
    STORAGE = 41
    # A Durable Object was reset while the call ran in it or waited for it. The message says why.
    OBJECT_RESET = 42


class ErrorFacts(NamedTuple):
    """What an error code means at the front and in a worker."""

    status: int
    page: int
    outcome: Outcome
    js_class: str
    meaning: str


OUTCOME_NAMES: dict[int, str] = {
    0: "ok",
    1: "exception",
    2: "exceededCpu",
    3: "exceededMemory",
    4: "exceededWallTime",
    5: "canceled",
    6: "responseStreamDisconnected",
    7: "internalError",
    8: "loadShed",
    9: "scriptNotFound",
    10: "killSwitch",
}

ERRORS: dict[ErrorCode, ErrorFacts] = {
    ErrorCode.INTERNAL: ErrorFacts(
        500, 1101, Outcome.INTERNAL_ERROR, "Error", "A bug in Atoll. The details are in the node's log."
    ),
    ErrorCode.EXCEPTION: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The handler threw."
    ),
    ErrorCode.NOT_A_RESPONSE: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "TypeError", "The handler returned a value that is not a Response, or a Response that cannot be sent."
    ),
    ErrorCode.NEVER_RESPONDS: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The handler waits for something that can never happen."
    ),
    ErrorCode.NO_DEFAULT: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The main module has no default export."
    ),
    ErrorCode.NO_FETCH: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The worker has neither a fetch handler nor a fetch listener."
    ),
    ErrorCode.FETCH_NOT_FUNCTION: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "TypeError", "`fetch` of the default export is not a function."
    ),
    ErrorCode.COMPILE: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "SyntaxError", "The code does not parse, or an import cannot be resolved."
    ),
    ErrorCode.STARTUP: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The top-level code threw, or never finished."
    ),
    ErrorCode.CPU: ErrorFacts(
        503, 1102, Outcome.EXCEEDED_CPU, "Error", "The call used more CPU time than its limit."
    ),
    ErrorCode.MEMORY: ErrorFacts(
        503, 1102, Outcome.EXCEEDED_MEMORY, "RangeError", "The isolate used more memory than its limit."
    ),
    ErrorCode.WALL: ErrorFacts(
        504, 1102, Outcome.EXCEEDED_WALL_TIME, "Error", "The call took longer than its limit."
    ),
    ErrorCode.CANCELED: ErrorFacts(
        499, 1101, Outcome.CANCELED, "AbortError", "The client disconnected."
    ),
    ErrorCode.ENGINE_DIED: ErrorFacts(
        502, 1101, Outcome.INTERNAL_ERROR, "Error", "The engine process ended while the call ran in it."
    ),
    ErrorCode.OVERLOADED: ErrorFacts(
        503, 1105, Outcome.LOAD_SHED, "Error", "Too many calls wait for this worker."
    ),
    ErrorCode.UNAVAILABLE: ErrorFacts(
        503, 1105, Outcome.INTERNAL_ERROR, "Error", "No engine can take the call now."
    ),
    ErrorCode.UNKNOWN_HOST: ErrorFacts(
        404, 1022, Outcome.SCRIPT_NOT_FOUND, "Error", "No worker answers on this host and path."
    ),
    ErrorCode.UNLOADED: ErrorFacts(
        503, 1105, Outcome.INTERNAL_ERROR, "Error", "The isolate was unloaded before the call began. The call may be tried again."
    ),
    ErrorCode.STREAM: ErrorFacts(
        500, 1101, Outcome.RESPONSE_STREAM_DISCONNECTED, "Error", "The response body broke while it was being sent."
    ),
    ErrorCode.INVALID_ARGUMENT: ErrorFacts(
        400, 1101, Outcome.EXCEPTION, "TypeError", "The worker passed an argument that the API does not accept."
    ),
    ErrorCode.NOT_GRANTED: ErrorFacts(
        403, 1101, Outcome.EXCEPTION, "Error", "The worker used a binding that it does not have."
    ),
    ErrorCode.QUOTA_EXCEEDED: ErrorFacts(
        429, 1015, Outcome.EXCEPTION, "Error", "A limit on the requests of a worker was reached."
    ),
    ErrorCode.CPU_QUOTA: ErrorFacts(
        429, 1027, Outcome.EXCEEDED_CPU, "Error", "The tenant has used its CPU time for this minute."
    ),
    ErrorCode.SHUTTING_DOWN: ErrorFacts(
        503, 1105, Outcome.LOAD_SHED, "Error", "The node is shutting down."
    ),
    ErrorCode.BLOCKED: ErrorFacts(
        503, 1103, Outcome.KILL_SWITCH, "Error", "The worker made engines fail repeatedly and is blocked for a while."
    ),
    ErrorCode.LOOP: ErrorFacts(
        508, 1019, Outcome.EXCEPTION, "Error", "Workers called each other in a chain that is too long."
    ),
    ErrorCode.EGRESS_HOST: ErrorFacts(
        403, 1021, Outcome.EXCEPTION, "TypeError", "A worker may not reach this host or port."
    ),
    ErrorCode.EGRESS_ADDRESS: ErrorFacts(
        403, 1024, Outcome.EXCEPTION, "TypeError", "A worker may not reach this address."
    ),
    ErrorCode.NETWORK: ErrorFacts(
        502, 1101, Outcome.EXCEPTION, "TypeError", "Another server could not be reached, or its response was not HTTP."
    ),
    ErrorCode.BINDING: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "A binding refused a request of the worker. The message says why."
    ),
    ErrorCode.STORAGE: ErrorFacts(
        503, 1101, Outcome.EXCEPTION, "Error", "The node could not read or write its storage, for example because the disk is full. Nothing was changed."
    ),
    ErrorCode.OBJECT_RESET: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "A Durable Object was reset while the call ran in it or waited for it. The message says why."
    ),
}
