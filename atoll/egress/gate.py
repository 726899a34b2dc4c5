"""The gate for every outgoing connection: resolve the name, check the addresses, connect to a checked address.

A name is resolved once per connection, and the socket connects to an address that was checked. So it does not matter
how an address was written, or whether the name resolves to another address a moment later.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from atoll.config import Settings
from atoll.egress.addresses import Address, is_own, refusal
from atoll.egress.race import race
from atoll.egress.rules import EgressRule, Policy, names, parse_rules
from atoll.egress.tls_ends import allow_half_close
from atoll.errors import AddressRefused, HostRefused, NetworkError, StartError
from atoll.workers import EgressRules, Version

P = TypeVar("P", bound=asyncio.BaseProtocol)

LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
RESOLVERS = 32  # threads that call the system's resolver, each for one name at a time
RESOLVES_PER_TENANT = 8  # threads that one tenant may use: names may be slow on purpose
MAX_ADDRESSES = 8  # addresses of one name that are tried


class EgressGate:
    advice = " (an operator may allow it with `egress_allow`)"  # ends the message about an internal address

    def __init__(self, settings: Settings) -> None:
        self._internal = _rules("egress_allow", settings.egress_allow)
        self._node = Policy("this node", deny=_rules("egress_deny", settings.egress_deny))
        self._ports = own_ports(settings)
        self.connect_seconds = settings.connect_timeout
        self._threads = ThreadPoolExecutor(RESOLVERS, "resolve")
        # Loading the system's root certificates takes 40 ms, so a thread does it. An invalid `ca_file` fails the start.
        self._trust = self._threads.submit(_trust, settings.ca_file)
        if settings.ca_file:
            self._trust.result()
        self._tenants: dict[str, EgressRules] = {}  # tenants that have rules
        self._resolving: dict[str, asyncio.Semaphore] = {}
        self.edition = 0  # of the rules; decisions made under another edition are invalid

    @property
    def tls(self) -> ssl.SSLContext:
        """The TLS context with the trusted root certificates."""
        return self._trust.result()

    def close_port(self, port: int) -> None:
        """Let no worker reach a port of this machine, whatever `egress_allow` says: what listens there trusts it."""
        self._ports |= {port}

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    # --- rules ---

    def set_tenant(self, tenant: str, rules: EgressRules) -> None:
        """Set the rules of a tenant."""
        self.edition += 1
        if rules.allow or rules.deny:
            self._tenants[tenant] = rules
        else:
            self._tenants.pop(tenant, None)

    def rules_of(self, version: Version) -> tuple[EgressRules | None, EgressRules]:
        """The rules of a version's tenant and its own. Versions share connections only if these are equal."""
        return self._tenants.get(version.tenant), version.egress

    def check_host(self, version: Version, host: str, port: int, *, has_address: bool = True) -> None:
        """Raises HostRefused if a rule refuses this host or port. It is cheap, and runs for every request.
        A host that this node serves has no address to check later (`has_address`)."""
        for policy in self._policies(version):
            if reason := policy.refuse_host(host, port, has_address):
                raise HostRefused(f"error 1021: {host}:{port} may not be reached: {reason}")

    def check_address(
        self, version: Version, host: str, address: Address, port: int, *, is_named: bool = False
    ) -> None:
        """Raises AddressRefused if this address may not be reached. One that the operator named may be internal."""
        for policy in self._policies(version):
            if reason := policy.refuse_address(host, address, port):
                raise AddressRefused(f"error 1024: {_shown(host, address)} may not be reached: {reason}")
        if port in self._ports and is_own(address):  # the control API trusts connections from this machine
            raise AddressRefused(f"error 1024: {_shown(host, address)} may not be reached on the port of this node")
        if is_named or names(self._internal, host, address, port):
            return
        kind = refusal(address) or ("an address of this machine" if is_own(address) else "")
        if kind:
            raise AddressRefused(f"error 1024: {_shown(host, address)} may not be reached: it is {kind}" + self.advice)

    def opens_port(self, host: str, port: int) -> bool:
        """Whether `egress_allow` names this host with this very port."""
        rules = [rule for rule in self._internal if rule.port == port]
        try:
            return names(rules, host, ipaddress.ip_address(host.strip("[]")), port)
        except ValueError:
            return any(rule.names_host(host, port) for rule in rules)

    async def lookup(self, version: Version, host: str) -> list[Address]:
        """The addresses of a host, without those that a worker may not know. Raises NetworkError."""
        found = await self._resolve(version.tenant, host)
        return [address for address in found[:MAX_ADDRESSES] if self.may_see(host, str(address))]

    def may_ask_for(self, version: Version, host: str) -> bool:
        """Whether no rule closes a host on all ports."""
        return not any(policy.hides(host) for policy in self._policies(version))

    def may_see(self, host: str, text: str) -> bool:
        """Whether an address is public, or `egress_allow` names it or its host on some port."""
        address = ipaddress.ip_address(text)
        rules = self._internal
        return any(names((rule,), host, address, rule.port or 0) for rule in rules) or not refusal(address)

    def _policies(self, version: Version) -> tuple[Policy, ...]:
        tenant, worker = self.rules_of(version)
        policies: tuple[Policy, ...] = (self._node,)
        if tenant is not None:
            policies += (Policy("the tenant", parse_rules(tenant.allow), parse_rules(tenant.deny)),)
        if worker.allow or worker.deny:
            policies += (Policy("the worker", parse_rules(worker.allow), parse_rules(worker.deny)),)
        return policies

    # --- connecting ---

    async def connect(
        self,
        version: Version,
        host: str,
        port: int,
        *,
        tls: bool,
        protocol: Callable[[], P],
        context: ssl.SSLContext | None = None,
        server_name: str = "",
        is_named: bool = False,
    ) -> tuple[asyncio.Transport, P]:
        """Connect to a host for a worker. Raises HostRefused, AddressRefused or NetworkError.

        The server's certificate must be for `server_name`, by default the host, and satisfy `context`, by default that
        of the node.
        """
        self.check_host(version, host, port)
        async with self._in_words(f"{host}:{port}"):
            connected = await self._socket(version, host, port, is_named=is_named)
            try:
                return await asyncio.get_running_loop().create_connection(
                    protocol,
                    sock=connected,
                    ssl=(context or self.tls) if tls else None,
                    server_hostname=_certified(server_name or host) if tls else None,
                )
            except BaseException:
                connected.close()
                raise

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol, host: str, context: ssl.SSLContext | None
    ) -> asyncio.Transport:
        """Begin TLS on a connection. The server's certificate must be for `host`. Raises NetworkError."""
        async with self._in_words(host):
            loop = asyncio.get_running_loop()
            secured = await loop.start_tls(transport, protocol, context or self.tls, server_hostname=_certified(host))
            if secured is None:
                raise ConnectionResetError
            return secured

    @asynccontextmanager
    async def _in_words(self, where: str) -> AsyncIterator[None]:
        """Limits the time to connect, and turns what may go wrong into a NetworkError."""
        try:
            async with asyncio.timeout(self.connect_seconds):
                yield
        except TimeoutError:
            raise NetworkError(f"no connection to {where} within {self.connect_seconds:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise NetworkError(f"the certificate of {where} is not trusted: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise NetworkError(f"no TLS with {where}: {tls_in_words(error)}") from None
        except OSError as error:
            raise NetworkError(f"no connection to {where}: {in_words(error)}") from None

    async def _socket(self, version: Version, host: str, port: int, *, is_named: bool) -> socket.socket:
        """A socket connected to the first allowed address that answers."""
        refused: AddressRefused | None = None
        allowed: list[Address] = []
        for address in (await self._resolve(version.tenant, host))[:MAX_ADDRESSES]:
            try:
                self.check_address(version, host, address, port, is_named=is_named)
            except AddressRefused as error:
                refused = error
            else:
                allowed.append(address)
        try:
            if allowed:
                return await race([partial(open_socket, address, port) for address in allowed])
        except OSError as error:
            raise refused or NetworkError(f"{in_words(error)} by {host}:{port}") from None
        raise refused or NetworkError(f"{host} has no address")

    async def _resolve(self, tenant: str, host: str) -> list[Address]:
        try:
            return [ipaddress.ip_address(host.strip("[]"))]
        except ValueError:
            pass
        if host.rstrip(".").endswith(".localhost"):  # https://www.rfc-editor.org/rfc/rfc6761#section-6.3
            return list(LOOPBACK)
        turn = self._resolving.setdefault(tenant, asyncio.Semaphore(RESOLVES_PER_TENANT))
        try:
            async with turn:
                found = await asyncio.get_running_loop().run_in_executor(
                    self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                )
        except OSError as error:
            raise NetworkError(
                f"the name {host} cannot be resolved: {(error.strerror or str(error)).lower()}"
            ) from None
        except UnicodeError:
            raise NetworkError(f"{host} is not a valid host name") from None
        unique = dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found)
        return [ipaddress.ip_address(address) for address in unique]


async def open_socket(address: Address, port: int) -> socket.socket:
    """A socket connected to an address."""
    found = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        found.setblocking(False)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(found, (str(address), port))
    except BaseException:
        found.close()
        raise
    return found


class OpenGate(EgressGate):
    """Lets every connection through: the operator named the server."""

    def check_host(self, version: Version, host: str, port: int, *, has_address: bool = True) -> None:
        pass

    def check_address(
        self, version: Version, host: str, address: Address, port: int, *, is_named: bool = False
    ) -> None:
        pass


def _certified(host: str) -> str:
    """A host as certificates name it."""
    return host.strip("[]").removesuffix(".")


def own_ports(settings: Settings) -> frozenset[int]:
    """The ports on which this node listens."""
    return frozenset({settings.port, settings.https_port} - {0})


def in_words(error: OSError) -> str:
    """A system error as part of a sentence: `connection refused`."""
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "connection reset"
    return os.strerror(error.errno).lower() if error.errno else str(error).lower()


NO_TLS = (
    "WRONG_VERSION_NUMBER",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNEXPECTED_MESSAGE",
)
OLD_TLS = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "VERSION_TOO_LOW")


def tls_in_words(error: ssl.SSLError) -> str:
    """Why TLS failed, as part of a sentence."""
    reason = error.reason or str(error)
    if reason in NO_TLS:
        return "its answer is not TLS"
    if reason in OLD_TLS:
        return "it does not support TLS 1.2 or newer"
    return reason.replace("_", " ").lower()


def _shown(host: str, address: Address) -> str:
    return host if host.strip("[]") == str(address) else f"{host} ({address})"


def _rules(setting: str, texts: tuple[str, ...]) -> tuple[EgressRule, ...]:
    try:
        return parse_rules(texts)
    except ValueError as error:
        hint = f"see `{setting}` in the settings reference"
        raise StartError(f"{setting} cannot be used: {error}", hint, setting) from None


def _trust(ca_file: str) -> ssl.SSLContext:
    """A context with the system's root certificates, and those of `ca_file`."""
    context = allow_half_close(ssl.create_default_context())
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise StartError(
                f"ca_file {ca_file} cannot be used: {error}", "name a PEM file with certificates", "ca_file"
            ) from None
    return context
