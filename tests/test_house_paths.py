"""Every file that a comment, a docstring or a document of this repository names exists.

Names that belong to something else (a user's project, the kernel's headers) are in `ELSEWHERE`, each with its owner.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = (".cc", ".h", ".js", ".mjs", ".cjs")
NAMED = re.compile(
    r"(?<![\w./@*<>{}$~-])"  # not the end of a longer path, a pattern or an address
    r"((?:\.{1,2}/)*(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:py|cc|h|js|mjs|cjs|md|toml))"
    r"(?![\w/*-])"
)
COMMENT = re.compile(r"(?:^|\s)(?://|/?\*(?!/))(.*)")
INLINE = re.compile(r"`([^`]+)`")
NOT_OURS = ("tests/wpt/",)  # vendored

ELSEWHERE: dict[str, str] = {
    "linux/capability.h": "the kernel",
    "linux/landlock.h": "the kernel",
    "linux/mount.h": "the kernel",
    "linux/prctl.h": "the kernel",
    "linux/sched.h": "the kernel",
    "malloc.h": "glibc",
    "idlharness.js": "web-platform-tests",
    "testharness.js": "web-platform-tests",
    "sitecustomize.py": "Python reads it from any folder of its path",
    "a/wrangler.toml": "users' projects",
    "b/wrangler.toml": "users' projects",
    "auth/wrangler.toml": "users' projects",
    "shop/wrangler.toml": "users' projects",
    "./x.js": "users' projects: an import",
    "a/b.js": "users' projects: an import",
    "../c.js": "users' projects: an import",
    "c.js": "users' projects: an import",
    "node/x.js": "stands for any file of web/node",
    "tests/e2e/packages/NAME.js": "stands for any file of that folder",
}


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


FILES = tracked()
ENDINGS = {"/".join(PurePosixPath(name).parts[start:]) for name in FILES for start in range(name.count("/") + 1)}


def prose_of(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Comments and docstrings of code, and code in documents outside examples; each with its line."""
    if name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
    elif name.endswith(CODE):
        for number, line in enumerate(text.splitlines(), 1):
            if (found := COMMENT.search(line)) is not None:
                yield number, found[1]
    elif name.endswith(".md"):
        is_example = False
        for number, line in enumerate(text.splitlines(), 1):
            is_example ^= line.lstrip().startswith("```")
            yield from ((number, inline) for inline in INLINE.findall(line) if not is_example)


def is_there(path: str, name: str) -> bool:
    """A path may start at the root, at any folder, or with ./ at the folder of the file that names it."""
    if path.startswith("."):
        return (ROOT / name).parent.joinpath(path).is_file()
    return path in ENDINGS


def wrong_in(name: str, text: str) -> list[str]:
    return [
        f"{name}:{line} names {path}"
        for line, prose in prose_of(name, text)
        for path in NAMED.findall(prose)
        if path not in ELSEWHERE and not is_there(path, name)
    ]


def test_every_named_file_exists() -> None:
    wrong = []
    for name in FILES:
        if name.endswith((".py", ".md", *CODE)) and not name.startswith(NOT_OURS):
            wrong += wrong_in(name, (ROOT / name).read_text("utf-8"))
    assert not wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.py", "# as wire/gone.py has it"),
        ("x.py", '"""See docs/gone.md."""'),
        ("x.py", 'def f():\n    """Like gone.py."""'),
        ("x.cc", "int a;  // engine/src/gone.cc"),
        ("web/x.js", "/**\n * see ./gone.js\n */"),
        ("x.md", "Both ends: `atoll/wire/codec.py` and `engine/src/gone.cc`."),
    ],
)
def test_a_missing_file_is_detected(name: str, text: str) -> None:
    assert len(wrong_in(name, text)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.py", "# the reader is atoll/project/read.py, see project/read.py or read.py; its pages are docs/*.md"),
        ("x.py", 'value = "gone.py"'),
        ("x.md", "```toml\nmain = 'src/gone.js'\n```\nand https://a.example/gone.js"),
        ("web/globals.js", "// ./timers.js"),
    ],
)
def test_nothing_else_is_mistaken_for_a_file(name: str, text: str) -> None:
    assert wrong_in(name, text) == []


def test_every_exception_is_needed() -> None:
    texts = "\n".join((ROOT / name).read_text("utf-8") for name in FILES if name.endswith((".py", ".md", *CODE)))
    own = Path(__file__).read_text("utf-8")
    assert [path for path in ELSEWHERE if texts.replace(own, "").count(path) == 0 or path in ENDINGS] == []
