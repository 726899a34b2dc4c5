"""What fetch() of a worker reaches in `atoll dev`: the session answers only for its own hosts.

The upstreams are real servers on ports 80 and 443 of loopback addresses; only the resolver is replaced.
"""

from __future__ import annotations

import os
import random
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from atoll.config import Settings
from tests.certificates import make_authority, make_certificate, require_openssl
from tests.cli.conftest import StartIn
from tests.cli.dev_session import Dev
from tests.cli.test_projects import run
from tests.upstream import Upstream

CONFIG = 'name = "app"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n'
# Fetches the URL in the query and reports who answered: an upstream echoes the body, the worker says "worker".
WORKER = """
export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (request.method === "POST") return new Response("worker");
    if (request.headers.get("upgrade")) return new Response("worker");
    const target = url.searchParams.get("to");
    try {
      const answer = await fetch(target, { method: "POST", body: "upstream" });
      return new Response(await answer.text());
    } catch (error) {
      return new Response(error.message, { status: 502 });
    }
  },
};
"""
needs_low_ports = pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen on ports 80 and 443")


class Public(NamedTuple):
    """Two servers that look like public ones to a worker: by name, on the usual ports."""

    one: Upstream  # http://one.example/
    two: Upstream  # https://two.example/
    program: tuple[str, ...]  # `atoll` whose resolver knows these names


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Public]:
    require_openssl()
    authority = make_authority(tmp_path)
    make_certificate(tmp_path / "certificates", "two", "two.example", authority=authority)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "certificates/two.pem", tmp_path / "certificates/two.key")
    prefix = f"127.{random.randint(16, 250)}.{random.randint(1, 250)}"
    one, two = Upstream(address=(f"{prefix}.1", 80)), Upstream(tls, (f"{prefix}.2", 443))
    names = {"one.example": f"{prefix}.1", "shop.example": f"{prefix}.1", "two.example": f"{prefix}.2"}
    code = f"""
import os, socket
os.environ["SSL_CERT_FILE"] = {str(authority)!r}
real, names = socket.getaddrinfo, {names!r}
socket.getaddrinfo = lambda host, *rest, **more: real(names.get((host or '').rstrip('.'), host), *rest, **more)
from atoll.cli.main import main
main(prog_name="atoll")
"""
    yield Public(one, two, (sys.executable, "-c", code))
    one.close()
    two.close()


def fetched(dev: Dev, url: str) -> tuple[int, str]:
    return dev.get("?to=" + quote(url, safe=""))


@needs_low_ports
@pytest.mark.parametrize(
    "words", [(), ("--host", "127.0.0.1"), ("--host", "0.0.0.0")], ids=["plain", "one address", "every address"]
)
def test_fetch_of_a_public_host_reaches_that_host_and_not_the_worker(
    start_in: StartIn, tmp_path: Path, public: Public, words: tuple[str, ...]
) -> None:
    dev = start_in(tmp_path / "app", *words, program=public.program, **{"atoll.toml": CONFIG, "index.js": WORKER})
    for url in ("http://one.example/echo", "https://two.example/echo", "http://ONE.example./echo"):
        for _ in range(3):  # the second and third take the quick path
            assert fetched(dev, url) == (200, "upstream"), url
    assert len(public.one.seen) == 6 and len(public.two.seen) == 3
    assert fetched(dev, f"http://localhost:{dev.port}/") == (200, "worker")


@needs_low_ports
def test_a_redirect_reaches_its_target(start_in: StartIn, tmp_path: Path, public: Public) -> None:
    dev = start_in(tmp_path / "app", program=public.program, **{"atoll.toml": CONFIG, "index.js": WORKER})
    to_two = "http://one.example/redirect/307?https://two.example/echo"
    assert fetched(dev, to_two) == (200, "upstream")
    assert [len(public.one.seen), len(public.two.seen)] == [1, 1]
    home = f"http://one.example/redirect/307?http://localhost:{dev.port}/"
    assert fetched(dev, home) == (200, "worker")


@needs_low_ports
def test_only_hosts_named_by_routes_are_served_locally_and_dev_lists_them(
    start_in: StartIn, tmp_path: Path, public: Public
) -> None:
    routes = 'routes = ["shop.example/api/*", "*.zone.example/*", "*/*", "*.example/*"]\n'
    dev = start_in(tmp_path / "app", program=public.program, **{"atoll.toml": CONFIG + routes, "index.js": WORKER})
    assert fetched(dev, "http://one.example/echo") == (200, "upstream")
    assert fetched(dev, "https://two.example/echo") == (200, "upstream")
    assert fetched(dev, "http://shop.example/echo") == (200, "upstream")  # the route has another path
    assert fetched(dev, "http://shop.example/x/../api/../echo") == (200, "upstream")
    assert not [event for event in dev.seen if event["event"] == "own_host"]
    assert fetched(dev, "https://shop.example/api/orders") == (200, "worker")
    assert fetched(dev, "http://shop.example/x/../api/orders") == (200, "worker")
    assert fetched(dev, "http://a.zone.example/") == (200, "worker")
    assert [dev.wait_for("own_host")["host"] for _ in range(2)] == ["shop.example", "a.zone.example"]
    assert dev.get(host="any.example") == dev.get()  # clients may use any name


@needs_low_ports
def test_a_custom_domain_is_served_locally(start_in: StartIn, tmp_path: Path, public: Public) -> None:
    routes = 'routes = [{ pattern = "shop.example", custom_domain = true }]\n'
    dev = start_in(tmp_path / "app", program=public.program, **{"wrangler.toml": CONFIG + routes, "index.js": WORKER})
    assert fetched(dev, "https://shop.example/any") == (200, "worker")
    assert fetched(dev, "http://one.example/echo") == (200, "upstream")


def test_other_servers_on_this_machine_are_reachable_unless_a_flag_forbids_it(
    start_in: StartIn, tmp_path: Path
) -> None:
    backend = Upstream()
    try:
        files = {"atoll.toml": CONFIG, "index.js": WORKER}
        dev = start_in(tmp_path / "app", **files)
        assert dev.seen[-1]["private_network"] is True
        for host in ("127.0.0.1", "localhost", "backend.localhost", "0.0.0.0"):
            assert fetched(dev, f"http://{host}:{backend.port}/echo") == (200, "upstream"), host
        assert len(backend.seen) == 4
        status, said = fetched(
            dev, "http://169.254.169.254/latest/meta-data"
        )  # metadata service of clouds, with credentials
        assert status == 502 and "link-local" in said
        status, said = fetched(dev, f"http://control.localhost:{dev.port}/api/workers")
        assert status == 502 and "on the port of this node" in said
        dev.stop()
        dev = start_in(tmp_path / "app", "--no-private-network", **files)
        assert dev.seen[-1]["private_network"] is False
        status, said = fetched(dev, f"http://127.0.0.1:{backend.port}/echo")
        assert status == 502 and "loopback address" in said and "--private-network" in said
        assert len(backend.seen) == 4
    finally:
        backend.close()


@needs_low_ports
def test_localhost_without_a_port_is_port_80_and_not_the_worker(start_in: StartIn, tmp_path: Path) -> None:
    server = Upstream(address=("127.0.0.1", 80))
    try:
        dev = start_in(tmp_path / "app", **{"atoll.toml": CONFIG, "index.js": WORKER})
        for host in ("localhost", "127.0.0.1", "app.localhost"):
            assert fetched(dev, f"http://{host}/echo") == (200, "upstream"), host
            assert fetched(dev, f"http://{host}:{dev.port}/echo") == (200, "worker"), host
    finally:
        server.close()


@needs_low_ports
def test_websockets_and_node_http_reach_public_hosts_too(start_in: StartIn, tmp_path: Path, public: Public) -> None:
    worker = """
    import http from "node:http";
    export default {
      async fetch(request) {
        if (new URL(request.url).pathname === "/node") {
          const status = await new Promise((done, failed) =>
            http.get("http://one.example/status/418", (answer) => done(answer.statusCode)).on("error", failed));
          return new Response(String(status));
        }
        const answer = await fetch("http://one.example/status/426", { headers: { Upgrade: "websocket" } });
        return new Response(String(answer.status));
      },
    };
    """
    config = CONFIG + 'compatibility_flags = ["nodejs_compat"]\n'
    dev = start_in(tmp_path / "app", program=public.program, **{"atoll.toml": config, "index.js": worker})
    assert dev.get() == (200, "426")
    assert dev.get("node") == (200, "418")
    assert [seen.line.split()[1] for seen in public.one.seen] == ["/status/426", "/status/418"]


def test_serve_does_not_allow_private_networks(tmp_path: Path) -> None:
    assert Settings().egress_allow == ()
    said = run(tmp_path, "serve", "--private-network", code=2).stderr
    assert "No such option" in said
