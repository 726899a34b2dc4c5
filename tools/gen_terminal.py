"""Draws docs/images/dev.svg and top.svg: the output of real commands in a pseudo-terminal, as pictures.

Run `python -m tools.gen_terminal [dev] [top]`. For `atoll dev` it creates a project, breaks it and corrects it;
for `atoll top` it starts a node whose workers get calls. The colours are those of the terminal.
"""

from __future__ import annotations

import html
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "images"
ATOLL = str(Path(sys.executable).parent / "atoll")
SECONDS = 60
COLUMNS, TOP_COLUMNS, TOP_LINES = 92, 116, 12
LINE, LETTER, MARGIN, BAR = 19, 8.05, 18, 34
SGR = re.compile(r"\x1b\[([0-9;]*)m")
SCREEN = re.compile(r"\x1b\[\??\d*[A-KS-Zhl]")  # moves of the cursor and the like
SHOP = {  # tenant, worker: its code, and how often it is called
    ("acme", "shop"): ("for (let i = 0; i < 3e5; i++); return new Response('ok');", 6),
    ("acme", "cart"): ("if (Math.random() < 0.05) throw new Error('sold out'); return new Response('ok');", 3),
    ("acme", "search"): ("await scheduler.wait(40); return new Response('ok');", 8),
    ("north", "blog"): ("return new Response('ok');", 4),
    ("north", "images"): ("globalThis.kept ??= new Uint8Array(2e7).fill(1); return new Response('ok');", 1),
}
COLOURS = {31: "#f47067", 32: "#57ab5a", 33: "#daaa3f", 36: "#39c5cf", 90: "#768390"}


def record() -> str:
    """The terminal output while the worker is called, broken and corrected."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "hello"
        env = {**os.environ, "HOME": home, "TERM": "xterm-256color"}
        subprocess.run([ATOLL, "init", "typescript", str(folder)], env=env, check=True, capture_output=True)
        main, child = pty.openpty()
        process = subprocess.Popen(
            [ATOLL, "dev"], cwd=folder, env=env, stdin=child, stdout=child, stderr=child, start_new_session=True
        )
        os.close(child)
        said = f"\x1b[1m~/hello $\x1b[0m atoll dev\n{wait(main, 'q quit')}"
        url = re.search(r"http://localhost:\d+/", SGR.sub("", said))
        assert url is not None
        source = folder / "src" / "greet.ts"
        good = source.read_text()
        ask(url[0] + "?name=Ada")
        said += wait(main, "warm")
        source.write_text(good.replace("return", "return greeting.shout() +"))
        said += wait(main, "reloaded")
        ask(url[0] + "?name=Ada")
        said += wait(main, r"3 \| }")
        source.write_text(good)
        said += wait(main, "reloaded")
        ask(url[0] + "?name=Ada")
        said += wait(main, "warm")
        os.write(main, b"q")
        process.wait(SECONDS)
        os.close(main)
        return said


def record_top() -> str:
    """The screen of `atoll top` at a node that is used."""
    with tempfile.TemporaryDirectory() as home:
        serve = [ATOLL, "serve", "--port", "0", "--data", f"{home}/data", "--engines", "2", "--json"]
        node = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        is_over = threading.Event()
        callers: list[threading.Thread] = []
        try:
            assert node.stdout is not None
            port = json.loads(node.stdout.readline())["port"]
            for (tenant, name), (code, count) in SHOP.items():
                with suppress(urllib.error.HTTPError):  # it is there already
                    send(port, "/api/tenants", {"name": tenant})
                script = f"export default {{ async fetch() {{ {code} }} }}"
                send(port, "/api/workers", {"name": name, "script": script}, tenant)
                callers += [threading.Thread(target=call, args=(port, name, is_over)) for _ in range(count)]
            for caller in callers:
                caller.start()
            main, child = pty.openpty()
            env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(TOP_COLUMNS), "LINES": str(TOP_LINES)}
            process = subprocess.Popen(
                [ATOLL, "top", "--api", f"http://localhost:{port}"], env=env, stdin=child, stdout=child, stderr=child
            )
            os.close(child)
            wait(main, r"shop[^\n]*\d%(?s:.)*search[^\n]*\d%")
            said = wait(main, r"(?s:q quit.*){3}search").rsplit("\x1b[H", 2)[1]
            os.write(main, b"q")
            process.wait(SECONDS)
            os.close(main)
        finally:
            is_over.set()
            for caller in callers:
                caller.join()
            node.terminate()
            node.wait()
        return SCREEN.sub("", said)


def send(port: int, path: str, body: object, tenant: str = "") -> None:
    headers = {"content-type": "application/json", **({"x-atoll-tenant": tenant} if tenant else {})}
    request = urllib.request.Request(f"http://localhost:{port}{path}", json.dumps(body).encode(), headers)
    urllib.request.urlopen(request, timeout=SECONDS).close()


def call(port: int, name: str, is_over: threading.Event) -> None:
    while not is_over.wait(0.02):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"host": f"{name}.localhost"})
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=SECONDS).close()


def ask(url: str) -> None:
    try:
        urllib.request.urlopen(url, timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()


def wait(terminal: int, pattern: str) -> str:
    said, deadline = "", time.monotonic() + SECONDS
    while not re.search(pattern + r".*\n", SGR.sub("", said)):
        if time.monotonic() > deadline:
            raise SystemExit(f"waited too long for {pattern}:\n{said}")
        if select.select([terminal], [], [], 0.2)[0]:
            said += os.read(terminal, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
    return said


def drawn(text: str, command: str, columns: int) -> str:
    lines = text.strip("\n").split("\n")
    width, height = columns * LETTER + 2 * MARGIN, BAR + len(lines) * LINE + MARGIN
    rows = "\n".join(
        f'  <text x="{MARGIN}" y="{BAR + (i + 1) * LINE - 5}" xml:space="preserve">{spans(line)}</text>'
        for i, line in enumerate(lines)
        if line
    )
    lights = enumerate(("#f47067", "#daaa3f", "#57ab5a"))
    dots = "".join(f'<circle cx="{20 + 18 * i}" cy="17" r="5.5" fill="{colour}"/>' for i, colour in lights)
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size}>
  <title>{command} in a terminal</title>
  <rect width="100%" height="100%" rx="9" fill="#1c2128"/>
  {dots}
  <g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13.4" fill="#cdd9e5">
{rows}
  </g>
</svg>
"""


def spans(line: str) -> str:
    """A line as pieces of one style each."""
    out, style, at = [], dict[str, str](), 0
    for code in [*SGR.finditer(line), None]:
        piece = line[at : code.start() if code is not None else len(line)]
        if piece:
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            out.append(f"<tspan{attributes}>{html.escape(piece)}</tspan>" if attributes else html.escape(piece))
        if code is None:
            break
        at = code.end()
        for number in map(int, filter(None, code[1].split(";"))) if code[1] else [0]:
            if number == 0:
                style.clear()
            elif number == 1:
                style["font-weight"] = "bold"
            elif number == 2:
                style["opacity"] = "0.6"
            elif number in COLOURS:
                style["fill"] = COLOURS[number]
    return "".join(out)


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    if "dev" in sys.argv or len(sys.argv) == 1:
        (PICTURES / "dev.svg").write_text(drawn(record(), "atoll dev", COLUMNS), "utf-8")
    if "top" in sys.argv or len(sys.argv) == 1:
        (PICTURES / "top.svg").write_text(drawn(record_top(), "atoll top", TOP_COLUMNS), "utf-8")
