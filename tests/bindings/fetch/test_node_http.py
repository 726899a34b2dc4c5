"""node:http and node:https: requests of Node's kind, sent with fetch."""

from __future__ import annotations

from collections.abc import Callable

from tests.running import Answer

HELPERS = """
const http = await import("node:http");
const { text } = await import("node:stream/consumers");
const ask = (...args) => new Promise((resolve, reject) => http.get(...args, resolve).on("error", reject));
"""


def test_get_gives_status_headers_and_body(run: Callable[..., Answer]) -> None:
    found = run(
        HELPERS
        + """
        const message = await ask(`${UP}/status/404`);
        const body = await text(message);
        return Response.json([message.statusCode, message.statusMessage, typeof message.headers.date, message.complete, body.length > 0]);
        """
    ).json
    assert found[:2] == [404, "Very Special"]
    assert found[3:] == [True, True]


def test_a_request_sends_what_is_written_to_it(run: Callable[..., Answer]) -> None:
    found = run(
        HELPERS
        + """
        const { hostname, port } = new URL(UP);
        const message = await new Promise((resolve, reject) => {
          const request = http.request({ hostname, port, path: "/echo", method: "POST", headers: { "X-One": "1" } }, resolve);
          request.on("error", reject);
          request.setHeader("Content-Type", "text/plain");
          request.write("hello ");
          request.end("there");
        });
        return Response.json([message.statusCode, await text(message)]);
        """
    ).json
    assert found[0] == 200 and "hello there" in found[1]


def test_what_cannot_be_reached_is_an_error_event(run: Callable[..., Answer]) -> None:
    answer = run(
        HELPERS
        + """
        try {
          await ask("http://127.0.0.1:9/");
        } catch (error) {
          return Response.json([error instanceof Error, error.message.length > 0]);
        }
        """
    )
    assert answer.json == [True, True]


def test_a_destroyed_request_asks_nobody(run: Callable[..., Answer]) -> None:
    answer = run(
        HELPERS
        + """
        const sent = http.request(`${UP}/status/200`);
        const failed = new Promise((resolve) => sent.on("error", (error) => resolve(error.message)));
        sent.destroy(new Error("changed my mind"));
        return new Response(await failed);
        """
    )
    assert answer.text == "changed my mind"
