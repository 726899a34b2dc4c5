"""The addresses that Atoll shows are those that clients can use."""

from __future__ import annotations

import pytest

from atoll.config import Settings
from atoll.config_loading import settings_from
from atoll.public_address import is_secure, public_address


@pytest.mark.parametrize(
    ("settings", "port", "url"),
    [
        ({}, 8080, "http://my-shop.localhost:8080/"),
        ({}, 80, "http://my-shop.localhost/"),
        ({}, 0, "http://my-shop.localhost/"),
        ({"base_domain": "w.example"}, 9000, "http://my-shop.w.example:9000/"),
        ({"https_port": 443}, 80, "https://my-shop.localhost/"),
        ({"https_port": 8443}, 8080, "https://my-shop.localhost:8443/"),
        ({"https_port": 8443}, 0, "http://my-shop.localhost/"),  # inside a program: it does not listen
        ({"public_url": "https://apps.example"}, 8080, "https://my-shop.apps.example/"),
        ({"public_url": "https://apps.example:8443", "https_port": 444}, 80, "https://my-shop.apps.example:8443/"),
        ({"public_url": "http://apps.example"}, 8080, "http://my-shop.apps.example/"),
    ],
)
def test_the_url_of_a_worker_is_on_the_public_side(settings: dict[str, object], port: int, url: str) -> None:
    assert public_address(settings_from(settings), port).url("my_shop") == url


def test_a_request_to_the_https_port_is_known_by_its_host_header() -> None:
    secure = Settings(https_port=8443)
    assert is_secure(secure, "localhost:8443") and is_secure(secure, "[::1]:8443")
    assert (
        not is_secure(secure, "localhost:8080")
        and not is_secure(secure, "localhost")
        and not is_secure(secure, "[::1]")
    )
    assert not is_secure(Settings(), "localhost:0")
