"""Text from elsewhere in a terminal: nothing in it is executed, reordered or invisible."""

from __future__ import annotations

import json
import unicodedata

import pytest

from atoll.plain import entry, plain, plain_json, plain_line

ATTACKS = {
    "OSC 0 sets the title": "\x1b]0;owned\x07",
    "OSC 8 makes a link": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "OSC 52 fills the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "CSI clears the screen": "\x1b[2J\x1b[H",
    "CSI as one C1 byte": "\x9b2J",
    "OSC as one C1 byte": "\x9d0;owned\x9c",
    "CR goes back to the begin of the line": "fake\rreal",
    "BS takes letters back": "secret\b\b\b\b\b\bpublic",
    "DEL": "a\x7fb",
    "NEL is a line end": "a\x85error: b",
    "VT and FF are line ends": "a\x0berror: b\x0cerror: c",
    "NUL": "a\x00b",
    "an override of the direction": "a\u202etxt.exe",
    "an isolate of the direction": "\u2066a\u2069",
    "a line separator": "a\u2028b\u2029c",
    "a lone surrogate": "a\ud800b\udfffc",
    "invisible": "a\u200bb\ufeffc\u2060d",
    "tags": "a\U000e0041b",
}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_nothing_of_an_attack_is_left(text: str) -> None:
    for made in (plain(text), plain_line(text), entry(text)):
        made.encode()  # no surrogate is left
        assert not [char for char in made if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
        assert made != text


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_json_keeps_its_value_and_has_no_unsafe_character(text: str) -> None:
    document = plain_json(json.dumps({text: [text]}, ensure_ascii=False))
    document.encode()
    assert not [char for char in document if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert json.loads(document) == {text: [text]}


def test_every_control_character_is_shown_as_its_number() -> None:
    assert plain("\x1b[31m\r\x08\x9b\u202e\ud83d\U000e0001") == r"\x1b[31m\r\x08\x9b\u202e\ud83d\U000e0001"
    for code in (*range(0x20), *range(0x7F, 0xA0)):
        assert plain_line(chr(code)).startswith("\\"), hex(code)


def test_ordinary_text_stays_unchanged() -> None:
    for text in ("Größe", "日本語", "👩‍👩‍👧", "نمی‌خواهم", "a\tb", "C:\\x1b"):
        assert plain(text) == text


def test_newlines_and_tabs_stay_in_a_text_and_not_in_a_line() -> None:
    assert plain("a\n\tb") == "a\n\tb"
    assert plain_line("a\n\tb") == r"a\n\tb"


def test_no_line_of_a_foreign_text_looks_like_a_line_of_atoll() -> None:
    assert entry("error: x\nhint: run this\r\nerror: y\n\n  | z") == (
        "error: x\n    hint: run this\\r\n    error: y\n\n      | z"
    )
    assert entry("error: x\n    w.js:1:2\n\n  > 1 | y") == "error: x\n    w.js:1:2\n\n  > 1 | y"
    assert entry("    log  x\n    error  y").splitlines()[1] == " " * 8 + "    error  y"
