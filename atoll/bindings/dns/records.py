"""Records of DNS, in the shapes that node:dns gives them. Runs in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import dns.exception
import dns.name
import dns.nameserver
import dns.resolver

SECONDS = 5.0  # for one question, all servers and tries included
MOST = 500  # records of one answer

Shape = Callable[[Any], dict[str, Any]]


def _text(name: Any) -> str:
    return str(name.to_text(omit_final_dot=True)) if isinstance(name, dns.name.Name) else str(name)


def _plain(data: bytes) -> str:
    return data.decode("utf-8", "replace")


SHAPES: dict[str, Shape] = {
    "A": lambda r: {"address": r.address},
    "AAAA": lambda r: {"address": r.address},
    "CAA": lambda r: {"critical": r.flags, _plain(r.tag): _plain(r.value)},
    "CNAME": lambda r: {"value": _text(r.target)},
    "MX": lambda r: {"exchange": _text(r.exchange), "priority": r.preference},
    "NAPTR": lambda r: {
        "flags": _plain(r.flags), "service": _plain(r.service), "regexp": _plain(r.regexp),
        "replacement": _text(r.replacement), "order": r.order, "preference": r.preference,
    },
    "NS": lambda r: {"value": _text(r.target)},
    "PTR": lambda r: {"value": _text(r.target)},
    "SOA": lambda r: {
        "nsname": _text(r.mname), "hostmaster": _text(r.rname), "serial": r.serial, "refresh": r.refresh,
        "retry": r.retry, "expire": r.expire, "minttl": r.minimum,
    },
    "SRV": lambda r: {"name": _text(r.target), "port": r.port, "priority": r.priority, "weight": r.weight},
    "TLSA": lambda r: {"certUsage": r.usage, "selector": r.selector, "match": r.mtype, "data": r.cert.hex()},
    "TXT": lambda r: {"entries": [_plain(text) for text in r.strings]},
}  # fmt: skip


@lru_cache(4)
def _resolver(servers: tuple[str, ...]) -> dns.resolver.Resolver:
    resolver = dns.resolver.Resolver(configure=not servers)
    if servers:
        found = [server.rpartition(":") if server.count(":") == 1 else (server, "", "53") for server in servers]
        resolver.nameservers = [dns.nameserver.Do53Nameserver(host, int(port)) for host, _, port in found]
    resolver.lifetime = SECONDS
    return resolver


def ask(host: str, kind: str, servers: tuple[str, ...]) -> tuple[str, list[dict[str, Any]]]:
    """(a code of node:dns or "", the records with their `ttl`)."""
    try:
        answer = _resolver(servers).resolve(host, kind, search=False, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN:
        return "ENOTFOUND", []
    except (dns.resolver.NoNameservers, OSError):
        return "ESERVFAIL", []
    except (dns.exception.Timeout, dns.resolver.YXDOMAIN):
        return "ETIMEOUT", []
    except (dns.exception.DNSException, UnicodeError, ValueError):
        return "EBADNAME", []
    found = answer.rrset
    if found is None:
        return "ENODATA", []
    return "", [{**SHAPES[kind](record), "ttl": found.ttl} for record in list(found)[:MOST]]
