"""Makes untrusted text safe to print.

Console lines, exceptions, names, URLs, headers and error texts come from workers, clients and servers. A terminal obeys
control characters in them: they move the cursor, clear lines, set titles, fill the clipboard. Other characters reverse
the reading order or are invisible. This module makes them visible: ESC is printed as `\\x1b`.
"""

from __future__ import annotations

import re

# C0 controls except tab and newline, DEL, C1 controls, marks and overrides of the reading direction, line and
# paragraph separators, invisible characters, tags. U+200C and U+200D stay: words and emoji need them.
UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff"
)
UNSAFE_IN_TEXT = re.compile(f"[{UNSAFE}]")
UNSAFE_IN_LINE = re.compile(f"[{UNSAFE}\t\n]")
NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
DEEPER = 2  # minimum indentation of further lines
CONTINUED = 4  # indentation added if a line has less


def plain(text: str) -> str:
    """Printable text of one or more lines: newlines and tabs stay."""
    return UNSAFE_IN_TEXT.sub(_visible, text)


def plain_line(text: str) -> str:
    """Printable text that stays on one line."""
    return UNSAFE_IN_LINE.sub(_visible, text)


def entry(text: str) -> str:
    """Printable text whose first line is Atoll's. Further lines are indented, so that none looks like Atoll's."""
    if "\n" not in text:
        return plain(text)
    first, *rest = plain(text).split("\n")
    indent = len(first) - len(first.lstrip(" "))
    if all(line.startswith(" " * (indent + DEEPER)) for line in rest if line):
        return "\n".join([first, *rest])
    margin = " " * (indent + CONTINUED)
    return "\n".join([first, *(margin + line if line else line for line in rest)])


def plain_json(document: str) -> str:
    """A JSON document with the same value, in which every unsafe character is escaped the way JSON does it."""
    return UNSAFE_IN_TEXT.sub(_escaped, document)


def _visible(found: re.Match[str]) -> str:
    char = found[0]
    code = ord(char)
    if char in NAMED:
        return NAMED[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
