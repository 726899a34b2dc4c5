"""The yardstick of `make bench`: the least that a Python server on uvloop and httptools does for a request.

It parses with llhttp, ignores headers and URL, and answers every request with the same bytes. The figures of Atoll,
which adds routing, limits and an engine in another process, are ratios to this. Run: python bench/raw_echo.py [port]
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import httptools
import uvloop

BODY = b"Hello"
RESPONSE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain;charset=UTF-8\r\ndate: Sun, 16 Nov 2026 09:00:00 GMT\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


class Echo(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    def on_message_complete(self) -> None:
        self.transport.write(RESPONSE)
        if not self.parser.should_keep_alive():
            self.transport.close()


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    print(f"raw echo on http://127.0.0.1:{port}", file=sys.stderr)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8081))
