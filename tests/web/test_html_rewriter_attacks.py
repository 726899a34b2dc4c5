"""Documents, selectors and handlers that try to hurt the node through HTMLRewriter."""

from __future__ import annotations

import http.client

import pytest

from tests.running import Atoll

SCRIPT = """
const page = (body) => new Response(body, { headers: { "content-type": "text/html" } });
const shown = (response) => response.text().then((text) => `${text.length}`, (error) => `${error}`);
const on = (selector, element = () => {}) => new HTMLRewriter().on(selector, { element });
function repeated(piece, times) {
  const bytes = new TextEncoder().encode(piece);
  let count = 0;
  return new ReadableStream({ pull: (c) => (count++ < times ? c.enqueue(bytes.slice()) : c.close()) });
}

const attacks = {
  nested: () => shown(on("b b > i").transform(page(repeated("<b>".repeat(21_845), 160)))),
  attribute: () => shown(on("b").transform(page(repeated(`<b x="${"y".repeat(65_536)}`, 160)))),
  comment: () => shown(new HTMLRewriter().onDocument({ comments() {} }).transform(page(repeated(`<!--${"y".repeat(65_536)}`, 160)))),
  "deep selector": () => shown(on(Array.from({ length: 3_000 }, (_, i) => `.a${i}`).join(" ")).transform(page("<b>".repeat(2_000)))),
  "long selector": () => { on(Array.from({ length: 100_000 }, (_, i) => `.a${i}`).join(" ")); },
  "nested selector": () => { on(":not(".repeat(20_000)); },
  "many selectors": () => {
    const rewriter = new HTMLRewriter();
    for (let i = 0; i < 3_000; i++) rewriter.on(`.a${i} .b${i}`, { element() {} });
    return shown(rewriter.transform(page("<b class='a0 b0'></b>".repeat(500))));
  },
  "handlers of handlers": () => {
    let depth = 0;
    const again = (e) => (depth++ < 200 ? shown(on("b", again).transform(page("<b></b>"))) : undefined);
    return shown(on("b", again).transform(page("<b></b>")));
  },
  never: () => on("b", () => new Promise(() => {})).transform(page("<b>")),
  loop: () => { on("b", () => { for (;;); }).transform(page("<b>")); return new Promise((wake) => setTimeout(wake, 3_000)); },
  fine: () => shown(on("b", (b) => void b.append("!")).transform(page("<b></b>"))),
};

export default {
  async fetch(request) {
    try {
      const result = await attacks[decodeURIComponent(new URL(request.url).pathname.slice(1))]();
      return result instanceof Response ? result : new Response(`${result}`);
    } catch (error) {
      return new Response(`${error}`);
    }
  },
};
"""  # noqa: E501

OVER = "TypeError: Parser error: The memory limit has been exceeded."


@pytest.fixture(scope="module")
def worker(atoll: Atoll) -> str:
    atoll.deploy("html-attacks", SCRIPT, limits={"cpu_ms": 1_000, "wall_ms": 6_000})
    return "html-attacks"


def attack(atoll: Atoll, name: str) -> str:
    return atoll.get("html-attacks", f"/{name.replace(' ', '%20')}").text


@pytest.mark.parametrize("name", ["nested", "attribute", "comment", "long selector"])
@pytest.mark.usefixtures("worker")
def test_what_needs_more_than_the_memory_of_the_parser_is_an_error(atoll: Atoll, name: str) -> None:
    assert attack(atoll, name) == OVER
    assert attack(atoll, "fine") == "8", "the worker goes on"


@pytest.mark.parametrize("name", ["deep selector", "nested selector", "many selectors", "handlers of handlers"])
@pytest.mark.usefixtures("worker")
def test_much_of_everything_ends_and_harms_nobody(atoll: Atoll, name: str) -> None:
    engines = atoll.engines()
    attack(atoll, name)  # it works, or it is an error, or a limit ends it
    assert attack(atoll, "fine") == "8"
    assert atoll.engines() == engines, "no engine has died"


@pytest.mark.usefixtures("worker")
def test_a_handler_that_never_settles_ends_with_its_call(atoll: Atoll) -> None:
    with pytest.raises(http.client.HTTPException):
        atoll.get("html-attacks", "/never")
    assert attack(atoll, "fine") == "8"


@pytest.mark.usefixtures("worker")
def test_a_handler_that_loops_is_ended_at_its_cpu_limit(atoll: Atoll) -> None:
    assert "1102" in attack(atoll, "loop")
    assert attack(atoll, "fine") == "8"
