"""A JSON API that parses its URL and query, reads a header and answers with ten items.

Paths, queries and header sets vary, so nothing is tuned to bytes that repeat.
"""

from __future__ import annotations

import json

from bench.costs import compared
from bench.harness import script
from bench.report import Options, Row, main
from bench.varied import HEADER_SETS, lua_table

PATH = "/api/items?page=3&name=atoll"
LUA = f"""
local sets = {{{", ".join(lua_table(each) for each in HEADER_SETS)}}}
local requests = {{}}
init = function()
  for n = 1, 500 do
    sets[n % #sets + 1]["Host"] = "json.localhost"
    requests[n] = wrk.format("GET", "/api/items?page=" .. n % 97 .. "&name=name" .. n * 7919, sets[n % #sets + 1])
  end
end
request = function() return requests[math.random(#requests)] end
"""


def wanted() -> bytes:
    items = [{"id": 30 + n, "name": f"atoll {n}", "price": (30 + n) * 1.5, "tags": ["a", "b"]} for n in range(10)]
    return json.dumps({"page": 3, "agent": None, "items": items}, separators=(",", ":")).encode().replace(b".0,", b",")


def run(options: Options) -> list[Row]:
    return compared("JSON API of ten items", "json", script("json"), wanted(), options, path=PATH, lua=LUA, goal_us=35)


if __name__ == "__main__":
    main(run)
