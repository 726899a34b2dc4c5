"""Writes atoll/project/platform.gen.json: the globals and built-in modules of workers, as an engine reports them.

Run `python -m tools.gen_platform` after a change of web/globals.js or web/node. `--check` fails if the file is stale.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from atoll.embed import ApiRefused, Atoll
from atoll.project.flags import flags

TARGET = Path(__file__).resolve().parent.parent / "atoll" / "project" / "platform.gen.json"
DATE = "2026-11-01"  # what a worker of today has
MODULE = re.compile(r"\b(?:node|cloudflare|atoll):[\w/]+")

GLOBALS = """
export default { fetch() {
  const names = new Set();
  for (let scope = globalThis; scope !== null; scope = Object.getPrototypeOf(scope)) {
    for (const name of Object.getOwnPropertyNames(scope)) names.add(name);
  }
  return Response.json([...names].sort());
} };
"""
# A function that is not available throws that error for any arguments.
EXPORTS = """
%s
const modules = { %s };
const OWN_RISK = new Set(["node:process", "node:console", "cloudflare:workers"]); // their functions do something
function isRefused(call) {
  try {
    call()?.catch?.(() => {});
    return false;
  } catch (error) {
    return error?.code === "ERR_METHOD_NOT_IMPLEMENTED";
  }
}
export default { fetch() {
  return Response.json(Object.fromEntries(Object.entries(modules).map(([name, exports]) => {
    const names = Object.keys(exports).sort();
    const isFunction = (each) => typeof exports[each] === "function" && !OWN_RISK.has(name);
    return [name, { exports: names, refused: names.filter((each) => isFunction(each) && isRefused(exports[each])) }];
  })));
} };
"""


async def described() -> dict[str, Any]:
    """The globals and modules that a real engine reports."""
    async with Atoll() as atoll:
        plain = await _answer(atoll, GLOBALS, "no_nodejs_compat", "no_nodejs_compat_v2")
        node = await _answer(atoll, GLOBALS, "nodejs_compat")
        names = await _module_names(atoll)
        imports = "".join(f'import * as m{i} from "{name}";' for i, name in enumerate(names))
        table = ", ".join(f'"{name}": m{i}' for i, name in enumerate(names))
        modules = await _answer(atoll, EXPORTS % (imports, table), "nodejs_compat")
    return {
        "globals": plain,
        "node_globals": sorted(set(node) - set(plain)),
        "node_globals_since": flags()["nodejs_compat"].since,
        "modules": modules,
    }


async def _answer(atoll: Atoll, script: str, *flags: str) -> Any:
    worker = await atoll.deploy("probe", script, compatibility_date=DATE, compatibility_flags=list(flags))
    return (await worker.fetch()).json()


async def _module_names(atoll: Atoll) -> list[str]:
    """The built-in modules: the error about an unknown module lists them."""
    try:
        await atoll.deploy("none", 'import "cloudflare:none"; export default {};')
    except ApiRefused as refused:
        return sorted(set(MODULE.findall(str(refused))) - {"cloudflare:none"})
    raise RuntimeError("a module that does not exist was imported")


def text_of(platform: dict[str, Any]) -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in sorted(platform["modules"].items())]
    head = "".join(f"{json.dumps(key)}: {json.dumps(platform[key])},\n" for key in platform if key != "modules")
    return "{\n" + head + '"modules": {\n' + ",\n".join(lines) + "\n}\n}\n"


def main() -> None:
    text = text_of(asyncio.run(described()))
    if "--check" not in sys.argv:
        TARGET.write_text(text, "utf-8")
    elif TARGET.read_text("utf-8") != text:
        sys.exit(f"{TARGET.name} is not fresh: run `python -m tools.gen_platform`")


if __name__ == "__main__":
    main()
