"""Draws docs/images/dev.svg: the output of a real `atoll dev` in a pseudo-terminal, as a picture.

Run `python tools/gen_terminal.py`. It creates a project, calls it, breaks it and corrects it. The colours are those of
the terminal.
"""

from __future__ import annotations

import html
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "dev.svg"
ATOLL = str(Path(sys.executable).parent / "atoll")
SECONDS = 60
COLUMNS = 92
LINE, LETTER, MARGIN, BAR = 19, 8.05, 18, 34
SGR = re.compile(r"\x1b\[([0-9;]*)m")
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


def drawn(text: str) -> str:
    lines = text.strip("\n").split("\n")
    width, height = COLUMNS * LETTER + 2 * MARGIN, BAR + len(lines) * LINE + MARGIN
    rows = "\n".join(
        f'  <text x="{MARGIN}" y="{BAR + (i + 1) * LINE - 5}" xml:space="preserve">{spans(line)}</text>'
        for i, line in enumerate(lines)
        if line
    )
    lights = enumerate(("#f47067", "#daaa3f", "#57ab5a"))
    dots = "".join(f'<circle cx="{20 + 18 * i}" cy="17" r="5.5" fill="{colour}"/>' for i, colour in lights)
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size}>
  <title>atoll dev in a terminal</title>
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
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(drawn(record()), "utf-8")
