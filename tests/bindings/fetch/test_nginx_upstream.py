"""fetch() to a real nginx."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.debian import require
from tests.running import Answer, Atoll, free_port

Run = Callable[..., Answer]
SIZE = 64 << 20


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require("nginx-light", "nginx")
    folder, port = tmp_path_factory.mktemp("upstream"), free_port()
    os.chmod(folder, 0o755)
    (folder / "text.html").write_text("some text " * 1000)
    with (folder / "large").open("wb") as file:
        file.truncate(SIZE)
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}"
        f"http {{ access_log off; sendfile on; gzip on; gzip_min_length 1; gzip_proxied any; {paths}"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; keepalive_requests 3; client_max_body_size 1k;"
        "location = /echo { return 200 $request_method$http_host; } location = /old { return 301 /text.html; } } }"
    )
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    Atoll.wait_until(lambda: Path(folder / "pid").exists())
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def test_text_in_gzip_redirects_and_ranges(run: Run, nginx: str) -> None:
    answer = run(f"""const r = await fetch("{nginx}/old"); const text = await r.text();
      const part = await fetch("{nginx}/text.html", {{ headers: {{ range: "bytes=5-8" }} }});
      return Response.json([r.redirected, r.url, text.length, part.status, await part.text(), part.headers.get("content-range")])""")
    assert answer.json == [True, f"{nginx}/text.html", 10_000, 206, "text", "bytes 5-8/10000"]


def test_a_body_encoded_by_nginx_passes_unchanged(run: Run, nginx: str) -> None:
    answer = run(f'return fetch("{nginx}/text.html", request)', headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == b"some text " * 1000


def test_connections_that_nginx_closes_cause_no_error(run: Run, nginx: str) -> None:
    answer = run(f"""let all = 0; for (let i = 0; i < 5; i++) {{
      const answers = await Promise.all(Array.from({{ length: 8 }}, async () => (await fetch("{nginx}/echo")).text()));
      all += answers.filter((text) => text.startsWith("GET127.0.0.1")).length; }} return new Response(all)""")
    assert answer.text == "40"


def test_an_early_answer_of_nginx_is_accepted(run: Run, nginx: str) -> None:
    answer = run(f"""const body = new ReadableStream({{ pull(c) {{ c.enqueue(new Uint8Array(65536)) }} }});
      const r = await fetch("{nginx}/text.html", {{ method: "PUT", body, duplex: "half" }}); return new Response(r.status)""")
    assert answer.text == "405"


def test_a_large_file_passes_through_with_flat_memory(node: Atoll, run: Run, nginx: str) -> None:
    assert len(run(f'return fetch("{nginx}/text.html")').body) == 10_000
    before = node.memory_mb()
    answer = run(f'return fetch("{nginx}/large")')
    assert len(answer.body) == SIZE and int(answer.headers["content-length"]) == SIZE
    assert node.memory_mb() < before + 20
