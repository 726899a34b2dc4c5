"""Every command, option, API path and setting that a document or a hint names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from atoll.cli.client import in_commands
from atoll.cli.main import ENTRIES
from atoll.config import FIELDS, env_names
from tests.documented import (
    FENCE,
    INLINE,
    ROOT,
    Shown,
    command_at,
    commands_in_sentence,
    documents,
    every_option,
    inline_in,
    named,
    options_of,
    sentences,
    typed_in,
    wrong_with,
    wrongs,
)
from tests.running import Atoll

OPTIONS = every_option()
COMMANDS = [(entry.module, command_at(name)) for name, entry in ENTRIES.items()]
SENTENCES = list(sentences(ROOT / "atoll"))
CODE = "".join(path.read_text("utf-8") for path in (ROOT / "atoll").rglob("*.py"))


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_command_in_a_document_is_valid(path: Path) -> None:
    found = [*typed_in(path), *inline_in(path)]
    assert {shown.text: wrong for shown in found if (wrong := wrongs(shown))} == {}


def test_every_command_in_a_hint_or_a_help_text_is_valid() -> None:
    found = [shown for place, text in SENTENCES for shown in commands_in_sentence(place, text)]
    assert len(found) > 100
    assert {(shown.place, shown.text): wrong for shown in found if (wrong := wrongs(shown))} == {}


def test_a_wrong_command_is_detected() -> None:
    for text in (
        "atoll wat",
        "atoll kv wat",
        "atoll logs --worker x",
        "atoll rollback 1 2 3 --wat",
        "atoll kv get a b c",
    ):
        assert wrongs(Shown("", text, False)), text
    assert wrongs(Shown("", "atoll kv get", True)) and not wrongs(Shown("", "atoll kv get", False))
    assert wrongs(Shown("", "echo x | atoll secret put K --wat > y && z", True))
    assert not wrong_with(["secret", "put", "NAME"], is_whole=True)


# Parts of the API without commands.
NO_COMMANDS = ("/api/caches", "/api/ratelimits")


def test_the_command_line_translates_every_hint_of_the_api_into_commands() -> None:
    seen = 0
    for place, text in SENTENCES:
        if not re.match(r"atoll/(api|control|bindings)/", place) or "\n" in text or place.endswith(":1"):
            continue
        if "/manifest.py:" in place:  # patterns of hints, and their replacements
            continue
        if re.search(r"(GET|POST|PUT|PATCH|DELETE) (/api|…)", text) and not text.endswith(NO_COMMANDS):
            told = in_commands(text)
            seen += 1
            shown = list(commands_in_sentence(place, told))
            left = re.findall(r"(?:GET|POST|PUT|PATCH|DELETE) \S+", told)
            assert all(word.endswith(NO_COMMANDS) for word in left), (place, told)
            assert shown or left, (place, told)
            assert not [wrong for each in shown for wrong in wrongs(each)], (place, told)
    assert seen > 8


# Options of other programs that documents name, with their programs.
FOREIGN_OPTIONS = {
    "--kill-whom": "systemctl",
    "--build": "cmake",
    "--remote": "wrangler",
    "--doctor": "tools/projects.py",
    "--seconds": "bench",
    "--seed": "bench",
    "--rounds": "bench",
    "--only": "bench",
    "--through": "bench",
    "--before": "bench",
    "--cap-add": "docker",
    "--new-class": "Cloudflare's API",
    "--delete-class": "Cloudflare's API",
    "--invocation-count-for-": "V8",
    "--extensible-ro-snapshot": "V8",
    "--wasm": "wpt",
}


def options_in(text: str) -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)


def test_every_option_named_in_the_code_exists() -> None:
    """In the file of a command: the option belongs to a command of that file."""
    wrong = {}
    for place, text in SENTENCES:
        file = place.partition(":")[0]
        commands = [command for entry, command in COMMANDS if f"{entry.replace('.', '/')}.py" == file]
        known = {option for command in commands for option in options_of(command)} or OPTIONS
        unknown = [option for option in options_in(text) if option not in known and option not in FOREIGN_OPTIONS]
        if unknown and not list(commands_in_sentence(place, text)):  # those are checked as complete commands
            wrong[place] = unknown
    assert wrong == {}


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_option_named_in_a_document_exists(path: Path) -> None:
    prose = INLINE.findall(FENCE.sub("", path.read_text("utf-8")))
    named_here = {option for text in prose for option in options_in(text)}
    assert named_here - OPTIONS - set(FOREIGN_OPTIONS) == set()


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_variable_named_in_a_document_is_read(path: Path) -> None:
    settings = {name for field in FIELDS for name in env_names(field)}
    found = set(re.findall(r"\bATOLL_[A-Z0-9_]+\b", path.read_text("utf-8"))) - settings
    assert [name for name in found if f'"{name}"' not in CODE] == []


def test_every_setting_named_in_a_hint_or_a_document_exists() -> None:
    texts = [*SENTENCES, *((named(path), path.read_text("utf-8")) for path in documents())]
    wrong = {}
    for place, text in texts:
        found = re.findall(r"\bsettings? `?([a-z]+(?:_[a-z]+)+)\b", text)
        for table in re.findall(r"^\[node\]\n(.*?)(?=^\[|^```|\Z)", text, re.MULTILINE | re.DOTALL):
            found += re.findall(r"^(\w+) *=", table, re.MULTILINE)
        if unknown := set(found) - set(FIELDS):
            wrong[place] = unknown
    assert wrong == {}


def test_every_path_of_the_api_named_in_a_document_or_a_hint_exists(atoll: Atoll) -> None:
    """With its method, if the text names one."""
    routes = atoll.control("GET", "/api/openapi.json").json["paths"]
    known = [(re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))), set(routes[path])) for path in routes]
    texts = [*SENTENCES, *((named(path), path.read_text("utf-8")) for path in documents())]
    wrong, seen = {}, 0
    for place, text in texts:
        pattern = (
            r"(?:\b(GET|POST|PUT|PATCH|DELETE) )?(?<![\w/.])(?:(?:http://)?localhost:8080)?(/api(?:/[\w:{}.*%-]+)*)"
        )
        for method, path in re.findall(pattern, text):
            seen += 1
            fitting = [methods for route, methods in known if route.fullmatch(path.rstrip(".:"))]
            if not any(not method or method.lower() in methods for methods in fitting):
                wrong[place] = f"{method} {path}"
    del wrong["atoll/api/routes.py:1"]  # /api/things: an example of an endpoint
    assert seen > 100
    assert wrong == {}
