"""Posts bodies of 10 KB and receives them back. The bodies differ from request to request.

The raw echo only parses the body and answers with a few bytes, which makes it an even higher bar here.
"""

from __future__ import annotations

from bench.costs import compared
from bench.harness import script
from bench.report import Options, Row, main

SIZE = 10 * 1024
LUA = f"""
local requests = {{}}
init = function()
  for n = 1, 64 do
    local body = string.rep(string.char(97 + n % 26), {SIZE})
    requests[n] = wrk.format("POST", "/" .. n, {{ Host = "echo.localhost" }}, body)
  end
end
request = function() return requests[math.random(#requests)] end
"""


def run(options: Options) -> list[Row]:
    body = b"x" * SIZE
    return compared("POST of 10 KB and back", "echo", script("echo"), body, options, body=body, lua=LUA, goal_us=45)


if __name__ == "__main__":
    main(run)
