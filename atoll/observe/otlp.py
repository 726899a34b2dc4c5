"""Metrics and logs for OpenTelemetry, over OTLP with HTTP and protobuf, beside the traces (traces.py).

The messages are made from the definitions of the protocol (opentelemetry-proto): the logs of the SDK are not stable.
The event loop only collects; a thread makes the messages and sends them. What a collector does not take is dropped and
counted: metrics are cumulative, so the next message has them again, and logs are kept on the node too.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from atoll import __version__
from atoll.errors import StartError
from atoll.logs import Invocation
from atoll.observe.otlp_messages import log_message, metric_message
from atoll.pauses import with_pauses

log = logging.getLogger("atoll.otlp")

Collect: TypeAlias = Callable[[], Awaitable[bytes]]  # the text of /metrics

BOX = 2_000  # entries of logs that wait for the thread
SEND = 500  # in one message
REST_SECONDS = 0.5
TIMEOUT_SECONDS = 5.0
WARN_SECONDS = 60.0
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # as the traces use it: name=value,name=value


class OtlpSender:
    """Sends messages to one URL of a collector. Used by one thread."""

    def __init__(self, setting: str, endpoint: str) -> None:
        """Raises StartError if the extra is missing or the URL is not one."""
        try:
            from opentelemetry.util.re import parse_env_headers
        except ImportError:
            raise StartError(f"the setting {setting} needs OpenTelemetry", "pip install '.[otel]'") from None
        if not endpoint.startswith(("http://", "https://")):
            raise StartError(f"{setting} {endpoint!r} is not a URL", "such as http://localhost:4318/v1/metrics")
        self.setting = setting
        self.dropped = 0  # entries that no collector took
        self._endpoint = endpoint
        self._headers = dict(parse_env_headers(os.environ.get(HEADERS, ""), liberal=True))
        self._next_warning = 0.0

    def send(self, message: bytes, entries: int) -> None:
        headers = {
            **self._headers,
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
            "user-agent": f"Atoll/{__version__}",
        }
        request = urllib.request.Request(self._endpoint, gzip.compress(message, 1), headers)  # http or https
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                answer.read(4096)
        except (OSError, ValueError) as error:  # of the network, an HTTP status, an invalid URL
            self.dropped += entries
            self._warn(error)
            if isinstance(error, urllib.error.HTTPError):
                error.close()

    def _warn(self, error: Exception) -> None:
        now = time.monotonic()
        if now >= self._next_warning:
            self._next_warning = now + WARN_SECONDS
            log.warning("%s does not take what is sent: %s (%d dropped so far)", self.setting, error, self.dropped)


class OtlpMetrics:
    """Sends all metrics each `seconds`, and at the end."""

    def __init__(self, endpoint: str, seconds: float, collect: Collect) -> None:
        self.sender = OtlpSender("otlp_metrics_endpoint", endpoint)
        self._seconds = seconds
        self._collect = collect
        self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._send()

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            await self._send()

    async def _send(self) -> None:
        text = await self._collect()
        await asyncio.to_thread(lambda: self.sender.send(*metric_message(with_pauses(text.decode().splitlines()))))


class OtlpLogs(logging.Handler):
    """Sends console lines and errors of workers, and the node's own log: it is a handler of it."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self.sender = OtlpSender("otlp_logs_endpoint", endpoint)
        self._box: deque[Any] = deque()  # Invocation or logging.LogRecord
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="otlp logs", daemon=True)
        self._thread.start()
        logging.getLogger().addHandler(self)

    def hear(self, record: Invocation) -> None:
        """Take a finished call, if it has something to say."""
        if record.logs or record.failure is not None:
            self._put(record)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != log.name:  # of this module: would come back for ever
            self._put(record)

    def _put(self, item: Invocation | logging.LogRecord) -> None:
        if len(self._box) < BOX:
            self._box.append(item)
        else:
            self.sender.dropped += 1

    def end(self) -> None:
        """Send what is left. Waits for the network for up to a few seconds: call it in a thread."""
        logging.getLogger().removeHandler(self)
        self._closing.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._closing.wait(REST_SECONDS):
            self._empty()
        self._empty()

    def _empty(self) -> None:
        while self._box:
            some = [self._box.popleft() for _ in range(min(SEND, len(self._box)))]
            self.sender.send(log_message(_paced(some)), len(some))


def _paced(items: list[Any]) -> Iterable[Any]:
    return with_pauses(items, 50)
