"""No regular expression in atoll/ takes more than linear time on text from others.

The test finds every pattern in the source, with the methods that use it. From its parse tree it builds strings that are
bad for a backtracking matcher: a path through the pattern up to each repeat, the repeat many times over, then a
mismatch. A linear pattern takes milliseconds for them, a quadratic one seconds, an exponential one never ends. So each
pattern runs in a process that can be killed.
"""

from __future__ import annotations

import ast
import gc
import multiprocessing
import re
import time
from collections.abc import Iterator
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent / "atoll"
METHODS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
PUMPED = 40_000  # characters of a string: a quadratic pattern takes more than a second
MOST_SECONDS = 0.35  # a linear one takes a few ms; the machine may be busy
PATIENCE = 5.0
ENDINGS = ("", "\x00", "\x00\n", "x", "!", " ", "\n", ")", "1")


class Used(NamedTuple):
    """A pattern, and the methods that use it."""

    where: str
    source: str | bytes
    flags: int
    methods: frozenset[str]


# --- the patterns ---


def used_patterns() -> list[Used]:
    files = {path: path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    texts = "\n".join(files.values())
    found = []
    for path, text in files.items():
        names: dict[ast.Call, str] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                names[node.value] = target.id if isinstance(target, ast.Name) else ""
            elif isinstance(node, ast.Call) and _is_of_re(node):
                pattern = _constant(node.args[0])
                if pattern is None:
                    continue  # built at run time from the node's own texts (config_file.py, process.py, memory.py)
                called = node.func.attr  # type: ignore[attr-defined]
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                methods = {called} if called != "compile" else _methods(names.get(node, ""), text, texts)
                found.append(Used(where, pattern, _flags(node), frozenset(methods)))
    return found


def _is_of_re(node: ast.Call) -> bool:
    func = node.func
    of_re = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "re"
    return of_re and func.attr in METHODS | {"compile"} and bool(node.args)  # type: ignore[attr-defined]


def _constant(node: ast.expr) -> str | bytes | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str | bytes) else None


def _flags(node: ast.Call) -> int:
    flags = 0
    for name in ast.walk(node):
        if isinstance(name, ast.Attribute) and name.attr.isupper() and hasattr(re, name.attr):
            flags |= int(getattr(re, name.attr))
    return flags


def _methods(name: str, here: str, everywhere: str) -> set[str]:
    """The methods of a named pattern, in its own file or in files that import it; all methods if that is unknown."""
    for text in (here, everywhere):
        called = {method for method in METHODS if name and re.search(rf"\b{name}\.{method}\(", text)}
        if called:
            return called
    return {"search", "fullmatch"}


# --- bad strings ---


def bad_strings(used: Used) -> Iterator[str]:
    text = used.source.decode("latin-1") if isinstance(used.source, bytes) else used.source
    tree = _parser.parse(text, used.flags)
    seen = set()
    for prefix, pump in _pumps(list(tree), ""):
        for unit in {pump, pump[:1]} - {""}:
            body = unit * (PUMPED // len(unit))
            for ending in ENDINGS:
                for bad in (prefix + body + ending, (prefix + unit * 3) * (PUMPED // (len(prefix) + 3)) + ending):
                    if bad not in seen:
                        seen.add(bad)
                        yield bad


def _pumps(items: list[Any], prefix: str) -> Iterator[tuple[str, str]]:
    """For each repeat: a path that leads to it, and what it repeats."""
    for op, value in items:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, inner = value
            if most is sre.MAXREPEAT or most > 1_000:
                for unit in _samples(list(inner)):
                    yield prefix, unit
            yield from _pumps(list(inner), prefix)
        elif op is sre.SUBPATTERN:
            yield from _pumps(list(value[-1]), prefix)
        elif op is sre.ATOMIC_GROUP:
            yield from _pumps(list(value), prefix)
        elif op is sre.BRANCH:
            for branch in value[1]:
                yield from _pumps(list(branch), prefix)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _pumps(list(value[1]), prefix)
        prefix += _sample([(op, value)])


def _samples(items: list[Any]) -> set[str]:
    """Some texts that the items match: each alternative of a branch, each kind of character of a set."""
    found = {_sample(items)}
    if len(items) == 1:
        op, value = items[0]
        if op is sre.BRANCH:
            found |= {_sample(list(branch)) for branch in value[1]}
        elif op is sre.SUBPATTERN:
            found |= _samples(list(value[-1]))
        elif op is sre.IN:
            found |= {letter for letter in ' \t\n\r:()/*."\\aA0-_;,' if _fits(value, letter)}
        elif op in (sre.ANY, sre.NOT_LITERAL):
            found |= set(' a(:)"')
    return found


def _sample(items: list[Any]) -> str:
    made = ""
    for op, value in items:
        if op is sre.LITERAL:
            made += chr(value)
        elif op is sre.IN:
            made += next(
                (letter for letter in 'a0 \n\r\t"./:*-_(' + "".join(map(chr, range(256))) if _fits(value, letter)), ""
            )
        elif op is sre.NOT_LITERAL:
            made += "a" if value != ord("a") else "b"
        elif op is sre.ANY:
            made += "a"
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            made += _sample(list(value[2])) * max(value[0], 1)
        elif op is sre.SUBPATTERN:
            made += _sample(list(value[-1]))
        elif op is sre.ATOMIC_GROUP:
            made += _sample(list(value))
        elif op is sre.BRANCH:
            made += _sample(list(value[1][0]))
    return made


def _fits(members: list[Any], letter: str) -> bool:
    code, is_in, negate = ord(letter), False, False
    for op, value in members:
        if op is sre.NEGATE:
            negate = True
        elif op is sre.LITERAL:
            is_in |= code == value
        elif op is sre.RANGE:
            is_in |= value[0] <= code <= value[1]
        elif op is sre.CATEGORY:
            is_in |= _is_of(str(value).lower(), letter)
    return is_in != negate


def _is_of(category: str, letter: str) -> bool:
    known = {"digit": letter.isdigit(), "space": letter.isspace(), "word": letter.isalnum() or letter == "_"}
    [found] = [value for name, value in known.items() if name in category]
    return found != ("_not_" in category)


# --- measurements ---


def _try(used: Used, results: Any) -> None:
    gc.disable()  # thousands of matches would make it walk the whole heap of the test process
    results.put(slowest(used))


def slowest(used: Used) -> tuple[float, str]:
    pattern = re.compile(used.source, used.flags)
    worst = (0.0, "")
    for bad in bad_strings(used):
        subject: Any = bad.encode("latin-1", "replace") if isinstance(used.source, bytes) else bad
        for method in used.methods:
            began = time.process_time()
            if method in ("sub", "subn"):
                pattern.sub(lambda match: match[0][:0], subject)
            elif method == "finditer":
                list(pattern.finditer(subject))
            else:
                getattr(pattern, method)(subject)
            took = time.process_time() - began
            if took > worst[0]:
                worst = (took, f"{method} of {subject[:60]!r}…{subject[-5:]!r}")
            if took > MOST_SECONDS:
                return worst
    return worst


def seconds_in_a_process(used: Used) -> tuple[float, str]:
    """The worst time, in a process that can be killed: nothing else interrupts a pattern."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_try, args=(used, results), daemon=True)
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        return PATIENCE, "it did not end"
    return results.get()


@pytest.mark.parametrize("used", used_patterns(), ids=lambda used: used.where)
def test_a_pattern_takes_linear_time(used: Used) -> None:
    seconds, text = seconds_in_a_process(used)
    assert seconds <= MOST_SECONDS, f"{used.where}: {used.source!r} takes {seconds:.1f} s: {text}"


@pytest.mark.parametrize(
    "source",
    [r"(?m)^(\s+at )x$", r"[ \t]*\r\n[ \t]+", r"(?:a+: ?[^\n]*\n)*", r"/\*.*?\*/", r"(a|b|ab)*c"],
)
def test_the_generated_strings_detect_slow_patterns(source: str) -> None:
    seconds, _ = seconds_in_a_process(Used("", source, 0, frozenset({"search", "fullmatch"})))
    assert seconds > MOST_SECONDS
