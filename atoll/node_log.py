"""The node's own log on standard error: lines of text, or one JSON object per line.

Messages contain texts of workers and clients, so both forms escape what commands a terminal or looks like a new line.
"""

from __future__ import annotations

import json
import logging
import sys
import time

from atoll.config import Settings
from atoll.plain import entry, plain_json

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class LogFormatter(logging.Formatter):
    """Lines of text: times in UTC, texts of workers and clients escaped, further lines of an entry indented."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return utc(record)

    def format(self, record: logging.LogRecord) -> str:
        return entry(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per entry: time, level, logger, message, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return plain_json(json.dumps(fields, ensure_ascii=False))


def utc(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def set_up_log(settings: Settings) -> None:
    """Send the log of this process to standard error as the settings say. May be called again."""
    handler = logging.StreamHandler(sys.stderr)
    is_json = settings.node_log_format == "json"
    handler.setFormatter(JsonFormatter() if is_json else LogFormatter(LOG_FORMAT))
    logging.basicConfig(level=settings.node_log_level.upper(), handlers=[handler], force=True)
