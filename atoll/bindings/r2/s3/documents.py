"""XML of the S3 endpoint: answers are written, small requests are read in bounded steps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from atoll.bindings.r2.s3.faults import S3Fault, clean

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
STEP = 32 << 10  # bytes that are parsed at once: the event loop serves others in between
MAX_DOCUMENT = 4 << 20
MAX_TAGS = 250_000  # tags: 10,000 parts of an upload with ten fields each
MAX_QUOTES = 60_000  # ETags have quotes, and so have attributes: one element may have very many
MAX_FIELDS = 50  # of one entry

Content: TypeAlias = "str | int | bool | Iterable[tuple[str, Content]]"


def document(name: str, content: Iterable[tuple[str, Content]]) -> bytes:
    """An answer: a root with elements, each a text or further elements."""
    parts = [f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{NAMESPACE}">']
    _write(content, parts)
    parts.append(f"</{name}>")
    return "".join(parts).encode()


def _write(content: Iterable[tuple[str, Content]], parts: list[str]) -> None:
    for name, value in content:
        if isinstance(value, bool):
            parts.append(f"<{name}>{'true' if value else 'false'}</{name}>")
        elif isinstance(value, str | int):
            parts.append(f"<{name}>{escape(clean(str(value)))}</{name}>")
        else:
            parts.append(f"<{name}>")
            _write(value, parts)
            parts.append(f"</{name}>")


async def read_tree(body: bytes, root: str) -> ElementTree.Element:
    """The root of a document. S3Fault if it is not of this name."""
    if len(body) > MAX_DOCUMENT or b"<!" in body or b"\0" in body:  # declarations can make a small document large
        raise S3Fault("MalformedXML", "The XML you provided is too large, or has declarations.")
    if body.count(b"<") > MAX_TAGS or body.count(b'"') + body.count(b"'") > MAX_QUOTES:
        raise S3Fault("MalformedXML", "The XML you provided has too many elements or attributes.")
    builder = ElementTree.TreeBuilder()
    parser = ElementTree.XMLParser(target=builder)
    try:
        for first in range(0, len(body), STEP):
            parser.feed(body[first : first + STEP])
            await asyncio.sleep(0)
        tree = parser.close()
    except ElementTree.ParseError:
        raise S3Fault("MalformedXML", "The XML you provided was not well-formed.") from None
    if name_of(tree) != root:
        raise S3Fault("MalformedXML", f"The XML you provided is not a {root} document.")
    return tree


async def read_document(body: bytes, root: str, entry: str) -> list[dict[str, str]]:
    """The fields of each `entry` directly below the root. S3Fault if the document is not of this form."""
    tree = await read_tree(body, root)
    found: list[dict[str, str]] = []
    for number, element in enumerate(tree):
        if name_of(element) == entry:
            if len(element) > MAX_FIELDS:
                raise S3Fault("MalformedXML", f"{entry} has more than {MAX_FIELDS} fields.")
            found.append({name_of(child): child.text or "" for child in element})
        if number % 500 == 499:
            await asyncio.sleep(0)
    return found


def name_of(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
