"""Sessions of SMTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from tests.stalls.flood import connections, flood
from tests.stalls.stage import Stage, attack

INBOX = "export default { fetch() { return new Response(); }, async email(message) { message.setReject('no'); } };"
MB = 1 << 20


def open_session(stage: Stage) -> socket.socket:
    return socket.create_connection(("127.0.0.1", stage.mail_port), 30)


@attack("SMTP: thousands of commands in a packet, on 20 connections")
def many_commands(stage: Stage) -> Iterator[None]:
    with connections(lambda: open_session(stage), 20) as clients:
        yield
        flood(clients, b"RSET\r\n" * 20_000, first=b"EHLO me\r\n")


@attack("SMTP: messages of 24 MB of empty lines and of dots", memory_mb=256)
def odd_messages(stage: Stage) -> Iterator[None]:
    stage.deploy("inbox", INBOX)
    contents = (b"\r\n" * (12 * MB), b"\r\n.." * (6 * MB), b"x" * (24 * MB), b"\r\n" * (6 * MB) + b"\n")
    yield
    for content in contents:
        with open_session(stage) as client:
            client.sendall(b"EHLO me\r\nMAIL FROM:<a@a.example>\r\nRCPT TO:<a@mallory.example>\r\nDATA\r\n")
            said = b""
            while b"\r\n354" not in said:
                said += client.recv(4096)
            client.sendall(b"From: a@a.example\r\nMessage-ID: <1@a.example>\r\n\r\n" + content + b"\r\n.\r\n")
            last = client.recv(4096)
            assert last.startswith((b"550 5.7.1 no", b"554 5.6.0 the message has a bare")), last


@attack("SMTP: lines and heads without end", memory_mb=96)
def endless(stage: Stage) -> Iterator[None]:
    with connections(lambda: open_session(stage), 20) as clients:
        yield
        flood(clients, b"x" * MB)
