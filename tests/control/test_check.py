"""The checks of a deploy with any input of hypothesis: they accept or refuse, and never crash."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import urljoin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.echo.ops import Echo
from atoll.config import Settings
from atoll.control.checks.body import Binary, DeployBody, checked_env, checked_name, parse_body
from atoll.control.checks.code import checked_module, checked_path
from atoll.control.deploy.draft import Identity, checked_routes, new_draft
from atoll.router import Router
from atoll.workers import Module, host_label

LABEL = st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,20}[a-z0-9_])?", fullmatch=True).filter(lambda name: name.strip("_-"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(LABEL)
def test_every_dns_label_is_a_name(name: str) -> None:
    assert checked_name(name) == name


@given(st.text(max_size=70))
def test_every_accepted_name_is_a_dns_label(name: str) -> None:
    try:
        checked_name(name)
    except Refused as refused:
        assert refused.reason is ApiCode.BAD_NAME and refused.hint
        return
    assert len(name) <= 63 and re.fullmatch(r"[a-z0-9_-]+", name)
    assert not name.startswith("-") and not name.endswith("-")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", host_label(name))


@given(st.text(max_size=30) | st.from_regex(r"[./a-z\\:%?#]{1,12}\.js", fullmatch=True))
def test_an_accepted_module_path_stays_inside_and_is_normalized(path: str) -> None:
    try:
        checked_path(path)
    except Refused:
        return
    assert not PurePosixPath(path).is_absolute()
    assert str(PurePosixPath(path)) == path and ".." not in PurePosixPath(path).parts
    if path.isascii() and " " not in path:
        assert urljoin("file:///x/", path) == f"file:///x/{path}"


@given(st.text(max_size=40))
def test_a_route_is_refused_or_has_one_canonical_form(text: str) -> None:
    router = Router("localhost", ["control.example"])
    try:
        once = checked_routes([text], router)
    except Refused as refused:
        assert refused.reason is ApiCode.BAD_ROUTE
        return
    assert checked_routes(list(once), router) == once


@given(LABEL, LABEL, st.from_regex(r"/[a-z/]{0,10}\*?", fullmatch=True), st.sampled_from(["", "*.", "*"]))
def test_patterns_of_the_documented_form_are_accepted(label: str, top: str, path: str, wildcard: str) -> None:
    text = f"{wildcard}{label}.x{top}{path}"
    assert checked_routes([text, text.upper() if "/" not in path[1:] and path == "/" else text], Router()) == (text,)


def test_routes_on_control_hosts_are_refused() -> None:
    for text in ("localhost/*", "127.0.0.1", "[::1]/x", "Control.Example./*"):
        with pytest.raises(Refused) as refused:
            checked_routes([text], Router("localhost", ["control.example"]))
        assert refused.value.reason is ApiCode.BAD_ROUTE


@given(st.dictionaries(st.sampled_from(DeployBody.__struct_fields__) | st.text(max_size=5), JSON, max_size=4))
def test_any_json_object_is_parsed_or_refused(fields: dict[str, object]) -> None:
    try:
        body = parse_body(msgspec.json.encode(fields))
        new_draft(body, Identity("w", "n", "default", "v", "me", 1.8e9), Settings(), Router(), {"echo": Echo()})
    except Refused as refused:
        assert str(refused)


@given(st.binary(max_size=40))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    try:
        parse_body(raw)
    except Refused as refused:
        assert refused.reason is ApiCode.BAD_BODY


@given(st.text(max_size=20))
def test_any_base64_text_is_decoded_or_refused(text: str) -> None:
    try:
        assert isinstance(checked_module("a.bin", Binary(text)), Module)
    except Refused as refused:
        assert refused.reason is ApiCode.BAD_BODY


def test_variables_may_reach_their_limits_exactly() -> None:
    checked_env({f"V{i}": "é" * 2560 for i in range(128)})
    for env, code in (({"V": "é" * 2561}, ApiCode.VAR_TOO_BIG), ({"V": [1] * 2560}, ApiCode.VAR_TOO_BIG)):
        with pytest.raises(Refused) as refused:
            checked_env(env)
        assert refused.value.reason is code


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.js", "esm"), ("a.mjs", "esm"), ("a.json", "json"), ("a.txt", "text"), ("a.html", "text"), ("a.sql", "text")],
)
def test_the_extension_decides_the_type_of_a_module(path: str, kind: str) -> None:
    assert checked_module(path, "x") == Module(path, kind, b"x")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["a.wasm", "a.bin"])
def test_binary_modules_come_as_base64(path: str) -> None:
    assert checked_module(path, Binary("AP8=")).source == b"\0\xff"
