"""Receives email by SMTP or LMTP, for the routes of the operator. A mail server stands in front: no TLS, no queue.

Strict where senders and receivers of SMTP disagree: commands end in CR LF, a message ends with CR LF . CR LF alone, and
one with a bare CR or LF is refused. So no message can hide a second one. Each message has one recipient: further ones
get 452, and the sender repeats it for them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from email.utils import formatdate

from atoll.bindings.email.addresses import is_address
from atoll.bindings.email.faults import EmailFault
from atoll.bindings.email.incoming import IncomingMail
from atoll.bindings.email.settings import EmailSettings
from atoll.bindings.services import Workers
from atoll.errors import StartError

log = logging.getLogger("atoll.bindings")

SILENT_SECONDS = 60.0
SESSION_SECONDS = 600.0
MAX_SESSIONS = 64
MAX_LINE = 1_000
MAX_ERRORS = 20  # wrong commands of a session
BUFFERED = 4  # messages of full size that all sessions together may hold
READ = 64 << 10
PATH = re.compile(rb"(FROM|TO):[ ]?<([^<>]{0,320})>((?: [!-~]{1,100}){0,10})", re.IGNORECASE)
SIZE = re.compile(rb" SIZE=([0-9]{1,12})\b", re.IGNORECASE)
END = b"\r\n.\r\n"
STEP = 128 << 10  # bytes of a message that are looked at before others get a turn


class SessionOver(Exception):
    """The client has gone, or misbehaves."""


class EmailListener:
    def __init__(self, settings: EmailSettings, workers: Workers, incoming: IncomingMail) -> None:
        assert settings.listen is not None
        self.settings = settings
        self.workers = workers
        self.incoming = incoming
        self.room = BUFFERED * settings.max_bytes
        self._sessions: set[asyncio.Task[None]] = set()
        bound = _bind(*settings.listen)
        self._starting = asyncio.ensure_future(asyncio.start_server(self._accept, sock=bound, limit=READ))

    async def close(self) -> None:
        server = await self._starting
        server.close()
        for session in self._sessions:
            session.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)
        await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        try:
            if len(self._sessions) > MAX_SESSIONS:
                writer.write(b"421 4.7.0 too many connections\r\n")
                return
            async with asyncio.timeout(SESSION_SECONDS):
                await SmtpSession(self, reader, writer).run()
        except (SessionOver, TimeoutError, OSError, asyncio.CancelledError):
            pass
        except Exception:
            log.exception("a session of SMTP failed")
        finally:
            self._sessions.discard(task)
            writer.close()


class SmtpSession:
    def __init__(self, listener: EmailListener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._listener = listener
        self._settings = listener.settings
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()
        self._peer = ""  # as it calls itself
        self._sender: str | None = None
        self._recipient = ""
        self._errors = 0

    async def run(self) -> None:
        await self._say(f"220 {self._settings.host} Atoll")
        while True:
            await asyncio.sleep(0)  # a packet may hold thousands of commands
            line = await self._line()
            verb, _, rest = line.partition(b" ")
            act = self._acts.get(verb.upper())
            if verb.upper() == b"QUIT":
                return await self._say("221 2.0.0 bye")
            if act is None:
                await self._wrong("500 5.5.2 unknown command")
            else:
                await act(self, rest)

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_LINE:
                await self._say("500 5.5.2 line too long")
                raise SessionOver
            self._buffer += await self._read()
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        if len(line) > MAX_LINE or not line.endswith(b"\r\n") or b"\r" in line[:-2] or b"\0" in line:
            await self._say("500 5.5.2 commands end in CR LF")
            raise SessionOver
        return line[:-2]

    async def _read(self) -> bytes:
        async with asyncio.timeout(SILENT_SECONDS):
            data = await self._reader.read(READ)
        if not data:
            raise SessionOver
        return data

    async def _say(self, text: str) -> None:
        self._writer.write(text.encode("ascii", "replace") + b"\r\n")
        async with asyncio.timeout(SILENT_SECONDS):
            await self._writer.drain()

    async def _wrong(self, text: str) -> None:
        self._errors += 1
        await self._say(text)
        if self._errors > MAX_ERRORS:
            raise SessionOver

    def _reset(self) -> None:
        self._sender, self._recipient = None, ""

    # --- commands ---

    async def _hello(self, rest: bytes) -> None:
        self._reset()
        self._peer = re.sub(rb"[^A-Za-z0-9.:\[\]-]", b"?", rest[:200]).decode() or "unknown"
        lines = [self._settings.host, f"SIZE {self._settings.max_bytes}", "8BITMIME", "PIPELINING"]
        await self._say("\r\n".join(f"250-{line}" for line in lines) + "\r\n250 ENHANCEDSTATUSCODES")

    async def _plain_hello(self, rest: bytes) -> None:
        self._reset()
        self._peer = "unknown"
        await self._say(f"250 {self._settings.host}")

    async def _mail(self, rest: bytes) -> None:
        found = PATH.fullmatch(rest)
        if not self._peer or self._sender is not None:
            return await self._wrong("503 5.5.1 say EHLO or LHLO first, and MAIL once")
        address = found[2].decode("latin-1") if found is not None and found[1].upper() == b"FROM" else None
        if address is None or (address and not is_address(address)):
            return await self._wrong("501 5.1.7 the sender is not an address")
        size = SIZE.search(found[3]) if found is not None else None
        if size is not None and int(size[1]) > self._settings.max_bytes:
            return await self._wrong("552 5.3.4 the message is too large")
        self._sender = address
        await self._say("250 2.1.0 ok")

    async def _rcpt(self, rest: bytes) -> None:
        found = PATH.fullmatch(rest)
        if self._sender is None:
            return await self._wrong("503 5.5.1 say MAIL first")
        if self._recipient:
            return await self._say("452 4.5.3 one recipient at a time")
        address = found[2].decode("latin-1") if found is not None and found[1].upper() == b"TO" else ""
        route = self._settings.route(address) if is_address(address) else None
        if route is None or not route.worker:
            return await self._wrong("550 5.1.1 there is no such address here")
        self._recipient = address
        await self._say("250 2.1.5 ok")

    async def _data(self, rest: bytes) -> None:
        if self._sender is None or not self._recipient:
            return await self._wrong("503 5.5.1 say MAIL and RCPT first")
        room = self._settings.max_bytes
        if self._listener.room < room:
            self._reset()
            return await self._say("452 4.3.1 too many messages at once, try again later")
        self._listener.room -= room
        try:
            await self._say("354 end with a dot")
            content = await self._content()
            sender, recipient = self._sender, self._recipient
            self._reset()
            await self._say(await self._deliver(sender, recipient, content))
        finally:
            self._listener.room += room

    async def _content(self) -> bytearray | None:
        """The message after a CR LF, with its doubled dots; None if it is too large."""
        data, most = bytearray(b"\r\n"), self._settings.max_bytes
        data += self._buffer
        is_large = False
        searched = 0
        while (end := data.find(END, searched)) < 0:
            if len(data) > most + READ:
                is_large = True
                del data[: -len(END)]
            searched = max(len(data) - len(END), 0)
            data += await self._read()
        self._buffer = data[end + len(END) :]
        del data[end + 2 :]
        return None if is_large or len(data) > most + 2 else data

    async def _deliver(self, sender: str, recipient: str, data: bytearray | None) -> str:
        if data is None:
            return "552 5.3.4 the message is too large"
        content = await unstuffed(data)
        if content is None:
            return "554 5.6.0 the message has a bare CR or LF"
        route = self._settings.route(recipient)
        version = self._listener.workers.find_worker(route.tenant, route.worker) if route is not None else None
        if version is None:
            return "451 4.3.0 the worker of this address is not deployed"
        date = formatdate(time.time())
        trace = f"Received: from {self._peer} by {self._settings.host} (Atoll) for <{recipient}>; {date}\r\n"
        try:
            handled = await self._listener.incoming.deliver(version, sender, recipient, trace.encode() + content)
        except EmailFault as fault:
            return f"554 5.6.0 {fault}"
        if handled.rejected is not None:
            return f"550 5.7.1 {handled.rejected}"
        return "250 2.0.0 ok" if handled.outcome == "ok" else "451 4.3.0 the worker failed"

    async def _rset(self, rest: bytes) -> None:
        self._reset()
        await self._say("250 2.0.0 ok")

    async def _noop(self, rest: bytes) -> None:
        await self._wrong("250 2.0.0 ok")  # counted: a session of nothing but NOOP ends

    _acts = {  # noqa: RUF012  # read only
        b"EHLO": _hello,
        b"LHLO": _hello,
        b"HELO": _plain_hello,
        b"MAIL": _mail,
        b"RCPT": _rcpt,
        b"DATA": _data,
        b"RSET": _rset,
        b"NOOP": _noop,
    }


async def unstuffed(data: bytearray) -> bytes | None:
    """A message without the CR LF before it and the doubled dots; None if it has a bare CR or LF. In steps."""
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        end = min(at + STEP, len(data))
        if end < len(data):  # no step ends within a line end, nor between one and its dot
            last = data.rfind(b"\r\n", at + 1, end)
            end = last if last > 0 else end - data.endswith(b"\r", at, end)
        piece = bytes(data[at:end])
        if not piece.count(b"\r\n") == piece.count(b"\n") == piece.count(b"\r"):
            return None
        pieces.append(piece.replace(b"\r\n.", b"\r\n"))
        at += len(piece)
        await asyncio.sleep(0)
    return b"".join(pieces)[2:]


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        return bound
    except OSError as error:
        raise StartError(
            f"email cannot be received on {host}:{port}: {error.strerror}", "choose another port", "email_listen"
        ) from None
