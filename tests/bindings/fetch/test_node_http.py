"""node:http and node:https: requests in Node's API, sent with fetch."""

from __future__ import annotations

from collections.abc import Callable

from tests.running import Answer

HELPERS = """
const http = await import("node:http");
const { text } = await import("node:stream/consumers");
const ask = (...args) => new Promise((resolve, reject) => http.get(...args, resolve).on("error", reject));
"""


def test_get_returns_status_headers_and_body(run: Callable[..., Answer]) -> None:
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


def test_an_unreachable_server_is_an_error_event(run: Callable[..., Answer]) -> None:
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


def test_a_destroyed_request_is_not_sent(run: Callable[..., Answer]) -> None:
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


def test_a_body_keeps_the_coding_of_its_headers(run: Callable[..., Answer]) -> None:
    """As in Node: node-fetch, got and axios request codings and decode them themselves."""
    found = run(
        HELPERS
        + """
        const zlib = await import("node:zlib");
        const { buffer } = await import("node:stream/consumers");
        const undo = { gzip: zlib.gunzipSync, deflate: zlib.inflateSync, br: null, undefined: (bytes) => bytes };
        const found = [];
        for (const coding of ["gzip", "deflate", "br", ""]) {
          for (const size of [1, 65536, 300000]) {
            const headers = coding === "" ? {} : { "Accept-Encoding": coding };
            const message = await ask(`${UP}/coded-bytes/${coding || "gzip"}/${size}`, { headers });
            const told = message.headers["content-encoding"];
            const length = message.headers["content-length"];
            const bytes = await buffer(message);
            if (told !== (coding || undefined)) found.push([coding, size, told]);
            if (told !== undefined && Number(length) !== bytes.length) found.push([coding, size, length, bytes.length]);
            if (told !== "br" && undo[told](bytes).length !== size) found.push([coding, size, bytes.length]);
          }
        }
        return Response.json(found);
        """,
        limits={"cpu_ms": 2000},
    ).json
    assert found == []
