"""Which node a command uses: flags, then the environment, then a profile of ~/.config/atoll/config.toml.

default = "home"

[profiles.home]
api = "https://atoll.example"
token = "…"
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from atoll.cli.talk import fail

LOCAL_API = "http://localhost:8080"


class NodeTarget(Struct, frozen=True):
    """A node, and the token and tenant to use there."""

    api: str
    token: str = ""
    tenant: str = ""
    profile: str = ""


def is_address(url: str) -> bool:
    """Whether this is an HTTP URL with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or an incomplete address
        return False


def address_hint(url: str) -> str:
    """A hint for an address that is not a URL."""
    if ":" not in url[-1:] and "://" not in url and is_address(f"http://{url}"):
        return f"write it with its scheme: http://{url} or https://{url}"
    return "write it like https://atoll.example"


def config_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "atoll" / "config.toml"


def read_profiles() -> tuple[dict[str, dict[str, str]], str]:
    """The profiles by name, and the name of the default one."""
    import tomllib

    path = config_file()
    if not path.is_file():
        return {}, ""
    try:
        config = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        fail(f"{path} cannot be read: {error}", "correct it, or move it away")
    profiles = config.get("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(value, dict) for value in profiles.values()):
        fail(f"`profiles` in {path} is not a table of tables", "write [profiles.NAME] above api and token")
    return profiles, str(config.get("default", ""))


def write_profiles(profiles: dict[str, dict[str, str]], default: str) -> None:
    """Write the profiles. Only the owner may read the file: it holds tokens."""
    lines = [f"default = {_quoted(default)}", ""] if default else []
    for name, fields in profiles.items():
        lines += [
            f"[profiles.{_quoted(name)}]",
            *(f"{key} = {_quoted(value)}" for key, value in fields.items()),
            "",
        ]
    path = config_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.chmod(0o600)
    temporary.write_text("\n".join(lines), "utf-8")
    temporary.replace(path)


def _quoted(text: str) -> str:
    """A TOML string. JSON's form works, except for its surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        fail(f"{text!r} is not UTF-8", "type it in UTF-8")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def chosen_target(api: str | None, token: str | None, tenant: str | None, profile: str | None) -> NodeTarget:
    profiles, default = read_profiles()
    name = profile or os.environ.get("ATOLL_PROFILE", "") or default
    if name and name not in profiles:
        known = ", ".join(profiles) or "none"
        fail(f"there is no profile `{name}`", f"there are: {known}; add one with `atoll profile add`")
    fields: dict[str, Any] = profiles.get(name, {})
    here = os.environ.get("ATOLL_API", "")
    given = api or here
    if given and given != fields.get("api"):
        fields = {"api": given}  # a token is sent only to the node of its profile
    url = str(fields.get("api", LOCAL_API)).rstrip("/")
    if not is_address(url):
        fail(f"the address of the node is {url}, which is not a URL", address_hint(url))
    return NodeTarget(
        api=url,
        token=token or os.environ.get("ATOLL_TOKEN", "") or str(fields.get("token", "")),
        tenant=tenant or os.environ.get("ATOLL_TENANT", "") or str(fields.get("tenant", "")),
        profile=name,
    )
