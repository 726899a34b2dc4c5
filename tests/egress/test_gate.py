"""The gate refuses internal addresses in every notation, and connects to the address that it checked."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from atoll.config import Settings
from atoll.egress.gate import EgressGate
from atoll.errors import AddressRefused, AtollError, HostRefused, NetworkError, StartError
from atoll.workers import EgressRules, Version


def version(tenant: str = "a", **rules: tuple[str, ...]) -> Version:
    return Version("v", "w", "worker", tenant, (), "", egress=EgressRules(**rules))


@pytest_asyncio.fixture
async def server() -> AsyncIterator[int]:
    """A port on 127.0.0.1 that accepts connections."""
    listening = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()


async def connect(gate: EgressGate, host: str, port: int, who: Version | None = None) -> None:
    try:
        transport, _ = await gate.connect(who or version(), host, port, tls=False, protocol=asyncio.Protocol)
        transport.abort()
    finally:
        gate.close()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "a.localhost", "a.b.localhost.", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "0.0.0.0", "[::1]",
        "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254",
        "[fd00:ec2::254]", "10.0.0.1", "192.168.1.1", "[fe80::1]", "[ff02::1]", "224.0.0.1", "255.255.255.255", "100.64.0.1",
    ],
)  # fmt: skip
async def test_every_notation_of_an_internal_address_is_refused(server: int, host: str) -> None:
    with pytest.raises(AddressRefused, match="error 1024"):
        await connect(EgressGate(Settings()), host, server)


async def test_the_node_s_own_addresses_are_refused_even_public_ones(
    monkeypatch: pytest.MonkeyPatch, server: int
) -> None:
    own = ipaddress.ip_address("127.0.0.1")
    monkeypatch.setattr("atoll.egress.gate.refusal", lambda address: "")  # as if it were a public address
    with pytest.raises(AddressRefused, match="an address of this machine"):
        await connect(EgressGate(Settings()), str(own), server)


async def test_dns_rebinding_does_not_bypass_the_check(monkeypatch: pytest.MonkeyPatch, server: int) -> None:
    """DNS rebinding: the node connects to the address that it checked, whatever the name resolves to later."""
    answers = iter(["127.0.0.1", "8.8.8.8", "127.0.0.1"])
    asked: list[str] = []

    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(next(answers))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (asked[-1], 0))]

    monkeypatch.setattr("atoll.egress.gate.socket.getaddrinfo", resolve)
    connected: list[Any] = []

    async def sock_connect(self: Any, sock: Any, address: Any) -> None:
        connected.append(address)
        raise OSError(111, "refused")

    monkeypatch.setattr(type(asyncio.get_running_loop()), "sock_connect", sock_connect, raising=False)
    with pytest.raises(AddressRefused):
        await connect(EgressGate(Settings()), "rebind.example", server)
    with pytest.raises(NetworkError):
        await connect(EgressGate(Settings()), "rebind.example", server)
    assert connected == [("8.8.8.8", server)]
    assert asked == ["127.0.0.1", "8.8.8.8"]  # once per connection


async def test_a_name_with_a_public_and_a_private_address_connects_only_to_the_public_one(
    monkeypatch: pytest.MonkeyPatch, server: int
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("10.0.0.1", "127.0.0.1")]
    monkeypatch.setattr("atoll.egress.gate.socket.getaddrinfo", lambda *_, **__: found)
    await connect(EgressGate(Settings(egress_allow=("127.0.0.1",))), "two.example", server)
    with pytest.raises(AddressRefused, match=r"two.example \("):
        await connect(EgressGate(Settings()), "two.example", server)


@pytest.mark.parametrize("rule", ["127.0.0.1", "127.0.0.0/8", "localhost", "*:PORT", "127.0.0.1:PORT"])
async def test_the_operator_can_allow_internal_addresses(server: int, rule: str) -> None:
    await connect(EgressGate(Settings(egress_allow=(rule.replace("PORT", str(server)),))), "localhost", server)


async def test_names_under_localhost_are_this_machine_without_a_resolver(server: int) -> None:
    await connect(EgressGate(Settings(egress_allow=("127.0.0.1",))), "any.name.localhost", server)


async def test_other_internal_addresses_stay_closed(server: int) -> None:
    gate = EgressGate(Settings(egress_allow=("127.0.0.1:1", "other.internal", "10.0.0.0/8")))
    with pytest.raises(AddressRefused):
        await connect(gate, "127.0.0.1", server)


@pytest.mark.parametrize(
    ("rules", "error", "text"),
    [
        ({"deny": ("127.0.0.0/8",)}, AddressRefused, "'127.0.0.0/8' of the deny list of the worker"),
        ({"deny": ("local*",)}, None, ""),
        ({"deny": ("localhost",)}, HostRefused, "'localhost' of the deny list of the worker"),
        ({"allow": ("example.com",)}, HostRefused, "not in the allow list of the worker"),
        ({"allow": ("10.0.0.0/8",)}, AddressRefused, "not in the allow list of the worker"),
        ({"allow": ("127.0.0.1",)}, None, ""),
        ({"allow": ("localhost",)}, None, ""),
    ],
)
async def test_the_lists_of_a_worker_only_narrow_its_access(
    server: int, rules: dict[str, tuple[str, ...]], error: type[AtollError] | None, text: str
) -> None:
    if any("local*" in rule for rule in rules.get("deny", ())):
        rules = {"deny": ("*.localhost",)}
    gate = EgressGate(Settings(egress_allow=("127.0.0.1",)))
    if error is None:
        await connect(gate, "localhost", server, version(**rules))
        return
    with pytest.raises(error, match=text.replace("*", r"\*")):
        await connect(gate, "localhost", server, version(**rules))


async def test_the_deny_list_of_the_node_applies_to_every_worker(server: int) -> None:
    with pytest.raises(HostRefused, match=r"error 1021.*of this node"):
        await connect(
            EgressGate(Settings(egress_allow=("127.0.0.1",), egress_deny=(f"*:{server}",))), "127.0.0.1", server
        )


async def test_an_error_names_what_failed() -> None:
    gate = EgressGate(Settings(egress_allow=("127.0.0.1",)))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(NetworkError, match=f"connection refused by 127.0.0.1:{port}"):
            await connect(gate, "127.0.0.1", port)


async def test_an_error_names_an_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("atoll.egress.gate.socket.getaddrinfo", fail)
    with pytest.raises(NetworkError, match=r"the name nowhere.invalid cannot be resolved: name or service not known"):
        await connect(EgressGate(Settings()), "nowhere.invalid", 80)


@pytest.mark.parametrize(
    ("field", "value"),
    [("egress_allow", ("http://x",)), ("egress_deny", ("10.0.0.0/99",)), ("ca_file", "/nowhere.pem")],
)
def test_invalid_settings_stop_the_start(field: str, value: Any) -> None:
    with pytest.raises(StartError, match=field):
        EgressGate(Settings(**{field: value}))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "0.0.0.0", "[::ffff:127.0.0.1]"])
@pytest.mark.parametrize("setting", ["port", "https_port"])
async def test_the_ports_of_the_node_itself_stay_closed(server: int, host: str, setting: str) -> None:
    opened = ("127.0.0.0/8", "0.0.0.0")
    settings = Settings(**{"egress_allow": opened, "port": 1, setting: server})
    with pytest.raises(AddressRefused, match="the port of this node"):
        await connect(EgressGate(settings), host, server)


async def test_a_trailing_dot_does_not_bypass_a_rule() -> None:
    with pytest.raises(HostRefused, match=r"error 1021: evil\.example\.:80 .*the rule 'evil\.example'"):
        await connect(EgressGate(Settings(egress_deny=("evil.example",))), "evil.example.", 80)
