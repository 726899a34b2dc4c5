"""Content types by extension, the same on every machine, and which of them compress."""

from __future__ import annotations

import mimetypes
from functools import lru_cache
from typing import Final

# Types that older Pythons lack, or name differently from browsers.
_MORE: Final = {
    ".avif": "image/avif",
    ".cjs": "text/javascript",
    ".eot": "application/vnd.ms-fontobject",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".jsonld": "application/ld+json",
    ".m4a": "audio/mp4",
    ".map": "application/json",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".opus": "audio/ogg",
    ".otf": "font/otf",
    ".rss": "application/rss+xml",
    ".atom": "application/atom+xml",
    ".toml": "application/toml",
    ".ttf": "font/ttf",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".webm": "video/webm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
    ".yaml": "text/yaml",
    ".yml": "text/yaml",
}
_KNOWN: Final = mimetypes.MimeTypes(filenames=())  # not /etc/mime.types
_COMPRESS: Final = frozenset((
    "application/javascript", "application/json", "application/toml", "application/vnd.ms-fontobject",
    "application/wasm", "application/xml", "font/otf", "font/ttf", "image/x-icon",
))  # fmt: skip


@lru_cache(1024)
def type_of_extension(extension: str) -> str:
    """The content type of an extension such as `.html`, or nothing if it is unknown."""
    found = _MORE.get(extension) or _KNOWN.types_map[True].get(extension) or _KNOWN.types_map[False].get(extension, "")
    return f"{found}; charset=utf-8" if found.startswith("text/") else found


def media_of(path: str) -> str:
    """The Content-Type of a file."""
    name = path[path.rindex("/") + 1 :]
    dot = name.rfind(".")
    return type_of_extension(name[dot:].lower()[:32]) if dot >= 0 else ""


def compresses(media: str) -> bool:
    """Whether files of this type are worth compressing."""
    plain = media.partition(";")[0]
    return plain.startswith("text/") or plain in _COMPRESS or plain.endswith(("+xml", "+json"))


def is_compressible(media: str, size: int) -> bool:
    """Whether compressed copies of a file are made. A small file fits into one packet anyway."""
    return size >= 1_024 and compresses(media)
