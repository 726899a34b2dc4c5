"""Where clients are: country, city and network of their addresses, from files in MaxMind's format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atoll.errors import StartError

LONGEST = 2048  # bytes of one place


class ClientPlaces:
    """Looks up addresses. A look-up takes some microseconds, once per connection."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._files = [_opened(Path(path)) for path in paths]

    def line(self, address: str) -> bytes:
        """The header line that tells a worker about an address; empty if nothing is known."""
        facts: dict[str, Any] = {}
        for file in self._files:
            try:
                record = file.get(address)
            except ValueError:
                return b""  # not an address, or one of IPv6 in a file of IPv4
            if isinstance(record, Mapping):
                facts |= _facts(record)
        text = json.dumps(facts, separators=(",", ":"))  # ASCII without line breaks, whatever the file holds
        return f"cf-atoll-place: {text}\r\n".encode() if facts and len(text) <= LONGEST else b""

    def close(self) -> None:
        for file in self._files:
            file.close()


def _opened(path: Path) -> Any:
    import maxminddb  # only for nodes that have such a file

    try:
        return maxminddb.open_database(path)
    except (OSError, maxminddb.InvalidDatabaseError) as error:
        hint = "give files in MaxMind's format, such as GeoLite2-City.mmdb"
        raise StartError(f"geo_files names {path}, which cannot be read: {error}", hint) from None


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `request.cf` that a record has."""
    country, location = _table(record.get("country")), _table(record.get("location"))
    areas = record.get("subdivisions")
    area = _table(areas[0]) if isinstance(areas, list) and areas else {}
    found = {
        "country": country.get("iso_code"),
        "isEUCountry": "1" if country.get("is_in_european_union") is True else None,
        "continent": _table(record.get("continent")).get("code"),
        "city": _name(record.get("city")),
        "region": _name(area),
        "regionCode": area.get("iso_code"),
        "postalCode": _table(record.get("postal")).get("code"),
        "metroCode": _text(location.get("metro_code")),
        "timezone": location.get("time_zone"),
        "latitude": _text(location.get("latitude")),
        "longitude": _text(location.get("longitude")),
        "asn": record.get("autonomous_system_number"),
        "asOrganization": record.get("autonomous_system_organization"),
    }
    return {key: value for key, value in found.items() if isinstance(value, str | int)}


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _name(value: object) -> object:
    return _table(_table(value).get("names")).get("en")


def _text(value: object) -> str | None:
    return None if value is None else str(value)
