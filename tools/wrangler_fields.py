"""Lists every field and subfield of wrangler's config, from the config-schema.json in its npm package.

    npm pack wrangler@latest && tar xzf wrangler-*.tgz
    python tools/wrangler_fields.py package > tests/project/wrangler_fields.txt

`[]` stands for each entry of a list, `*` for each name of a map. Environments have the same fields as the top level.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOT_ENTERED = ("env", "previews")  # they repeat the fields of the top level


def fields_of(schema: dict[str, Any]) -> Iterator[str]:
    definitions = schema["definitions"]

    def walk(node: dict[str, Any], path: str, above: tuple[str, ...]) -> Iterator[str]:
        if "$ref" in node:
            name = node["$ref"].removeprefix("#/definitions/")
            if name not in above:  # a type may contain itself, as JSON does
                yield from walk(definitions[name], path, (*above, name))
            return
        for each in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
            yield from walk(each, path, above)
        for name, inner in node.get("properties", {}).items():
            place = f"{path}.{name}" if path else name
            yield place
            if place not in NOT_ENTERED:
                yield from walk(inner, place, above)
        for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(node.get(key), dict):
                yield from walk(node[key], path + mark, above)

    yield from dict.fromkeys(walk(schema, "", ()))


if __name__ == "__main__":
    package = Path(sys.argv[1])
    print(f"# wrangler {json.loads((package / 'package.json').read_text())['version']}")
    print("\n".join(sorted(fields_of(json.loads((package / "config-schema.json").read_text())))))
