"""Credentials and personal ids are not in the logs."""

from __future__ import annotations

import pytest

from atoll.redact import MAX_URL, redacted_headers, redacted_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h/users/0123456789abcdef0123456789ABCDEF/x", "http://h/users/REDACTED/x"),
        ("http://h/?id=123e4567-e89b-12d3-a456-426614174000", "http://h/?id=REDACTED"),  # a UUID
        ("http://h/?t=aB3dE5fG7hI9jK1lM3nO5", "http://h/?t=REDACTED"),  # 21 characters of base64
        ("http://h/?t=aB3dE5fG7hI9jK1lM3nO", "http://h/?t=aB3dE5fG7hI9jK1lM3nO"),  # 20
        ("http://h/0123456789abcdef0123456789abcde", "http://h/0123456789abcdef0123456789abcde"),  # 31 digits
        ("http://h/a-rather-long-title-of-an-article", "http://h/a-rather-long-title-of-an-article"),
        ("http://h/a?b=c", "http://h/a?b=c"),
    ],
)
def test_ids_in_an_address_are_replaced(url: str, shown: str) -> None:
    assert redacted_url(url) == shown


def test_a_long_address_is_truncated() -> None:
    assert len(redacted_url("http://h/" + "a/" * 10_000)) == MAX_URL


@pytest.mark.parametrize(
    "name", ["Cookie", "SET-COOKIE", "Authorization", "x-api-key", "X-Secret-Sauce", "csrf-token", "cf-jwt-assertion"]
)
def test_headers_with_credentials_are_replaced(name: str) -> None:
    block = b"Accept: */*\r\n" + name.encode() + b": hunter2\r\n"
    assert redacted_headers(block) == {"accept": "*/*", name.lower(): "REDACTED"}


def test_headers_of_one_name_are_joined_and_invalid_ones_are_left_out() -> None:
    assert redacted_headers(b"Via: a\r\nnonsense\r\nvia:\tb \r\nx: \xe9\r\n") == {"via": "a, b", "x": "\xe9"}
