"""Multipart bodies split into parts: what browsers and curl send, and invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.api.multipart import Part, form_parts
from atoll.api.refusals import Refused

DISPOSITION = b'Content-Disposition: form-data; name="a"; filename="a.js"\r\n'


def body_of(*contents: bytes, end: bytes = b"--b--\r\n") -> bytes:
    return b"".join(b"--b\r\n" + DISPOSITION + b"\r\n" + content + b"\r\n" for content in contents) + end


@given(st.lists(st.binary(max_size=40) | st.text("\r\n-b ", max_size=12).map(str.encode), min_size=1, max_size=5))
def test_contents_are_parsed_unchanged(contents: list[bytes]) -> None:
    raw = body_of(*contents)
    borders = raw.count(b"\r\n--b\r\n") + raw.count(b"\r\n--b--")
    if borders == len(contents) and not any(b"--b" in content for content in contents):
        assert [part.content for part in form_parts(raw, b"b")] == contents


@given(
    st.binary(max_size=200) | st.lists(st.sampled_from([b"--b", b"\r\n", b"--", DISPOSITION, b" ", b"x"])).map(b"".join)
)
def test_any_input_is_parsed_or_refused(raw: bytes) -> None:
    try:
        assert all(isinstance(part, Part) for part in form_parts(raw, b"b"))
    except Refused as refused:
        assert "multipart" in str(refused)


def test_a_longer_line_that_starts_like_a_boundary_is_content() -> None:
    [part] = form_parts(body_of(b"x\r\n--bb\r\ny\r\n--b-\r\n"), b"b")
    assert part.content == b"x\r\n--bb\r\ny\r\n--b-\r\n" and part == ("a", True, "", part.content, "a.js")


def test_bytes_after_the_last_boundary_are_ignored() -> None:
    assert len(list(form_parts(body_of(b"x") + b"--b\r\nepilogue", b"b"))) == 1


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "does not begin"),
        (b"x--b\r\n", "does not begin"),
        (body_of(b"x", end=b""), "ends before"),
        (b"--b\r\n\r\n\r\nx\r\n--b--", "no Content-Disposition"),
        (b"--b\r\nX: " + b"x" * 5000 + b"\r\n\r\nx\r\n--b--", "no end within"),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", "with a name"),
        (b'--b\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nx\r\n--b--', "not UTF-8"),
    ],
)
def test_an_invalid_form_is_refused_with_a_reason(raw: bytes, says: str) -> None:
    with pytest.raises(Refused, match=says):
        list(form_parts(raw, b"b"))
