"""Deploys an example over the HTTP API, or updates it: `python examples/deploy.py json-api`. Prints its address.

It reads `name`, `main`, `[vars]` and bindings from the example's atoll.toml and needs only Python 3.11.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def read_example(folder: Path) -> dict[str, Any]:
    """The body of POST /api/workers for the worker in `folder`."""
    config = tomllib.loads((folder / "atoll.toml").read_text())
    body = {
        "name": config["name"],
        "script": (folder / config["main"]).read_text(),
        "env": config.get("vars", {}),
        "bindings": read_bindings(config),
    }
    optional = {key: config[key] for key in ("routes", "compatibility_date", "compatibility_flags") if key in config}
    return body | optional


def read_bindings(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of `bindings`, from the tables of the config."""
    kinds = {
        "kv": [{"name": kv["binding"], "namespace": kv["id"]} for kv in config.get("kv_namespaces", [])],
        "ratelimit": [
            {"name": limit["name"], "namespace": limit["namespace_id"], **limit["simple"]}
            for limit in config.get("ratelimits", [])
        ],
        "version_metadata": [{"name": found["binding"]} for found in [config.get("version_metadata")] if found],
    }
    return [{"type": kind, **entry} for kind, entries in kinds.items() for entry in entries]


def send(method: str, url: str, body: dict[str, Any]) -> dict[str, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as response:
        answer: dict[str, Any] = json.load(response)
        return answer


def deploy(server: str, body: dict[str, Any]) -> dict[str, Any]:
    """Creates the worker, or updates it if it exists."""
    try:
        return send("POST", f"{server}/api/workers", body)
    except urllib.error.HTTPError as error:
        if error.code != 409:  # 409: the name is taken, so this is an update
            raise
        error.close()
    return send("PUT", f"{server}/api/workers/{body['name']}", body)


def main() -> int:
    parser = argparse.ArgumentParser(description="Deploy an example, or update it.")
    parser.add_argument("example", help="a folder in examples/, such as json-api")
    parser.add_argument("--server", default="http://localhost:8080", help="[default: %(default)s]")
    options = parser.parse_args()
    folder = HERE / Path(options.example).name
    if not (folder / "atoll.toml").is_file():
        known = ", ".join(sorted(path.parent.name for path in HERE.glob("*/atoll.toml")))
        print(f"error: there is no example {options.example}\nhint: the examples are {known}", file=sys.stderr)
        return 1
    try:
        worker = deploy(options.server, read_example(folder))
    except urllib.error.HTTPError as error:
        print(f"error: refused with {error.code}: {error.read().decode()}", file=sys.stderr)
        return 1
    except urllib.error.URLError as error:
        print(
            f"error: {options.server} does not answer: {error.reason}\nhint: start it with `make run`", file=sys.stderr
        )
        return 1
    print(worker["url"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
