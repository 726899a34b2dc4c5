"""A node inside a program does the same as a node in its own process, without a port."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from atoll import ApiRefused, Atoll
from atoll.errors import StartError

ECHO = """export default { async fetch(request, env) {
  console.log(request.method, new URL(request.url).pathname);
  if (request.url.endsWith("/throw")) throw new TypeError("on purpose");
  const headers = new Headers([["x-who", env.WHO], ["set-cookie", "a=1"], ["set-cookie", "b=2"]]);
  return new Response((await request.text()) + request.headers.get("x-in"), { status: 201, headers });
} }"""


async def test_a_worker_is_deployed_called_and_deleted() -> None:
    async with Atoll() as atoll:
        assert atoll.port == 0, "the node does not listen"
        worker = await atoll.deploy("echo", ECHO, env={"WHO": "me"})
        response = await worker.fetch("/a b?q=1", method="POST", headers={"X-In": "in"}, body="körper ")
        assert (response.status, response.text, response.headers["x-who"]) == (201, "körper in", "me")
        assert [value for name, value in response.header_lines if name == "set-cookie"] == ["a=1", "b=2"]
        assert [line["message"] for line in (await worker.logs())[0]["logs"]] == ["POST /a%20b"]
        again = await atoll.deploy("echo", 'export default { fetch: () => Response.json({ is: "new" }) }')
        assert again.facts["version"]["number"] == 2
        assert (await worker.fetch()).json() == {"is": "new"}
        await worker.delete()
        gone = await worker.fetch()
        assert gone.status == 404 and "No worker" in gone.text


@pytest.mark.parametrize("size", [100_000, 1_100_000, 5_000_000])
async def test_a_large_script_is_deployed(size: int) -> None:
    """A job process reads large bodies, and the node checks meanwhile if the client disconnects."""
    async with Atoll() as atoll:
        script = f"const TEXT = {'x' * size!r}; export default {{ fetch: () => new Response(String(TEXT.length)) }}"
        worker = await atoll.deploy("large", script)
        assert (await worker.fetch()).text == str(size)


async def test_an_error_of_a_worker_is_a_page_with_its_stack() -> None:
    async with Atoll() as atoll:
        worker = await atoll.deploy("echo", ECHO)
        response = await worker.fetch("/throw")
        assert response.status == 500
        assert "TypeError: on purpose" in response.text and "worker.js:3:" in response.text
        assert (await worker.logs(outcome="exception", limit=1))[0]["exception"]["type"] == "TypeError"


async def test_large_bodies_pass_in_both_directions() -> None:
    async with Atoll() as atoll:
        worker = await atoll.deploy("pipe", "export default { fetch: (request) => new Response(request.body) }")
        body = bytes(range(256)) * 16_384
        assert (await worker.fetch(method="PUT", body=body)).body == body


async def test_a_refused_deploy_has_a_reason() -> None:
    async with Atoll() as atoll:
        with pytest.raises(ApiRefused, match="Unexpected") as error:
            await atoll.deploy("bad", "export default {{")
        assert error.value.status == 422 and error.value.error["line"] == 1
        with pytest.raises(ApiRefused, match="no worker"):
            await atoll.delete("nobody")


async def test_data_survives_until_the_next_start(tmp_path: Path) -> None:
    async with Atoll(tmp_path / "data") as atoll:
        await atoll.deploy("kept", ECHO, env={"WHO": "still me"})
    async with Atoll(tmp_path / "data", engines=2) as atoll:
        response = await atoll.fetch("http://kept.localhost/", headers={"x-in": "!"})
        assert (response.text, response.headers["x-who"]) == ("!", "still me")


async def test_many_requests_at_once() -> None:
    async with Atoll() as atoll:
        worker = await atoll.deploy("echo", ECHO)
        responses = await asyncio.gather(*(worker.fetch(headers={"x-in": str(i)}) for i in range(100)))
        assert [response.text for response in responses] == [str(i) for i in range(100)]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("no address", {}),
        ("http://x.localhost/", {"method": "BAD METHOD"}),
        ("http://x.localhost/", {"headers": {"x": "a\r\nb: c"}}),
        ("http://x.localhost/", {"headers": {"a b": "c"}}),
        ("http://x.localhost/", {"headers": {"x": "\u2603"}}),
        ("http://x.localhost/" + "a" * 20_000, {}),
    ],
)
async def test_an_invalid_request_is_a_value_error(url: str, options: dict[str, object]) -> None:
    async with Atoll() as atoll:
        with pytest.raises(ValueError):
            await atoll.fetch(url, **options)  # type: ignore[arg-type]


async def test_a_bad_setting_is_reported_at_once() -> None:
    with pytest.raises(StartError, match="`engine` is not a setting"):
        Atoll(engine=2)
    with pytest.raises(RuntimeError, match="async with"):
        _ = Atoll().node


async def test_an_embedded_node_can_listen_on_a_port() -> None:
    async with Atoll(port=0) as atoll:
        await atoll.deploy("hello", "export default { fetch: () => new Response('hi') }")
        reader, writer = await asyncio.open_connection("127.0.0.1", atoll.port)
        writer.write(f"GET / HTTP/1.1\r\nHost: hello.localhost:{atoll.port}\r\nConnection: close\r\n\r\n".encode())
        assert (await reader.read()).endswith(b"hi")
        writer.close()


def test_an_embedded_node_runs_on_the_standard_event_loop_and_leaves_no_process(tmp_path: Path) -> None:
    program = """
        import asyncio, os
        from atoll import Atoll

        async def main():
            async with Atoll() as atoll:
                worker = await atoll.deploy("hello", "export default { fetch: () => new Response('hi') }")
                print((await worker.fetch()).text, *atoll.node.supervisor.pids)

        asyncio.run(main())
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    said, *pids = run.stdout.split()
    assert said == "hi" and pids and not any(Path(f"/proc/{pid}").exists() for pid in pids)
