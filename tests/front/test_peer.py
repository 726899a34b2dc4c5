"""What a worker learns about its client: from the connection and from trusted proxies, never from the client itself."""

from __future__ import annotations

import pytest

from atoll.errors import StartError
from atoll.front.http1 import request_head
from atoll.front.peer import Peer, Proxies

TRUSTED = Proxies(("10.0.0.0/8", "fd00::/8", "127.0.0.1"))


def seen(peer: Peer, *lines: str) -> tuple[str, dict[str, list[str]]]:
    """The scheme and the headers that a worker receives for a request with these header lines."""
    head = "".join(f"{line}\r\n" for line in ("GET /p HTTP/1.1", "Host: h", *lines, ""))
    call_head = request_head(head.encode("latin-1"), 100, peer)[4].decode("latin-1")
    request, _, block = call_head.partition("\n")
    headers: dict[str, list[str]] = {}
    for line in block.split("\r\n")[:-1]:
        name, _, value = line.partition(": ")
        headers.setdefault(name.lower(), []).append(value)
    return request.split(" ")[1].partition(":")[0], headers


def test_a_worker_learns_the_address_of_its_client() -> None:
    scheme, headers = seen(Peer(Proxies(), "192.0.2.1"))
    assert scheme == "http"
    for name in ("cf-connecting-ip", "x-real-ip", "x-forwarded-for"):
        assert headers[name] == ["192.0.2.1"]
    assert headers["x-forwarded-proto"] == ["http"]


@pytest.mark.parametrize(
    "line",
    [
        "X-Forwarded-For: 6.6.6.6", "x-forwarded-for:6.6.6.6", "CF-Connecting-IP: 6.6.6.6", "X-Real-IP: 6.6.6.6",
        "X-Forwarded-Proto: https", "cf-connecting-ipv6: 6::6", "CF-Ray: 1", "X-Forwarded-Host: evil",
        "CF-Atoll-TLS: TLSv1.3 x", "CF-Worker: 6.example", "cf-ew-via: 6", "CF-IPCity: 6", "cf-cert-verified: 6",
    ],
)  # fmt: skip
def test_no_proxy_is_trusted_by_default(line: str) -> None:
    scheme, headers = seen(Peer(TRUSTED, "192.0.2.1"), "X-Kept: 1", line, "Cf-Kept: 2", line)
    assert scheme == "http"
    assert "6" not in str(headers) and "evil" not in str(headers)
    assert headers["cf-connecting-ip"] == ["192.0.2.1"]
    assert (headers["x-kept"], headers["cf-kept"]) == (["1"], ["2"])


@pytest.mark.parametrize("line", ["Forwarded: for=6.6.6.6", "True-Client-IP: 6.6.6.6", "X-Real-IP: 6.6.6.6"])
def test_a_single_false_claim_is_removed(line: str) -> None:
    _, headers = seen(Peer(TRUSTED, "192.0.2.1"), line)
    assert "6.6" not in str(headers)


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        ("192.0.2.9", "192.0.2.9"),
        ("6.6.6.6, 192.0.2.9", "192.0.2.9"),  # the last entry is the proxy's own; earlier ones are the client's claim
        ("192.0.2.9, 10.1.1.1, 10.2.2.2", "192.0.2.9"),
        ("2001:db8::5", "2001:db8::5"),
        ("192.0.2.9:4711, 10.1.1.1:80", "192.0.2.9"),
        ("[2001:db8::5]", "2001:db8::5"),
        ("[2001:db8::5]:4711", "2001:db8::5"),
        ("192.0.2.9:", "10.0.0.1"),
        ("unknown", "10.0.0.1"),
        ("6.6.6.6, junk, 10.1.1.1", "10.1.1.1"),
        ("10.1.1.1", "10.1.1.1"),
    ],
)
def test_a_trusted_proxy_names_the_client(chain: str, client: str) -> None:
    peer = Peer(TRUSTED, "10.0.0.1", is_proxy=True)
    for _ in range(2):  # the second time from memory
        scheme, headers = seen(
            peer, f"X-Forwarded-For: {chain}", "X-Forwarded-Proto: https", "X-Real-IP: 6.6.6.6", "CF-Ray: of-the-proxy"
        )
        assert scheme == "https"
        assert headers["cf-connecting-ip"] == headers["x-real-ip"] == [client]
        assert headers["x-forwarded-for"] == [chain]
        assert headers["x-forwarded-proto"] == ["https"]
        assert headers["cf-ray"] == ["of-the-proxy"]


def test_claims_about_workers_are_dropped_even_from_a_trusted_proxy() -> None:
    peer = Peer(TRUSTED, "10.0.0.1", is_proxy=True)
    claims = ("CF-Worker: shop.example", "X-Forwarded-For: 192.0.2.9", "CF-EW-Via: 9", "CF-Bot-Score: 99")
    _, headers = seen(peer, *claims, "CF-IPCountry: NL")
    assert not {"cf-worker", "cf-ew-via", "cf-bot-score"} & headers.keys()
    assert headers["cf-ipcountry"] == ["NL"]
    _, headers = seen(peer, *claims, "CF-Ray: of-cloudflare")
    assert not {"cf-worker", "cf-ew-via"} & headers.keys()
    assert headers["cf-bot-score"] == ["99"]


def test_a_trusted_proxy_without_forwarding_headers_is_the_client() -> None:
    scheme, headers = seen(Peer(TRUSTED, "10.0.0.1", is_proxy=True))
    assert (scheme, headers["cf-connecting-ip"]) == ("http", ["10.0.0.1"])


def test_two_lines_of_forwarded_for_are_one_chain() -> None:
    _, headers = seen(
        Peer(TRUSTED, "10.0.0.1", is_proxy=True), "X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 192.0.2.9"
    )
    assert headers["cf-connecting-ip"] == ["192.0.2.9"]


def test_only_named_addresses_are_proxies() -> None:
    assert TRUSTED.trusts("10.255.0.1") and TRUSTED.trusts("fd00::1") and TRUSTED.trusts("127.0.0.1")
    assert not TRUSTED.trusts("11.0.0.1") and not TRUSTED.trusts("") and not Proxies().trusts("127.0.0.1")
    with pytest.raises(StartError, match="trusted_proxies"):
        Proxies(("nginx",))


def test_the_scheme_is_https_over_tls() -> None:
    scheme, headers = seen(Peer(Proxies(), "192.0.2.1", b"cf-atoll-tls: TLSv1.3 TLS_AES_256_GCM_SHA384\r\n"))
    assert (scheme, headers["x-forwarded-proto"]) == ("https", ["https"])
