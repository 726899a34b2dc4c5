"""Converts the value of one setting to its type, or raises an error that quotes the operator's text."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from atoll.errors import StartError
from atoll.manifests.manifest import Facts

HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


def shown(default: object, facts: Facts) -> str:
    """The default of a setting as help and documentation print it."""
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return facts.shown or str(default)


def checked(name: str, default: object, facts: Facts, raw: object, called: str) -> object:
    """`raw` as the type of the setting. `called` is the setting as the operator wrote it, for errors."""
    if isinstance(default, int | float):
        return _number(default, facts, raw, called)
    if isinstance(default, tuple):
        hosts = [part.strip() for part in raw.split(",")] if isinstance(raw, str) else raw
        if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
            raise StartError(f"{called} is {raw!r}, not a list of names", 'write ["a.example", "b.example"] in a file')
        if name == "trusted_proxies":
            return tuple(_network(text, called) for text in hosts if text)
        return tuple(host if facts.free else _host_name(host, called) for host in hosts if host)
    if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
        raise StartError(f"{called} is {raw!r}, not a text", f"{facts.doc} Default: {shown(default, facts)}")
    if isinstance(default, Path):
        return Path(raw).expanduser()
    if facts.words and raw.strip() not in facts.words:
        raise StartError(f"{called} is {raw!r}, not one of {', '.join(facts.words)}", facts.doc)
    if name == "public_url":
        return _public_url(raw.strip(), called)
    return _host_name(raw, called) if name == "base_domain" else raw.strip()


def _number(default: int | float, facts: Facts, raw: object, called: str) -> int | float:
    kind = type(default)
    expected = "a whole number" if kind is int else "a number"
    hint = f"{facts.doc} Default: {shown(default, facts)}"
    try:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise ValueError
        number: int | float = float(raw) if kind is float else int(raw)
        if isinstance(raw, float) and number != raw:
            raise ValueError
    except (ValueError, OverflowError):
        raise StartError(f"{called} is {raw!r}, not {expected}", hint) from None
    if not facts.low <= number <= facts.high:  # also false for NaN
        bounds = f"from {facts.low:g} to {facts.high:.0f}" if facts.high < 2**53 else f"{facts.low:g} or more"
        raise StartError(f"{called} is {raw}, but must be {bounds}", hint)
    return number


def _host_name(raw: str, called: str) -> str:
    name = raw.strip().lower().rstrip(".")
    if not HOST_NAME.fullmatch(name):
        raise StartError(f"{called} is {raw!r}, not a host name", "use letters, digits, dashes and dots, and no port")
    return name


def _public_url(raw: str, called: str) -> str:
    """Scheme, host and port, without the scheme's usual port."""
    hint = "write it like https://apps.example.com or https://apps.example.com:8443: a scheme, a host name, a port"
    wrong = StartError(f"{called} is {raw!r}, not the address of a host", hint)
    try:
        parts = urlsplit(raw)
        port = parts.port
    except ValueError:
        raise wrong from None
    is_host_only = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username is not None)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_host_only or port == 0:
        raise wrong
    host = _host_name(parts.hostname, called)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        usual = {"http": 80, "https": 443}[parts.scheme]
        return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")
    raise StartError(f"{called} is {raw!r}, an IP address", "use a host name: workers answer on <name>.<host>")


def _network(raw: str, called: str) -> str:
    try:
        ipaddress.ip_network(raw, strict=False)
    except ValueError:
        raise StartError(
            f"{called} names {raw!r}, which is not an address", "write addresses or ranges: 10.0.0.0/8"
        ) from None
    return raw
