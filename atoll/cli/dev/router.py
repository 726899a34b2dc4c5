"""Routes requests in `atoll dev`: those of clients, and those that workers send with fetch().

A client may use any host name: every request to the dev port is for the project. For fetch() of a worker this does not
hold: `https://api.github.com/` must reach GitHub. The session answers only the hosts that it serves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from atoll.egress.addresses import is_own
from atoll.paths import PathRule
from atoll.router import LOCAL_HOSTS, Outcome, Router, host_keys, host_name, resolved
from atoll.workers import Version, host_label

LOCAL = frozenset(name.encode() for name in LOCAL_HOSTS)
TOOLS = b"/cdn-cgi/"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERY_ADDRESS = ("0.0.0.0", "::")


class DevRouter(Router):
    """Routes requests of clients: NAME.localhost to the worker of that name, routes to their workers, and every other
    host to the first worker."""

    workers: tuple[str, ...] = ()  # workers of the session; the first answers on the port
    broken: frozenset[str] = frozenset()  # workers that do not build

    def find(self, host: bytes, target: bytes, head: bytes = b"") -> Version | None:
        if target.startswith(TOOLS):
            return None
        version = super().find(host, target, head)
        return None if version is not None and version.worker_name in self.broken else version

    def has_lost_host(self, worker_name: str) -> bool:
        return False  # the project answers on the port anyway

    def named(self, host: bytes) -> str:
        """The worker whose own host this is, NAME.localhost; "" for every other host."""
        label = (host_name(host) or b"").decode("ascii").removesuffix("." + self.base)
        return next((worker for worker in self.workers if host_label(worker) == label), "")

    def remember(self, host: bytes) -> Outcome:
        name = host_name(host)
        if name is None or name not in LOCAL:
            return super().remember(host)
        outcome = self.remembered[host] = self.outcome(name.decode("ascii"))
        return outcome

    def outcome(self, host: str) -> Outcome:
        version, rules = super().outcome(host)
        first = self.entries.get(self.workers[0])
        if version is None and first is not None and not self.named(host.encode()):  # it may not be built yet
            version = first.version
        return version, rules


class FrontRouter(Router):
    """Like `worker_at`, as the front calls it. The tools also answer for NAME.localhost hosts without a worker."""

    def __init__(self, router: DevRouter) -> None:
        super().__init__(router.base)
        self._router = router

    def find(self, host: bytes, target: bytes, head: bytes = b"") -> Version | None:
        return self._router.find(host, target, head)

    def is_control(self, host: bytes) -> bool:
        return self._router.is_control(host) or self._router.named(host) != ""


class OwnHosts:
    """Hosts that the session answers for fetch() of a worker, instead of the network (the Routes of its bindings):

    - the session's own address, on its port: localhost, NAME.localhost, the address of `--host`;
    - hosts that a route or custom domain of one of its workers names, as on a node. `told` is called once for each.

    A route for every host, or for every host of a top-level domain, does not count.
    """

    def __init__(self, router: DevRouter, host: str, port: int, told: Callable[[str, str], None]) -> None:
        self._router = router
        self._host = host.lower().removesuffix(".")
        self._port = str(port).encode()
        self._told = told
        self._known: set[tuple[str, str]] = set()

    def find(self, host: bytes, target: bytes, head: bytes = b"") -> Version | None:
        raw = host_name(host)
        if raw is None:
            return None
        name = raw.decode("ascii")
        if self._is_address(name):
            has_port = host.endswith(b":" + self._port) or (self._port == b"80" and host == raw)
            return self._router.find(host, target, head) if has_port else None
        return self._routed(name, resolved(target))

    def _is_address(self, name: str) -> bool:
        """Whether a host is an address the session listens on, if the port is its own."""
        is_local_name = name == "localhost" or name.endswith(".localhost")
        if name.strip("[]") == self._host:
            return True
        if self._host not in (*LOOPBACK, *EVERY_ADDRESS):
            return False
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return is_local_name
        return is_own(address) if self._host in EVERY_ADDRESS else address.is_loopback

    def _routed(self, name: str, target: bytes) -> Version | None:
        for rule in self._rules(name):
            if rule.matches(target):
                if rule.version is not None and (name, rule.version.worker_name) not in self._known:
                    self._known.add((name, rule.version.worker_name))
                    self._told(name, rule.version.worker_name)
                return rule.version
        return None

    def _rules(self, name: str) -> list[PathRule]:
        """Routes before custom domains, more specific hosts first, in the order of the router."""
        keys = [key for key in host_keys(name) if not key[0] or "." in key[1]]
        rules = [rule for key in keys for rule in self._router.rules_of(*key)]
        custom = self._router.by_host.get(("", name), {})
        return rules + [rule for pattern, rule in custom.items() if pattern.path is None]
