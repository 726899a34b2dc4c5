"""request.cf tells where a client is, if the operator gives a file in MaxMind's format."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from atoll.errors import StartError
from atoll.front.client_places import ClientPlaces
from atoll.front.peer import Peer, Proxies
from tests.running import Atoll

CITY = {
    "country": {"iso_code": "NL", "is_in_european_union": True},
    "continent": {"code": "EU"},
    "city": {"names": {"en": "Zoë\r\nX-Evil: 1"}},
    "subdivisions": [{"iso_code": "NH", "names": {"en": "North Holland"}}],
    "location": {"latitude": 52.5, "longitude": 4.25, "time_zone": "Europe/Amsterdam"},
    "postal": {"code": "1012"},
}
NETWORK = {"autonomous_system_number": 64500, "autonomous_system_organization": "Example"}


def encoded(value: Any, kind: int = 6, size: int = 4) -> bytes:
    """A value in MaxMind's format: https://maxmind.github.io/MaxMind-DB/. `kind` and `size` are those of an integer."""

    def control(kind: int, size: int) -> bytes:
        first = (kind << 5 if kind < 8 else 0) | min(size, 29)
        return bytes([first, *([kind - 7] if kind >= 8 else []), *([size - 29] if size >= 29 else [])])

    if isinstance(value, bool):
        return control(14, value)
    if isinstance(value, str):
        data = value.encode()
        return control(2, len(data)) + data
    if isinstance(value, float):
        return control(3, 8) + struct.pack(">d", value)
    if isinstance(value, int):
        return control(kind, size) + value.to_bytes(size, "big")
    if isinstance(value, list):
        return control(11, len(value)) + b"".join(map(encoded, value))
    return control(7, len(value)) + b"".join(encoded(key) + encoded(each) for key, each in value.items())


def write_file(path: Path, record: dict[str, Any]) -> Path:
    """A file that knows the addresses 127.0.0.0/8."""
    bits = [int(bit) for bit in f"{127:08b}"]
    count = len(bits)
    tree = b""
    for depth, bit in enumerate(bits):
        following = depth + 1 if depth + 1 < count else count + 16  # the record is the first of the data section
        sides = [count, count]  # nothing is known
        sides[bit] = following
        tree += b"".join(side.to_bytes(3, "big") for side in sides)
    short = {"binary_format_major_version": 2, "binary_format_minor_version": 0, "ip_version": 4, "record_size": 24}
    facts = {name: encoded(value, 5, 2) for name, value in short.items()}
    facts |= {"build_epoch": encoded(1, 9, 8), "database_type": encoded("Test"), "node_count": encoded(count)}
    facts |= {"description": encoded({"en": "test"}), "languages": encoded(["en"])}
    metadata = bytes([7 << 5 | len(facts)]) + b"".join(encoded(name) + data for name, data in facts.items())
    path.write_bytes(tree + b"\0" * 16 + encoded(record) + b"\xab\xcd\xefMaxMind.com" + metadata)
    return path


def test_a_worker_learns_where_its_client_is(tmp_path: Path) -> None:
    files = [write_file(tmp_path / "city.mmdb", CITY), write_file(tmp_path / "asn.mmdb", NETWORK)]
    atoll = Atoll(tmp_path / "node", engines=1, geo_files=",".join(map(str, files)))
    atoll.start()
    try:
        code = 'Response.json([request.cf, [...request.headers.keys()], request.headers.get("x-evil")])'
        atoll.deploy("where", f"export default {{ fetch(request) {{ return {code}; }} }}")
        forged = {"Accept-Encoding": "gzip, br", "CF-Atoll-Place": '{"country":"XX"}'}
        cf, names, evil = atoll.get("where", headers=forged).json
    finally:
        atoll.stop()
    assert {"cf-atoll-place", "x-evil"}.isdisjoint(names) and evil is None
    wanted = {
        "country": "NL", "isEUCountry": "1", "continent": "EU", "city": "Zoë\r\nX-Evil: 1", "regionCode": "NH",
        "region": "North Holland", "postalCode": "1012", "timezone": "Europe/Amsterdam", "latitude": "52.5",
        "longitude": "4.25", "asn": 64500, "asOrganization": "Example", "clientAcceptEncoding": "gzip, br",
    }  # fmt: skip
    assert {key: cf.get(key) for key in wanted} == wanted


def test_an_address_that_no_file_knows_has_no_place(tmp_path: Path) -> None:
    path = str(write_file(tmp_path / "city.mmdb", CITY))
    places = ClientPlaces((path,))
    assert places.line("127.1.2.3").startswith(b"cf-atoll-place: {")
    assert [places.line(address) for address in ("192.0.2.1", "::1", "", "nonsense")] == [b""] * 4
    places.close()
    assert b"place" in Peer(Proxies((), (path,)), "127.0.0.1").lines
    assert b"place" not in Peer(Proxies(), "127.0.0.1").lines


def test_a_file_that_is_none_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "broken.mmdb").write_text("nothing")
    for name in ("broken.mmdb", "absent.mmdb"):
        with pytest.raises(StartError, match="geo_files"):
            ClientPlaces((str(tmp_path / name),))
