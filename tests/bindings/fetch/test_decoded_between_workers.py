"""A decoded body that a worker passes on is complete for the worker that requested it."""

from __future__ import annotations

import pytest

from tests.running import Atoll
from tests.upstream import Upstream

PASSING = """export default { async fetch(request) {
  const [, coding, size] = new URL(request.url).pathname.split("/");
  const response = await fetch(`UPSTREAM/coded-bytes/${coding}/${size}`);
  return new URL(request.url).searchParams.has("rebuilt") ? new Response(response.body) : response;
} };"""
ASKING = """export default { async fetch(request, env) {
  const response = await env.BACK.fetch(request);
  return new Response(String((await response.arrayBuffer()).byteLength));
} };"""


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip", "deflate"])
def test_a_decoded_body_passes_through_a_service_binding_completely(
    node: Atoll, upstream: Upstream, coding: str
) -> None:
    node.deploy("passing", PASSING.replace("UPSTREAM", upstream.url), limits={"cpu_ms": 5000})
    bindings = [{"type": "service", "name": "BACK", "service": "passing"}]
    node.deploy("asking", ASKING, bindings=bindings, limits={"cpu_ms": 5000})
    for size in (0, 1, 131_071, 131_072, 131_073, 235_000, 1_048_576, 5_000_000):
        for query in ("", "?rebuilt"):
            assert node.get("asking", f"/{coding}/{size}{query}").text == str(size), (size, query)
