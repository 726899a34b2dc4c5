"""A compromised engine: speaks the wire correctly at first, then sends the lie it was started with.

It is started as `lying_engine.py … main.js run …` in place of node; the lie is the text of that main.js. It keeps its
socket open after the lie, as a hostile engine would: only Python can end it.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from atoll.wire.codec import frame
from atoll.wire.generated import CHUNK, INNER_CALLS, LEDGER, WINDOW, WIRE_HASH, ErrorCode, Flag, Frame

OPS = ["echo.say", "echo.wait"]
CPU = json.dumps({"code": int(ErrorCode.CPU), "message": "used 60 ms of CPU, limit 50 ms"}).encode()
UNLOADED = json.dumps({"code": int(ErrorCode.UNLOADED), "message": "not here"}).encode()


def response(worker: int, call: int, flags: int = Flag.END | Flag.DONE, status: int = 200, body: bytes = b"") -> bytes:
    return frame(Frame.RESPONSE, worker, call, struct.pack("<HHII", status, 0, 1, 0) + body, flags)


def op(worker: int, number: int, index: int, call: int, meta: bytes = b'{"binding":"ECHO"}') -> bytes:
    return frame(Frame.OP, worker, number, struct.pack("<HHII", index, 0, call, len(meta)) + meta)


def done(worker: int, call: int, outcome: int = 0) -> bytes:
    return frame(Frame.DONE, worker, call, struct.pack("<II", 1, outcome))


def body(worker: int, call: int, size: int) -> bytes:
    return frame(Frame.BODY, worker, call, b"x" * size)


def inner(worker: int, call: int, flags: int = 0, number: int = INNER_CALLS, size: int = 2) -> bytes:
    head = struct.pack("<IIIIHHIIHBBI", 1, worker, call, 1, 0, 200, 1, 1, 1, 0, 0, size)
    return frame(Frame.INNER, worker, number, head + b"{}", flags)


def early_failure(worker: int, call: int) -> bytes:
    return frame(Frame.FAIL, worker, call, CPU, Flag.END)


# Each entry is what the engine answers to a CALL for worker `w`, call `c`.
LIES = {
    "garbage": lambda w, c: os.urandom(8) + b"\xff" * 64,
    "a frame only Python sends": lambda w, c: frame(Frame.PING),
    "an endless frame": lambda w, c: struct.pack("<IBBHII", 0xFFFFFFFF, Frame.CODE, 0, 0, w, 0),
    "a second hello": lambda w, c: hello(),
    "a response of another call": lambda w, c: response(w, c + 7),
    "a response of another worker": lambda w, c: response(w + 7, c),
    "two responses": lambda w, c: response(w, c, Flag.END) * 2,
    "a response after done": lambda w, c: response(w, c) * 2,
    "a body without a response": lambda w, c: body(w, c, 5),
    "a body after its end": lambda w, c: response(w, c, Flag.END) + body(w, c, 5),
    "a body beyond its credit": lambda w, c: response(w, c, 0) + body(w, c, CHUNK) * (WINDOW // CHUNK + 1),
    "empty bodies for ever": lambda w, c: response(w, c, 0) + body(w, c, 0),
    "a body beyond a chunk": lambda w, c: response(w, c, 0) + body(w, c, CHUNK + 1),
    "done before the response": lambda w, c: done(w, c),
    "done before the body ended": lambda w, c: response(w, c, 0) + done(w, c),
    "done twice": lambda w, c: response(w, c, Flag.END) + done(w, c) * 2,
    "an outcome nobody knows": lambda w, c: response(w, c, Flag.END) + done(w, c, 77),
    "a status of zero": lambda w, c: response(w, c, status=0),
    "a head longer than its frame": lambda w, c: frame(Frame.RESPONSE, w, c, struct.pack("<HHII", 200, 0, 1, 99), 1),
    "credit for nothing": lambda w, c: frame(Frame.CREDIT, w, c, struct.pack("<I", 1)),
    "a failure that is no json": lambda w, c: frame(Frame.FAIL, w, c, b"{{{"),
    "a failure with an unknown code": lambda w, c: frame(Frame.FAIL, w, c, b'{"code":999}'),
    "an early failure of an answered call": lambda w, c: response(w, c, Flag.END) + early_failure(w, c),
    "a json bomb": lambda w, c: frame(Frame.FAIL, w, c, b'{"a":' * 100_000),
    "loaded twice": lambda w, c: frame(Frame.LOADED, w, 0, b'{"handlers":["fetch"],"startup_us":1}'),
    "a worker never loaded": lambda w, c: frame(Frame.LOADED, w + 7, 0, b'{"handlers":[],"startup_us":1}'),
    "unloaded for no reason": lambda w, c: frame(Frame.UNLOADED, w, 0, b"{}"),
    "stuck code of a worker never loaded": lambda w, c: frame(Frame.STUCK, w + 7, 0, b'{"code":10}'),
    "stuck for no known reason": lambda w, c: frame(Frame.STUCK, w, c, b"{}"),
    "a call inside the engine over no route": lambda w, c: inner(w, c),
    "a call inside the engine that ended over no route": lambda w, c: inner(w, c, Flag.DONE),
    "a call inside the engine with a number of Python's": lambda w, c: inner(w, c, number=c + 1),
    "a call inside the engine whose meta is longer than its frame": lambda w, c: inner(w, c, size=0xFFFFFFFF),
    "a call inside the engine that is cut": lambda w, c: frame(Frame.INNER, w, INNER_CALLS, bytes(8)),
    "an answer inside the engine to a call from outside": lambda w, c: response(
        w, c, Flag.END | Flag.DONE | Flag.INNER
    ),
    "a WebSocket of an object it does not have": lambda w, c: frame(
        Frame.SOCKET, w, 3, struct.pack("<II", 1, 1) + bytes(4)
    ),
    "a WebSocket that is cut": lambda w, c: frame(Frame.SOCKET, w, 3, bytes(3)),
    "code nobody asked for": lambda w, c: frame(Frame.CODE, w, 0, bytes(4)) * 3,
    "a pong nobody asked for": lambda w, c: frame(Frame.PONG, payload=b"{}") * 20,
    "an op that does not exist": lambda w, c: op(w, 1, 99, c),
    "an op of a worker never loaded": lambda w, c: op(w + 7, 1, 0, c),
    "an op with lying lengths": lambda w, c: frame(Frame.OP, w, 1, struct.pack("<HHII", 0, 0, c, 5000)),
    "the same op twice at once": lambda w, c: op(w, 1, 1, c, b'{"binding":"ECHO","ms":9000}') * 2,
    "a log level nobody knows": lambda w, c: frame(Frame.LOG, w, c, b"\x63" + bytes(11)),
    "a log line at no time": lambda w, c: frame(Frame.LOG, w, c, struct.pack("<B3xd", 1, float("nan"))),
}


def commit(
    worker: int, slot: int, sequence: int, pages: int = 1, numbers: tuple[int, ...] = (1,), rest: bytes = b""
) -> bytes:
    head = struct.pack("<QIIB7xq", sequence, pages, len(numbers), 0, -1)
    contents = struct.pack(f"<{len(numbers)}I", *numbers) + bytes(4096 * len(numbers)) + rest
    return frame(Frame.COMMIT, worker, slot, head + contents)


def accepted(number: int, tags: int = 0) -> bytes:
    """The payload of a SOCKET that accepts a WebSocket."""
    return struct.pack("<II", 1, number) + b"\1" + bytes(tags)


def socket_frame(worker: int, slot: int, what: int, payload: bytes) -> bytes:
    return frame(Frame.SOCKET, worker, slot, struct.pack("<II", what, 1) + payload)


# What the engine answers to a call of an object that is open as slot `s` of worker `w`.
OBJECT_LIES = {
    "a commit of a slot never open": lambda w, s: commit(w, s + 7, 1),
    "a commit of a worker never loaded": lambda w, s: commit(w + 7, s, 1),
    "a gap in the sequence": lambda w, s: commit(w, s, 2),
    "a commit twice": lambda w, s: commit(w, s, 1) * 2,
    "a page beyond the size": lambda w, s: commit(w, s, 1, numbers=(2,)),
    "page zero": lambda w, s: commit(w, s, 1, numbers=(0,)),
    "more bytes than pages": lambda w, s: commit(w, s, 1, rest=b"x"),
    "an alarm at no time": lambda w, s: frame(Frame.COMMIT, w, s, struct.pack("<QIIB7xq", 1, 1, 0, 1, -5)),
    "an unknown change of the alarm": lambda w, s: frame(Frame.COMMIT, w, s, struct.pack("<QIIB7xq", 1, 1, 0, 9, 5)),
    "a socket of a slot never open": lambda w, s: frame(Frame.SOCKET, w, s + 7, accepted(1)),
    "a socket it never accepted": lambda w, s: frame(Frame.SOCKET, w, s, struct.pack("<II", 3, 5) + b"x"),
    "a socket accepted twice": lambda w, s: frame(Frame.SOCKET, w, s, accepted(1)) * 2,
    "a socket with too many tags": lambda w, s: frame(Frame.SOCKET, w, s, accepted(1, 3000)),
    "too long an attachment": lambda w, s: (
        frame(Frame.SOCKET, w, s, accepted(1)) + socket_frame(w, s, 4, bytes(16_385))
    ),
    "more messages than were granted": lambda w, s: (
        frame(Frame.SOCKET, w, s, accepted(1)) + socket_frame(w, s, 3, b"\2" + bytes([0, 0, 0, 1]) + bytes(65_000)) * 5
    ),
    "a message of no kind": lambda w, s: frame(Frame.SOCKET, w, s, accepted(1)) + socket_frame(w, s, 3, rb"\9" * 100),
    "too long an automatic response": lambda w, s: frame(
        Frame.SOCKET, w, s, struct.pack("<III", 5, 0, 2000) + bytes(5000)
    ),
    "a time limit of a century": lambda w, s: frame(Frame.SOCKET, w, s, struct.pack("<III", 6, 0, 1 << 31)),
    "something unknown about a socket": lambda w, s: (
        frame(Frame.SOCKET, w, s, accepted(1)) + socket_frame(w, s, 9, b"")
    ),
    "a shut door that nobody shut": lambda w, s: frame(Frame.SHUT, w, s),
    "a reset of a slot never open": lambda w, s: frame(Frame.RESET, w, s + 7, UNLOADED),
}


def hello(wire: str = WIRE_HASH, ops: object = OPS) -> bytes:
    return frame(Frame.HELLO, payload=json.dumps({"wire": wire, "v8": "0.0", "ops": ops}).encode())


HELLOS = {
    "another wire": lambda: hello("0123456789abcdef"),
    "other ops": lambda: hello(ops=["echo.say", "kv.get"]),
    "an op named twice": lambda: hello(ops=[*OPS, "echo.say"]),
    "ops that are no list": lambda: hello(ops=5),
    "no hello first": lambda: frame(Frame.PONG, payload=b"{}"),
    "a hello that is no json": lambda: frame(Frame.HELLO, payload=b"hello!"),
}


def serve(lie: str) -> None:
    link = socket.socket(fileno=3)
    ledger = mmap.mmap(5, LEDGER)
    slot = 0
    link.sendall(HELLOS[lie]() if lie in HELLOS else hello())
    if lie in HELLOS:
        time.sleep(60)
    while True:
        length, kind, _, _, worker, call = struct.unpack("<IBBHII", take(link, 16))
        take(link, length)
        if kind == Frame.PING and lie != "deaf":
            link.sendall(frame(Frame.PONG, payload=b"{}"))
        elif kind == Frame.LOAD and lie == "dies while loading":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == Frame.LOAD and lie not in ("never loads", "responds before loaded"):
            link.sendall(frame(Frame.LOADED, worker, 0, b'{"handlers":["fetch"],"startup_us":1}'))
        elif kind == Frame.OPEN:
            slot = call
        elif kind == Frame.CALL and lie in OBJECT_LIES:
            link.sendall(OBJECT_LIES[lie](worker, slot))
        elif kind == Frame.CALL:
            ledger[call] = lie != "dies before it begins"
            answer(link, lie, worker, call)
        elif kind == Frame.CANCEL and lie == "silent until cancelled":
            late = response(worker, call, 0) + body(worker, call, 10) + frame(Frame.CREDIT, worker, call, bytes(4))
            link.sendall(late + done(worker, call, 5))


def answer(link: socket.socket, lie: str, worker: int, call: int) -> None:
    if lie in LIES:
        link.sendall(LIES[lie](worker, call))
    elif lie == "refuses calls":
        link.sendall(frame(Frame.FAIL, worker, call, UNLOADED) + done(worker, call, 7))
    elif lie == "fails early and goes on":
        late = response(worker, call, 0) + body(worker, call, 10) + frame(Frame.FAIL, worker, call, UNLOADED)
        link.sendall(early_failure(worker, call) + late + done(worker, call, 7))
    elif lie == "dies before it begins":
        os.kill(os.getpid(), signal.SIGKILL)
    elif lie == "reads nothing":
        time.sleep(60)
    elif lie in ("honest", "responds before loaded"):
        link.sendall(response(worker, call, body=b"hello"))


def take(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = link.recv(min(count - len(data), 1 << 20))
        if not more:
            os._exit(0)
        data += more
    return data


if __name__ == "__main__":
    if "snapshot" in sys.argv:
        Path(sys.argv[-1]).write_bytes(b"snapshot")
    else:
        serve(Path(next(word for word in sys.argv if word.endswith("main.js"))).read_text())
