"""node:dns over the resolver of the node and a DNS server on 127.0.0.1."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from tests.running import Atoll

Run = Callable[..., Any]

ZONE = {
    ("example.com.", "A"): ["93.184.216.34", "10.0.0.7"],
    ("example.com.", "AAAA"): ["2606:2800:220:1:248:1893:25c8:1946", "fd00::1"],
    ("example.com.", "MX"): ["10 mail.example.com.", "20 spare.example.com."],
    ("example.com.", "TXT"): ['"v=spf1 -all"', '"one" "two"'],
    ("example.com.", "NS"): ["ns.example.com."],
    ("example.com.", "SOA"): ["ns.example.com. admin.example.com. 7 3600 600 86400 60"],
    ("example.com.", "CAA"): ['0 issue "pki.example"'],
    ("www.example.com.", "CNAME"): ["example.com."],
    ("_sip._tcp.example.com.", "SRV"): ["1 2 5060 sip.example.com."],
    ("example.com.", "NAPTR"): ['100 50 "s" "SIP+D2U" "" _sip._udp.example.com.'],
    ("34.216.184.93.in-addr.arpa.", "PTR"): ["example.com."],
    ("inside.example.com.", "A"): ["192.168.1.1"],
}


class DnsServer:
    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.asked: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                data, client = self._socket.recvfrom(4096)
            except OSError:
                return
            query = dns.message.from_wire(data)
            name, kind = query.question[0].name.to_text(), dns.rdatatype.to_text(query.question[0].rdtype)
            self.asked.append(f"{name} {kind}")
            reply = dns.message.make_response(query)
            reply.flags |= dns.flags.RA
            if (name, kind) in ZONE:
                reply.answer.append(dns.rrset.from_text(name, 300, "IN", kind, *ZONE[name, kind]))
            elif name.startswith("broken"):
                reply.set_rcode(dns.rcode.SERVFAIL)
            elif not any(known == name for known, _ in ZONE):
                reply.set_rcode(dns.rcode.NXDOMAIN)
            self._socket.sendto(reply.to_wire(), client)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def server() -> Iterator[DnsServer]:
    server = DnsServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def node(server: DnsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    folder = tmp_path_factory.mktemp("dns")
    allowed = "localhost,127.0.0.1:1"
    node = Atoll(folder, engines=1, dns_servers=f"127.0.0.1:{server.port}", egress_allow=allowed)
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture
def run(node: Atoll, request: pytest.FixtureRequest) -> Run:
    def run(body: str, **fields: object) -> Any:
        name = f"d{abs(hash(request.node.name)) % 10**9}"
        source = f"""import dns from "node:dns"; import promises from "node:dns/promises";
          const told = async (promise) => {{ try {{ return await promise; }} catch (error) {{
            return [error.name, error.code, error.message, error.syscall ?? null, error.hostname ?? null]; }} }};
          const thrown = (call) => {{ try {{ call(); return "nothing"; }} catch (error) {{ return `${{error.name}} ${{error.code}}: ${{error.message}}`; }} }};
          const called = (name, ...args) => new Promise((resolve) => dns[name](...args, (...results) => resolve(results)));
          export default {{ async fetch() {{ return Response.json(await (async () => {{ {body} }})()); }} }};"""
        node.deploy(name, source, **fields)
        answer = node.get(name)
        assert answer.status == 200, answer.text
        return answer.json

    return run


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ('resolve4("example.com")', ["93.184.216.34"]),
        ('resolve4("example.com", { ttl: true })', [{"address": "93.184.216.34", "ttl": 300}]),
        ('resolve6("example.com")', ["2606:2800:220:1:248:1893:25c8:1946"]),
        ('resolveMx("example.com")', [{"exchange": "mail.example.com", "priority": 10}, {"exchange": "spare.example.com", "priority": 20}]),
        ('resolveTxt("example.com")', [["v=spf1 -all"], ["one", "two"]]),
        ('resolveNs("example.com")', ["ns.example.com"]),
        ('resolveSoa("example.com")', {"nsname": "ns.example.com", "hostmaster": "admin.example.com", "serial": 7, "refresh": 3600, "retry": 600, "expire": 86400, "minttl": 60}),
        ('resolveCaa("example.com")', [{"critical": 0, "issue": "pki.example"}]),
        ('resolveCname("www.example.com")', ["example.com"]),
        ('resolveSrv("_sip._tcp.example.com")', [{"name": "sip.example.com", "port": 5060, "priority": 1, "weight": 2}]),
        ('resolveNaptr("example.com")', [{"flags": "s", "service": "SIP+D2U", "regexp": "", "replacement": "_sip._udp.example.com", "order": 100, "preference": 50}]),
        ('reverse("93.184.216.34")', ["example.com"]),
        ('resolve("Example.COM", "NS")', ["ns.example.com"]),
    ],
)  # fmt: skip
def test_records_have_the_shapes_of_node(run: Run, call: str, answer: object) -> None:
    name, arguments = call.split("(", 1)
    told = run(
        f"return [await told(promises.{call}), await called('{name}', {arguments[:-1]}), await new promises.Resolver().{call}];"
    )
    first, (error, second), third = told
    assert error is None
    for found in (first, second, third):  # servers shuffle what they send
        assert sorted(found, key=str) == sorted(answer, key=str) if isinstance(answer, list) else found == answer


def test_errors_have_the_codes_of_node(run: Run) -> None:
    body = """return Promise.all([promises.resolve4("nothing.example"), promises.resolvePtr("example.com"), promises.resolveTxt("broken.example"),
      promises.lookup("nothing.invalid"), promises.reverse("x")].map(told));"""
    assert run(body) == [
        ["Error", "ENOTFOUND", "queryA ENOTFOUND nothing.example", "queryA", "nothing.example"],
        ["Error", "ENODATA", "queryPtr ENODATA example.com", "queryPtr", "example.com"],
        ["Error", "ESERVFAIL", "queryTxt ESERVFAIL broken.example", "queryTxt", "broken.example"],
        ["Error", "ENOTFOUND", "getaddrinfo ENOTFOUND nothing.invalid", "getaddrinfo", "nothing.invalid"],
        ["Error", "EINVAL", "getHostByAddr EINVAL x", "getHostByAddr", "x"],
    ]


def test_lookup(run: Run) -> None:
    body = """return [await promises.lookup("1.2.3.4"), await promises.lookup("::1", { all: true }), await promises.lookup(""),
      await called("lookup", "127.0.0.1", { all: true }), await called("lookup", "localhost", 4), await promises.lookup("localhost", { family: 4 }),
      thrown(() => dns.lookup(1, {})), thrown(() => promises.lookup("a", { family: 20 })), thrown(() => dns.lookup("a", 20, () => {})), thrown(() => dns.lookup(false, "cb")),
      thrown(() => promises.lookup("a", { hints: 100 })), thrown(() => dns.resolve("a", "X", () => {})), dns.getServers(), dns.NODATA];"""
    assert run(body) == [
        {"address": "1.2.3.4", "family": 4}, [{"address": "::1", "family": 6}], {"address": None, "family": 4},
        [None, [{"address": "127.0.0.1", "family": 4}]], [None, "127.0.0.1", 4], {"address": "127.0.0.1", "family": 4},
        'TypeError ERR_INVALID_ARG_TYPE: The "hostname" argument must be of type string. Received type number (1)',
        "TypeError ERR_INVALID_ARG_VALUE: The property 'options.family' must be one of: 0, 4, 6. Received 20",
        "TypeError ERR_INVALID_ARG_VALUE: The argument 'family' must be one of: 0, 4, 6. Received 20",
        'TypeError ERR_INVALID_ARG_TYPE: The "callback" argument must be of type function. Received undefined',
        "TypeError ERR_INVALID_ARG_VALUE: The argument 'hints' is invalid. Received 100",
        "TypeError ERR_INVALID_ARG_VALUE: The argument 'rrtype' is invalid. Received 'X'",
        [], "ENODATA",
    ]  # fmt: skip


def test_addresses_of_the_inside_stay_hidden(run: Run, server: DnsServer) -> None:
    """A worker must not map the operator's network by its names."""
    told = run(
        'return Promise.all([promises.resolve4("inside.example.com"), promises.lookup("ip6-localhost"), promises.resolveAny("inside.example.com")].map(told));'
    )
    assert [each[1] for each in told[:2]] == ["ENODATA", "ENOTFOUND"]
    assert "192.168" not in str(told)


def test_the_rules_of_a_worker_close_names(run: Run, server: DnsServer) -> None:
    asked = len(server.asked)
    body = 'return Promise.all([promises.resolveMx("example.com"), promises.lookup("example.com")].map(told));'
    for error in run(body, egress={"allow": ["other.example:443"]}):
        assert error[2].startswith("error 1021: example.com may not be looked up")
    assert len(server.asked) == asked


def test_every_question_is_a_subrequest(run: Run) -> None:
    body = 'const all = []; for (let i = 0; i < 3; i++) all.push(await told(promises.resolveNs("example.com"))); return all;'
    assert run(body, limits={"subrequests": 2})[2][2].startswith("Too many subrequests")
