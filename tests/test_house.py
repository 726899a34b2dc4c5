"""House rules that a machine can check: size, layers, names, and fresh generated files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import atoll
from tools.gen_wire import outputs

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("atoll", "bench", "engine", "examples", "tests", "tools", "web")
SOURCES = (".py", ".cc", ".h", ".js", ".cjs", ".mjs")
MAX_LINES = 400
MAX_FUNCTION = 60  # lines of one function: one screen

# Files that may be longer, each with its reason. Two at most: a third means that a file should be split.
LONG_FILES: dict[str, str] = {}

# From the top down: a room imports only from lower layers. Rooms of one layer do not know each other, except in the
# last layer, which has plain facts that everyone shares.
LAYERS: list[set[str]] = [
    {"cli", "testing"},
    {"serving", "embed"},
    {"handover"},
    {"app", "project"},
    {"control", "front"},
    {"observe"},
    {"router", "engine"},
    {"broker"},
    {"bindings"},
    {"api"},
    {"egress", "asset_files", "objects", "cluster"},
    {"postgres"},
    {"db", "offload"},
    {
        "claims",
        "client_headers",
        "clock",
        "config",
        "config_file",
        "config_loading",
        "config_values",
        "errors",
        "holdings",
        "logs",
    }
    | {
        "assets",
        "manifests",
        "nesting",
        "node_log",
        "pacer",
        "paths",
        "pauses",
        "plain",
        "public_address",
        "redact",
        "splits",
        "tallies",
        "trace_items",
        "tracing",
    }
    | {"warm_files", "wire", "workers"},
]
LAYER_OF = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}

UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
DEBUG_PRINT = {
    ".js": re.compile(r"\bdebugger\b|\bconsole\.(log|debug|trace)\("),
    ".cc": re.compile(r"std::(cout|cerr|clog)\b|(?<![a-z_])printf\("),
    ".h": re.compile(r"std::(cout|cerr|clog)\b|(?<![a-z_])printf\("),
}
EMPTY_NAME = re.compile(r"(Manager|Helper|Helpers|Utils|Util)$")
BACKENDS = [
    *(ROOT / "atoll/bindings").glob("*/sqlite.py"),
    *(ROOT / "atoll/bindings").glob("*/memory.py"),
    ROOT / "atoll/bindings/cache/disk.py",
    ROOT / "atoll/bindings/cron/sqlite.py",
]
OP_IN_PYTHON = re.compile(r'@op\("([^"]+)"')
OP_IN_JS = re.compile(r'defineOp\("([\w.]+)"[,)]')


def sources(*rooms: str, suffixes: tuple[str, ...] = SOURCES) -> Iterator[Path]:
    for room in rooms or ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "node_modules" not in path.parts:
                yield path


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def python_trees(*rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sources(*rooms, suffixes=(".py",)):
        yield path, ast.parse(path.read_text("utf-8"), str(path))


def test_files_stay_under_400_lines() -> None:
    long = {
        named(path): lines for path in sources() if (lines := len(path.read_text("utf-8").splitlines())) > MAX_LINES
    }
    assert not {name: lines for name, lines in long.items() if name not in LONG_FILES}
    assert set(LONG_FILES) <= set(long), "remove this exception: it is not needed"
    assert len(LONG_FILES) <= 2


def test_functions_fit_on_one_screen() -> None:
    long = {
        f"{named(path)}:{node.lineno} {node.name}": length
        for path, tree in python_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION
    }
    assert not long


def room_of(parts: tuple[str, ...]) -> str:
    """The commands of a binding are in its folder but belong to the command line."""
    if parts[:1] == ("bindings",) and parts[-1] == "cli.py":
        return "cli"
    return parts[0].removesuffix(".py") if parts else ""


def imports_of(path: Path) -> set[str]:
    """The modules that a file imports, by their full names."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def imported_rooms(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The rooms of `atoll` that a file imports, anywhere in the file."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "atoll":
            names = [f"atoll.{alias.name}" for alias in node.names if not alias.name.startswith("__")]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if isinstance(node, ast.stmt):
            yield from ((node.lineno, name.split(".")[1]) for name in names if name.startswith("atoll."))


def test_every_room_has_a_layer() -> None:
    rooms = {room_of(path.relative_to(ROOT / "atoll").parts) for path in sources("atoll", suffixes=(".py",))}
    assert rooms - {"__init__", "__main__"} <= set(LAYER_OF), "add the new room to LAYERS"


def test_the_architecture_lists_the_rooms_in_the_order_of_their_layers() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("The rooms of `atoll/`")[2].partition("\n\n|")[2]
    listed = [
        set(re.findall(r"`([a-z_]+)(?:/|\.py)`", line.split("|")[1]))
        for line in table.partition("\n\n")[0].splitlines()[2:]
    ]
    assert listed[:-1] == LAYERS[:-1]
    assert listed[-1] <= LAYERS[-1]


def test_the_architecture_is_a_map_and_names_every_decision() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert len(text.splitlines()) <= 200, "move reasons to a file in docs/decisions"
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert len(set(numbers)) == len(numbers), "two decisions have one number"
    for path in decisions:
        page = path.read_text("utf-8")
        assert f"(docs/decisions/{path.name})" in text, f"name {path.name} in ARCHITECTURE.md"
        assert page.startswith(f"# {path.name[:4]}. ")
        for heading in ("Context", "Decision", "Consequences", "What would change it"):
            assert f"\n## {heading}\n" in page, f"{path.name} lacks its {heading}"


def test_imports_go_down_only() -> None:
    wrong = []
    for path, tree in python_trees("atoll"):
        room = room_of(path.relative_to(ROOT / "atoll").parts)
        for line, other in imported_rooms(tree):
            if room == other or room not in LAYER_OF:
                continue
            down = LAYER_OF[other] > LAYER_OF[room]
            if not down and not (LAYER_OF[room] == LAYER_OF[other] == len(LAYERS) - 1):
                wrong.append(f"{named(path)}:{line} imports {other}")
    assert not wrong


def test_no_two_test_files_have_the_same_name() -> None:
    names = [path.name for path in sources("tests", suffixes=(".py",)) if path.name.startswith("test_")]
    assert not {name for name in names if names.count(name) > 1}, "pytest imports test files by name alone"


def test_generated_files_match_the_wire_definition() -> None:
    stale = [named(path) for path, text in outputs().items() if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, "run `make wire`"


def test_bindings_and_triggers_use_stores_only_through_their_protocol() -> None:
    """Another backend is a file beside store.py: only the lists that create objects may name one."""
    backends = {f"atoll.{named(p)[6:-3].replace('/', '.')}" for p in BACKENDS}
    makers = {"atoll/app.py"}
    strays = [
        f"{named(path)}: {module}"
        for path in sources("atoll", suffixes=(".py",))
        if named(path) not in makers and path.name not in ("manifest.py", "moving.py")  # which copies rows of both
        for module in imports_of(path)
        if module in backends
    ]
    assert len(backends) >= 5 and not strays
    for protocol in [*(ROOT / "atoll/bindings").glob("*/store.py"), ROOT / "atoll/bindings/cron/history.py"]:
        assert not {module for module in imports_of(protocol) if module.split(".")[0] == "apsw" or ".db" in module}


def test_both_halves_of_a_binding_name_the_same_ops() -> None:
    folders = [path.parent for path in (ROOT / "atoll/bindings").glob("*/ops.py")]
    assert folders
    for folder in folders:
        in_python = set(OP_IN_PYTHON.findall((folder / "ops.py").read_text("utf-8")))
        in_javascript = set(OP_IN_JS.findall("".join(file.read_text("utf-8") for file in sorted(folder.glob("*.js")))))
        assert in_python == in_javascript, folder.name
        assert all(name.startswith(f"{folder.name}.") for name in in_python), folder.name


def test_every_python_file_has_a_docstring() -> None:
    silent = [named(path) for path, tree in python_trees() if tree.body and ast.get_docstring(tree) is None]
    assert not silent


def test_nothing_is_left_unfinished() -> None:
    left = [
        f"{named(path)}:{number}"
        for path in sources()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not left


def test_no_debug_print_is_left() -> None:
    left = [
        f"{named(path)}:{number}"
        for path in sources("atoll", "engine/src", "web")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if path.suffix in DEBUG_PRINT and not line.lstrip().startswith("//") and DEBUG_PRINT[path.suffix].search(line)
    ]
    assert not left  # ruff finds print() in Python


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest identifies a file by its name alone and refuses to run the second."""
    names = [path.name for path in sources("tests", suffixes=(".py",)) if path.name.startswith("test_")]
    assert not {name for name in names if names.count(name) > 1}


def test_names_say_what_a_thing_is() -> None:
    classes = [
        f"{named(path)}:{node.lineno} {node.name}"
        for path, tree in python_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and EMPTY_NAME.search(node.name)
    ]
    files = [named(path) for path in sources() if path.stem in {"utils", "util", "helpers", "helper", "common", "misc"}]
    assert not classes + files


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == atoll.__version__
    released = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released[0] == "Unreleased"
    assert released[1:2] in ([], [atoll.__version__])
