"""The wire as Python sees it. Written by tools/gen_wire.py from protocol/wire.toml. Do not edit: run `make wire`."""

from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

WIRE_HASH = "e80a88fe3ccb0bdc"
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


class Frame(IntEnum):
    """The kinds of frame; each says who sends it."""

    # both: First frame each way: {wire, v8, ops, ...}. A mismatch ends the engine.
    HELLO = 1
    # python: Prepare a worker version in an isolate, on a thread such as its tenant deserves; meta gives the sizes of the blobs (modules, then code cache). `call` in the header is the memory limit in MB.
    LOAD = 2
    # engine: The version is ready {handlers, startup_us}, or with FAIL could not be loaded {code, message, ...}.
    LOADED = 3
    # python: Dispose of a loaded version; calls still in it fail with UNAVAILABLE.
    UNLOAD = 4
    # engine: The isolate is gone: asked for by UNLOAD, or condemned {code, message}. No frame for this worker follows.
    UNLOADED = 5
    # python: Start a handler. Head: METHOD SP URL LF, then raw `Name: value CRLF` lines (Latin-1).
    CALL = 6
    # engine: The handler answered. Memory: about what its isolate used lately. Head: `content-length: N CRLF` if a body of that length is streamed, `SP reason-phrase CRLF` if the worker gave one, then `name: value CRLF` lines (Latin-1).
    RESPONSE = 7
    # both: More of the request body (from Python) or of the response body (from the engine).
    BODY = 8
    # both: The receiver of a body took so many bytes; the sender may send as many more.
    CREDIT = 9
    # both: Python: the client is gone, or with FAIL the call took too long. Engine: the worker does not want the rest of the request body.
    CANCEL = 10
    # engine: The call failed {code, message, name?, stack?, file?, line?, column?}; before RESPONSE an error page, after it a broken body. With END its code still runs and does not listen: what comes before DONE is to be dropped.
    FAIL = 11
    # engine: The call is over, waitUntil included. Its id may be used again.
    DONE = 12
    # engine: A console line of a call (call 0: of top-level code).
    LOG = 13
    # engine: A worker asks the broker for something; `call` in the header is the op id.
    OP = 14
    # python: The answer to an OP, exactly one each; `worker` and `call` in the header are those of the OP; with FAIL the meta is {code, message}.
    REPLY = 15
    # python: Are you alive?
    PING = 16
    # engine: Yes; {workers, spares, isolates, heap_bytes, memory: {load id: bytes}, cpu_us: {load id: since its LOAD}, both of the workers that use most}.
    PONG = 17
    # engine: Code of a worker can be neither run nor ended {code, message, cpu_us}: its calls have failed, and the process must be replaced. `call` is the one that ran, or 0. Only UNLOADED may follow for this worker.
    STUCK = 19
    # engine: The rest of the request body is the rest of the response body: the engine sends back what it has of it, Python does the rest itself and tells only the end.
    ECHO = 20
    # both: Python asks for the V8 code cache of a loaded version; the engine answers with it (u32 length per module, then blobs).
    CODE = 18


class Flag(IntFlag):
    """Bits of a frame's flags."""

    END = 1
    DONE = 2
    LOW = 8
    FAIL = 4


class Event(IntEnum):
    """What a CALL starts."""

    FETCH = 0
    SCHEDULED = 1
    QUEUE = 2
    TAIL = 3
    RPC = 4
    ENTRYPOINT = 5


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

    # A bug of Atoll's; the details are in the node's own log.
    INTERNAL = 1
    # The handler threw.
    EXCEPTION = 2
    # The handler returned something that is no Response, or a response that cannot be sent.
    NOT_A_RESPONSE = 3
    # The handler waits for something that can never happen.
    NEVER_RESPONDS = 4
    # The main module has no default export.
    NO_DEFAULT = 5
    # Neither a fetch handler nor a fetch listener exists.
    NO_FETCH = 6
    # `fetch` of the default export is not a function.
    FETCH_NOT_FUNCTION = 7
    # The code does not parse, or an import cannot be resolved.
    COMPILE = 8
    # The top-level code threw or never finished.
    STARTUP = 9
    # The call used more CPU time than its limit.
    CPU = 10
    # The isolate used more memory than its limit.
    MEMORY = 11
    # The call took longer than its limit.
    WALL = 12
    # The client went away.
    CANCELED = 13
    # The engine process ended while the call ran in it.
    ENGINE_DIED = 14
    # Too many calls wait for this worker.
    OVERLOADED = 15
    # No engine can take the call now.
    UNAVAILABLE = 16
    # No worker answers on this host and path.
    UNKNOWN_HOST = 17
    # The isolate went away before the call began; it may be tried again.
    UNLOADED = 18
    # The response body broke while it was being sent.
    STREAM = 19
    # The worker passed something the API does not take.
    INVALID_ARGUMENT = 20
    # The worker named a binding it was not given.
    NOT_GRANTED = 21
    # A limit on what a worker may ask for was reached.
    QUOTA_EXCEEDED = 22
    # The tenant has used the CPU time it may use per minute.
    CPU_QUOTA = 50
    # The node is shutting down.
    SHUTTING_DOWN = 23
    # The worker ended engines again and again, and is refused for a while.
    BLOCKED = 26
    # Workers called each other in too long a chain.
    LOOP = 30
    # A worker may not reach this host or port.
    EGRESS_HOST = 31
    # A worker may not reach this address.
    EGRESS_ADDRESS = 32
    # Another server could not be reached, or answered with something that is no HTTP.
    NETWORK = 33
    # A binding refused what the worker asked of it; the message says why.
    BINDING = 40
    # The node could not store or read: a full disk, say. Nothing was changed.
    STORAGE = 41


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
        500, 1101, Outcome.INTERNAL_ERROR, "Error", "A bug of Atoll's; the details are in the node's own log."
    ),
    ErrorCode.EXCEPTION: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The handler threw."
    ),
    ErrorCode.NOT_A_RESPONSE: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "TypeError", "The handler returned something that is no Response, or a response that cannot be sent."
    ),
    ErrorCode.NEVER_RESPONDS: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The handler waits for something that can never happen."
    ),
    ErrorCode.NO_DEFAULT: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The main module has no default export."
    ),
    ErrorCode.NO_FETCH: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "Neither a fetch handler nor a fetch listener exists."
    ),
    ErrorCode.FETCH_NOT_FUNCTION: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "TypeError", "`fetch` of the default export is not a function."
    ),
    ErrorCode.COMPILE: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "SyntaxError", "The code does not parse, or an import cannot be resolved."
    ),
    ErrorCode.STARTUP: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "The top-level code threw or never finished."
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
        499, 1101, Outcome.CANCELED, "AbortError", "The client went away."
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
        503, 1105, Outcome.INTERNAL_ERROR, "Error", "The isolate went away before the call began; it may be tried again."
    ),
    ErrorCode.STREAM: ErrorFacts(
        500, 1101, Outcome.RESPONSE_STREAM_DISCONNECTED, "Error", "The response body broke while it was being sent."
    ),
    ErrorCode.INVALID_ARGUMENT: ErrorFacts(
        400, 1101, Outcome.EXCEPTION, "TypeError", "The worker passed something the API does not take."
    ),
    ErrorCode.NOT_GRANTED: ErrorFacts(
        403, 1101, Outcome.EXCEPTION, "Error", "The worker named a binding it was not given."
    ),
    ErrorCode.QUOTA_EXCEEDED: ErrorFacts(
        429, 1015, Outcome.EXCEPTION, "Error", "A limit on what a worker may ask for was reached."
    ),
    ErrorCode.CPU_QUOTA: ErrorFacts(
        429, 1027, Outcome.EXCEEDED_CPU, "Error", "The tenant has used the CPU time it may use per minute."
    ),
    ErrorCode.SHUTTING_DOWN: ErrorFacts(
        503, 1105, Outcome.LOAD_SHED, "Error", "The node is shutting down."
    ),
    ErrorCode.BLOCKED: ErrorFacts(
        503, 1103, Outcome.KILL_SWITCH, "Error", "The worker ended engines again and again, and is refused for a while."
    ),
    ErrorCode.LOOP: ErrorFacts(
        508, 1019, Outcome.EXCEPTION, "Error", "Workers called each other in too long a chain."
    ),
    ErrorCode.EGRESS_HOST: ErrorFacts(
        403, 1021, Outcome.EXCEPTION, "TypeError", "A worker may not reach this host or port."
    ),
    ErrorCode.EGRESS_ADDRESS: ErrorFacts(
        403, 1024, Outcome.EXCEPTION, "TypeError", "A worker may not reach this address."
    ),
    ErrorCode.NETWORK: ErrorFacts(
        502, 1101, Outcome.EXCEPTION, "TypeError", "Another server could not be reached, or answered with something that is no HTTP."
    ),
    ErrorCode.BINDING: ErrorFacts(
        500, 1101, Outcome.EXCEPTION, "Error", "A binding refused what the worker asked of it; the message says why."
    ),
    ErrorCode.STORAGE: ErrorFacts(
        503, 1101, Outcome.EXCEPTION, "Error", "The node could not store or read: a full disk, say. Nothing was changed."
    ),
}
