"""Which server answers env.AI, under which names, and its key. Only operators see the server and the key."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from atoll.config import Settings
from atoll.egress.client import Origin
from atoll.errors import StartError

KEY_VARIABLE = "OPENAI_API_KEY"
KEY = re.compile(r"[\x21-\x7e]{1,4096}")


class AiSettings(NamedTuple):
    origin: Origin
    host: str  # the header
    base: str  # the path before /chat/completions
    key: str  # "" for a server without keys
    models: Mapping[str, str] = MappingProxyType({})  # the worker's name -> the server's
    default: str = ""  # the server's name of the model for text generation
    default_embedding: str = ""
    timeout: float = 300.0

    def __repr__(self) -> str:
        return f"AiSettings({self})"

    def __str__(self) -> str:
        return f"{'https' if self.origin.tls else 'http'}://{self.host}{self.base}"

    def model(self, name: str, *, is_embedding: bool) -> str | None:
        """The server's name of a model that a worker asks for; None if there is none."""
        default = self.default_embedding if is_embedding else self.default
        return self.models.get(name) or default or None


def read_ai(settings: Settings, environment: Mapping[str, str] = os.environ) -> AiSettings | None:
    """The server that the settings name; None if there is none. StartError if they are wrong."""
    endpoint = str(settings.value("ai_endpoint"))
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    try:
        port = parts.port
    except ValueError:
        port = -1
    is_plain = not (parts.query or parts.username or parts.fragment) and re.fullmatch(r"[!-~]*", parts.path)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or not is_plain:
        raise StartError(
            f"ai_endpoint is {endpoint!r}, which is not the address of a server",
            "give the address with its path, such as http://localhost:11434/v1",
            "ai_endpoint",
        )
    is_tls = parts.scheme == "https"
    return AiSettings(
        Origin(is_tls, parts.hostname, port or (443 if is_tls else 80)),
        parts.netloc,
        parts.path.rstrip("/"),
        _key(str(settings.value("ai_key_file")), environment),
        dict(_pair(text) for text in settings.value("ai_models")),
        str(settings.value("ai_default_model")),
        str(settings.value("ai_default_embedding_model")),
        float(settings.value("ai_timeout")),
    )


def _pair(text: str) -> tuple[str, str]:
    name, mark, served = (part.strip() for part in text.partition("="))
    if not (name and mark and served):
        raise StartError(
            f"ai_models has {text!r}, which is not NAME=NAME ON THE SERVER",
            'write ["@cf/meta/llama-3.1-8b-instruct=llama3.1:8b"]',
            "ai_models",
        )
    return name, served


def _key(file: str, environment: Mapping[str, str]) -> str:
    if file:
        try:
            key = Path(file).expanduser().read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise StartError(
                f"the key of the AI server cannot be read: {file}: {reason}",
                "check the path and its permissions",
                "ai_key_file",
            ) from None
        if not key:
            raise StartError(f"{file} is empty", "write the key of the AI server into it", "ai_key_file")
    else:
        key = environment.get(KEY_VARIABLE, "").strip()
    if key and not KEY.fullmatch(key):
        raise StartError(
            "the key of the AI server has characters that no key has",
            f"check the file, or {KEY_VARIABLE} of the environment",
            "ai_key_file",
        )
    return key
