"""fetch() with cf.cacheTtl and related options: what comes from the cache and what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]

# Counts its requests, and answers with the status, headers and size from the query.
ORIGIN = """let count = 0;
export default { fetch(request) {
  const { searchParams } = new URL(request.url);
  const headers = JSON.parse(searchParams.get("headers") ?? "{}");
  const body = searchParams.has("size") ? "x".repeat(Number(searchParams.get("size"))) : `answer ${++count}`;
  return new Response(body, { status: Number(searchParams.get("status") ?? 200), headers });
} };"""

# Fetches until an answer comes from the cache, up to a limit: a response is stored a moment after it is read.
ASK = """
  const answers = [];
  for (let i = 0; i < TRIES && answers.at(-1)?.[1] !== "HIT"; i++) {
    const response = await fetch(WHERE, { cf: CF, headers: HEADERS });
    answers.push([await response.text(), response.headers.get("cf-cache-status") ?? "-", response.status]);
    await scheduler.wait(5);
  }
  return Response.json(answers);
"""


@pytest.fixture(scope="module")
def origin(node: Atoll) -> str:
    node.deploy("origin", ORIGIN)
    return f"http://origin.localhost:{node.port}/"


NO_STORE = "headers=" + '{"cache-control":"no-store"}'.replace('"', "%22")
MAX_AGE = "headers=" + '{"cache-control":"max-age=60"}'.replace('"', "%22")
COOKIE = "headers=" + '{"set-cookie":"a=b"}'.replace('"', "%22")


@pytest.mark.parametrize(
    ("query", "cf", "headers", "cached"),
    [
        ("a", "{}", "{}", False),
        (MAX_AGE, "{}", "{}", False),
        (MAX_AGE, "{cacheEverything: true}", "{}", True),
        (NO_STORE, "{cacheEverything: true}", "{}", False),
        (NO_STORE, "{cacheTtl: 60}", "{}", True),
        (COOKIE, "{cacheTtl: 60}", "{}", False),
        ("a", "{cacheTtl: 0}", "{}", False),
        ("a", "{cacheTtl: -1}", "{}", False),
        ("status=500", "{cacheEverything: true}", "{}", False),
        ("status=500", "{cacheTtlByStatus: {'500-599': 60}}", "{}", True),
        ("status=404", "{cacheTtl: 60, cacheTtlByStatus: {'404': -1}}", "{}", False),
        ("status=200", "{cacheTtlByStatus: {'500-599': -1}}", "{}", True),
        ("b", "{cacheEverything: true}", "{authorization: 'me'}", False),
        ("b", "{cacheTtl: 60}", "{authorization: 'me'}", True),
        ("size=300000", "{cacheTtl: 60}", "{}", True),
    ],
)
def test_a_response_is_cached_as_the_request_demands(
    run: Run, origin: str, query: str, cf: str, headers: str, cached: bool
) -> None:
    where = f"{origin}?{query}&{abs(hash((cf, headers)))}"
    tries = 500 if cached else 3
    answer = run(f'const WHERE = "{where}", CF = {cf}, HEADERS = {headers}, TRIES = {tries};\n{ASK}')
    answers = answer.json
    assert answers[0][1] == "-", "the first answer comes from the server"
    assert (answers[-1][1] == "HIT") is cached
    if cached:
        # From any earlier answer: the last one may be stored after the next request.
        assert [answers[-1][0], answers[-1][2]] in [[text, size] for text, _, size in answers[:-1]]


@pytest.mark.parametrize(
    "cf", ["{cacheTtl: 'long'}", "{cacheTtlByStatus: {'9': 1}}", "{cacheTtlByStatus: 5, cacheTtl: 1}"]
)
def test_invalid_cache_options_are_type_errors(run: Run, origin: str, cf: str) -> None:
    answer = run(f'return fetch("{origin}", {{cf: {cf}}}).catch((error) => new Response(`${{error}}`));')
    assert answer.text.startswith("TypeError: fetch: cf.")


def test_a_cache_key_is_one_for_many_urls(run: Run, origin: str) -> None:
    script = f"""
      const cf = {{ cacheTtl: 60, cacheKey: "one" }};
      for (let i = 0; i < 500; i++) {{
        const response = await fetch("{origin}?" + i, {{ cf }});
        await response.text();
        if (response.headers.has("cf-cache-status")) return new Response("hit");
        await scheduler.wait(5);
      }}"""
    assert run(script).text == "hit"


def test_an_encoded_response_is_decoded_from_the_cache(run: Run, upstream: Upstream) -> None:
    script = f'const WHERE = UP + "/coded/gzip", CF = {{ cacheTtl: 60 }}, HEADERS = {{}}, TRIES = 500;\n{ASK}'
    answers = run(script).json
    assert answers[-1] == [answers[0][0], "HIT", 200] and "\ufffd" not in answers[0][0]
    asked = len(upstream.seen)
    assert run(script).json[0] == answers[-1]
    assert len(upstream.seen) == asked, "the server is not called again"


def test_a_body_that_is_not_read_to_its_end_is_not_kept(run: Run, origin: str) -> None:
    script = f"""
      const url = "{origin}?size=3000000&cut", cf = {{ cacheTtl: 60 }};
      const reader = (await fetch(url, {{ cf }})).body.getReader();
      await reader.read();
      await reader.cancel();
      const second = await fetch(url, {{ cf }});
      return new Response(`${{(await second.text()).length}} ${{second.headers.get("cf-cache-status")}}`);"""
    assert run(script).text == "3000000 null"


def test_a_host_that_may_not_be_reached_is_not_served_from_the_cache_either(run: Run) -> None:
    script = 'return fetch("http://127.0.0.1:9/", { cf: { cacheTtl: 60 } }).catch((error) => new Response(`${error}`));'
    assert run(script).text.startswith("TypeError")
