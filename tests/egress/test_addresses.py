"""Which addresses are public, and what rules match: pure functions, without a network."""

from __future__ import annotations

import ipaddress

import pytest

from atoll.egress.addresses import is_own, refusal
from atoll.egress.rules import Policy, parse_rule, parse_rules

INTERNAL = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "100::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.0.1", "172.32.0.1", "169.253.0.1", "100.63.0.1", "100.128.0.1",
    "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
]  # fmt: skip


@pytest.mark.parametrize("text", INTERNAL)
def test_internal_addresses_are_refused_with_their_kind(text: str) -> None:
    assert refusal(ipaddress.ip_address(text)).startswith(("a", "the"))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_not_refused(text: str) -> None:
    assert refusal(ipaddress.ip_address(text)) == ""


def test_the_machine_knows_its_own_addresses() -> None:
    for own in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0"):
        assert is_own(ipaddress.ip_address(own)), own
    assert not is_own(ipaddress.ip_address("8.8.8.8"))


@pytest.mark.parametrize(
    ("rule", "host", "port", "named"),
    [
        ("example.com", "example.com", 443, True),
        ("Example.COM.", "example.com", 443, True),
        ("example.com", "example.com.", 443, True),
        ("*.example.com", "a.example.com.", 443, True),
        ("example.com", "a.example.com", 443, False),
        ("example.com", "notexample.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("*:25", "anything", 25, True),
        ("*", "anything", 1, True),
    ],
)
def test_rules_match_hosts(rule: str, host: str, port: int, named: bool) -> None:
    assert parse_rule(rule).names_host(host, port) is named


@pytest.mark.parametrize(
    ("rule", "address", "port", "named"),
    [
        ("10.0.0.0/8", "10.255.0.1", 1, True),
        ("10.0.0.0/8", "11.0.0.1", 1, False),
        ("10.0.0.1:80", "10.0.0.1", 80, True),
        ("10.0.0.1:80", "10.0.0.1", 81, False),
        ("10.0.0.0/8", "::ffff:10.1.1.1", 1, True),
        ("10.0.0.0/8", "64:ff9b::a01:101", 1, True),
        ("fd00::/8", "fd12::1", 1, True),
        ("[fd00::1]:443", "fd00::1", 443, True),
        ("[fd00::]/8", "fd00::1", 443, True),
        ("::1", "::1", 80, True),
        ("example.com", "10.0.0.1", 80, False),
    ],
)
def test_rules_match_addresses(rule: str, address: str, port: int, named: bool) -> None:
    assert parse_rule(rule).names_address(ipaddress.ip_address(address), port) is named


@pytest.mark.parametrize(
    "text", ["", " ", "a b", "http://a", "a/b", "10.0.0.0/33", "1.2.3.4.5", "127.1", "a..b", "-a", "*.*", "a*", "a:0", "a:70000", "[::1", "[a]:1", "*a.com"]
)  # fmt: skip
def test_an_invalid_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|port"):
        parse_rule(text)


def test_an_allow_list_refuses_everything_else() -> None:
    policy = Policy("the worker", allow=parse_rules(("api.example", "192.0.2.0/24")), deny=parse_rules(("*:22",)))
    address = ipaddress.ip_address("192.0.2.7")
    other = ipaddress.ip_address("198.51.100.7")
    assert "'*:22' of the deny list of the worker" in policy.refuse_host("api.example", 22)
    assert policy.refuse_host("other.example", 443) == ""  # its address may be in the range
    assert policy.refuse_address("other.example", address, 443) == ""
    assert policy.refuse_address("api.example", other, 443) == ""
    assert "allow list of the worker" in policy.refuse_address("other.example", other, 443)
    assert "allow list" in Policy("x", allow=parse_rules(("api.example",))).refuse_host("other.example", 443)
