"""The reason phrase of a response (`statusText`), from its origin to the client."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.running import Answer, Atoll

Run = Callable[..., Answer]

STREAM = 'new Response(new Blob(["abc"]).stream(), { statusText: "Streamed" })'


@pytest.mark.parametrize(
    ("response", "status", "reason"),
    [
        ('new Response("a", { statusText: "Very Fine" })', 200, "Very Fine"),
        ('new Response(null, { status: 204, statusText: "Nothing at all" })', 204, "Nothing at all"),
        (
            'new Response("a", { status: 404, statusText: "Not\\tFound\\xe4 ", headers: { a: "b" } })',
            404,
            "Not\tFoundä",
        ),
        (STREAM, 200, "Streamed"),
        ('new Response(new Uint8Array(1 << 20), { statusText: "Large" })', 200, "Large"),
        ('new Response("a", { status: 404 })', 404, "Not Found"),
        ('new Response("a", { status: 299 })', 299, ""),
        ('new Response("a", { status: 299, statusText: "OK" })', 299, "OK"),
        ('new Response("a", { statusText: "OK" })', 200, "OK"),
        ('new Response("a", { statusText: "x".repeat(1024) })', 200, "x" * 1024),
        ('new Response("a", { statusText: "x".repeat(1025) })', 500, "Internal Server Error"),
    ],
)
def test_a_client_sees_the_status_text_of_a_worker(run: Run, response: str, status: int, reason: str) -> None:
    answer = run(f"return {response}")
    assert (answer.status, answer.reason) == (status, reason)


def test_head_has_the_status_text_too(run: Run, node: Atoll) -> None:
    node.deploy("reason-of-head", f"export default {{ fetch() {{ return {STREAM} }} }};")
    assert node.request("HEAD", node.host("reason-of-head")).reason == "Streamed"


@pytest.mark.parametrize("size", [5, 5_000_000])  # the second bypasses the engine
@pytest.mark.parametrize("pass_on", ["return r", "return new Response(r.body, r)"])
def test_a_proxy_passes_on_the_reason_phrase_of_the_server(run: Run, size: int, pass_on: str) -> None:
    answer = run(f"const r = await fetch(UP + '/reason/{size}/Fine%20%E4'); {pass_on}")
    assert (answer.status, answer.reason, len(answer.body)) == (200, "Fine ä", size)


@pytest.mark.parametrize("reason", ["a\x01b\x7f", "y" * 3000])
def test_an_invalid_reason_phrase_of_a_server_is_repaired(run: Run, reason: str) -> None:
    answer = run(f"return await fetch(UP + '/reason/5/{quote(reason, encoding='latin-1')}')")
    assert (answer.status, answer.reason) == (200, "ab" if reason.startswith("a") else "y" * 1024)


@pytest.mark.parametrize("size", [5, 500_000])
def test_a_worker_sees_the_status_text_of_another_worker(run: Run, node: Atoll, size: int) -> None:
    source = f'new Response("x".repeat({size}), {{ status: 418, statusText: "Short and Stout" }})'
    node.deploy("teapot", f"export default {{ fetch() {{ return {source} }} }};")
    url = f"http://{node.host('teapot')}/"
    bindings = [{"name": "POT", "type": "service", "service": "teapot"}]
    for ask in (f'fetch("{url}")', f'env.POT.fetch("{url}")'):
        seen = run(
            f"const r = await {ask}; return Response.json([r.statusText, (await r.text()).length])", bindings=bindings
        )
        assert seen.json == ["Short and Stout", size]
        answer = run(f"return {ask}", bindings=bindings)
        assert (answer.status, answer.reason, len(answer.body)) == (418, "Short and Stout", size)
