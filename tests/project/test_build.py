"""Sources become modules: plain ones unchanged, the rest through the real bundler."""

from __future__ import annotations

import json
import subprocess

import pytest

from atoll.project.build import Builder
from atoll.project.built import BuildFailed, Built
from atoll.project.bundle import deploy_body, read_bundle, write_bundle
from atoll.project.fetch import bundler_version, node_folder
from atoll.project.model import ProjectError
from atoll.project.read import read_project
from atoll.workers import ModuleKind
from tests.project.conftest import ESBUILD, Write

CONFIG = 'name = "a"\nmain = "src/index.ts"\ncompatibility_date = "2025-01-01"\n'


def built(write: Write, **files: str | bytes) -> Built:
    with Builder(read_project(write(**files))) as builder:
        return builder.build()


def evaluated(result: Built, expression: str) -> object:
    """The value of an expression over the default export `worker`, in node."""
    module = result.modules[0].source.decode()
    code = f"const worker = (await import('data:text/javascript,' + encodeURIComponent({json.dumps(module)}))).default;"
    code += f"console.log(JSON.stringify({expression}))"
    command = [str(node_folder() / "bin/node"), "--input-type=module", "-e", code]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_plain_typescript_needs_no_bundler(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOLL_ESBUILD", "/nowhere")
    source = 'import { x } from "./lib/x.ts";\nimport t from "../t.txt";\nexport default { v: x as number, t };\n'
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": source, "src/lib/x.ts": "export const x: number = 1;"})
    write(**{"t.txt": "text"})
    monkeypatch.setenv("ATOLL_ESBUILD", "/nowhere")
    with Builder(read_project(folder)) as builder:
        result = builder.build()
    assert not result.bundled and result.main == "src/index.ts"
    kinds = {module.path: module.kind for module in result.modules}
    assert kinds == {"src/index.ts": ModuleKind.ESM, "src/lib/x.ts": ModuleKind.ESM, "t.txt": ModuleKind.TEXT}
    stripped = {module.path: module.source.decode() for module in result.modules}
    assert stripped["src/lib/x.ts"] == "export const x         = 1;"  # all columns are kept
    assert set(result.inputs) == {folder / "src/index.ts", folder / "src/lib/x.ts", folder / "t.txt"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("enum E { A = 7 }\nexport default { v: E.A }", 7),
        (
            "const h = (tag: any, _: null, ...kids: any[]) => [tag, ...kids];\nexport default { v: <b>x</b> }",
            ["b", "x"],
        ),
        ('import { y } from "./y";\nexport default { v: y }', "y"),
        ('import { z } from "@/z";\nexport default { v: z }', "z"),
        ('import pkg from "pkg";\nexport default { v: pkg() }', "worker"),
        ('import text from "./page.html";\nexport default { v: text }', "<p>"),
        ("export default { v: VERSION + process.env.NODE_ENV }", "1.2production"),
        ('import { inner } from "other";\nexport default { v: inner }', "aliased"),
        ('const { y } = await import("./y");\nexport default { v: y }', "y"),
    ],
)
def test_sources_that_need_a_bundler_are_bundled(write: Write, source: str, expected: object) -> None:
    main = "src/index.tsx" if "<b>" in source else "src/index.ts"
    config = f'name = "a"\nmain = "{main}"\ncompatibility_date = "2025-01-01"\njsx_factory = "h"\n'
    config += '[define]\nVERSION = "\'1.2\'"\n[alias]\nother = "./src/aliased.ts"\n'
    package = {"name": "pkg", "exports": {"workerd": "./worker.js", "default": "./node.js"}}
    result = built(
        write,
        **{
            "atoll.toml": config,
            main: source,
            "src/y.ts": 'export const y = "y";',
            "src/deep/z.ts": 'export const z: string = "z";',
            "src/page.html": "<p>",
            "src/aliased.ts": 'export const inner = "aliased";',
            "tsconfig.json": '{ "compilerOptions": { "paths": { "@/*": ["./src/deep/*"] } } }',
            "node_modules/pkg/package.json": json.dumps(package),
            "node_modules/pkg/worker.js": 'module.exports = () => "worker";',
            "node_modules/pkg/node.js": 'module.exports = () => "node";',
        },
    )
    assert result.bundled
    assert evaluated(result, "worker.v") == expected


def test_commonjs_may_require_built_in_modules(write: Write) -> None:
    result = built(
        write,
        **{
            "atoll.toml": CONFIG,
            "src/index.ts": 'import path from "pkg";\nexport default { v: path.join("a", "b") }',
            "node_modules/pkg/index.js": 'module.exports = require("path");',
        },
    )
    assert evaluated(result, "worker.v") == "a/b"
    mappings = json.loads(result.modules[0].source_map)["mappings"]
    assert mappings.startswith(";;")  # one additional line


def test_wasm_and_data_are_placed_beside_the_bundle(write: Write) -> None:
    config = CONFIG + '[[rules]]\ntype = "Data"\nglobs = ["**/*.dat"]\n'
    source = 'import w from "./a.wasm";\nimport d from "./b.dat";\nexport default { w, d };'
    result = built(
        write, **{"atoll.toml": config, "src/index.ts": source, "src/a.wasm": b"\0asm", "src/b.dat": b"\xff"}
    )
    kinds = [(module.kind, module.source) for module in result.modules[1:]]
    assert kinds == [(ModuleKind.WASM, b"\0asm"), (ModuleKind.DATA, b"\xff")]
    code = result.modules[0].source.decode()
    assert all(f'"./{module.path}"' in code for module in result.modules[1:])
    assert result.modules[2].path.endswith(".dat.bin")


@pytest.mark.parametrize(
    ("files", "text", "place"),
    [
        ({"src/index.ts": "export default {\n  a: = 1,\n};"}, "Expression expected", "src/index.ts:2:6"),
        ({"src/index.ts": 'import "./gone.ts";\n'}, 'Could not resolve "./gone.ts"', "src/index.ts:1:8"),
        ({"src/index.ts": 'import "gone";\n'}, 'Could not resolve "gone"', "src/index.ts:1:8"),
        ({"src/index.ts": 'import "./y";', "src/y.ts": "enum {"}, 'Expected identifier but found "{"', "src/y.ts:1:6"),
    ],
)
def test_an_error_has_its_position_and_the_code_around_it(
    write: Write, files: dict[str, str], text: str, place: str
) -> None:
    with pytest.raises(BuildFailed) as error:
        built(write, **{"atoll.toml": CONFIG, **files})
    assert text in str(error.value) and place in str(error.value)
    line = int(place.split(":")[1])
    assert f"> {line} | " in str(error.value)


def test_a_builder_continues_after_errors_and_dead_helpers(write: Write) -> None:
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": 'import "./y";\nexport default { v: 1 }', "src/y.ts": ""})
    with Builder(read_project(folder)) as builder:
        for i in range(3):
            write(**{"src/y.ts": "enum {"})
            with pytest.raises(BuildFailed):
                builder.build()
            write(**{"src/y.ts": f"globalThis.y = {i};"})
            assert f"globalThis.y = {i}".encode() in builder.build().modules[0].source
        assert builder._plain is not None and builder._bundler is not None
        builder._plain.kill()
        builder._bundler._process.kill()
        builder._bundler._process.wait()
        assert builder.build().bundled
        processes = [builder._plain, builder._bundler._process]
    assert all(process.poll() is not None for process in processes)


def test_the_projects_own_build_step_runs_first(write: Write) -> None:
    config = CONFIG + "[build]\ncommand = \"echo 'export default {}' > src/index.ts\"\n"
    assert built(write, **{"atoll.toml": config, "src/index.ts": ""}).modules[0].source == b"export default {}\n"
    with pytest.raises(ProjectError, match="ended with 3"):
        built(write, **{"atoll.toml": CONFIG + '[build]\ncommand = "echo no; exit 3"\n'})


def test_a_bundle_contains_only_the_build_output(write: Write) -> None:
    folder = write(
        **{"atoll.toml": CONFIG + '[vars]\nA = "1"\n', "src/index.ts": 'import w from "./a.wasm"; enum E {A};'}
    )
    write(**{"src/a.wasm": b"\0asm"})
    project = read_project(folder)
    with Builder(project) as builder:
        result = builder.build()
    manifest = json.loads(write_bundle(project, result, folder / "dist").read_text())
    assert manifest["compatibility_date"] == "2025-01-01"
    body, _ = read_bundle(folder / "dist")
    assert body == deploy_body(project.settings(), result.main, result.modules)
    assert body["source_maps"].keys() == {"index.js"}
    (folder / "dist/modules/index.js").write_text("changed")
    with pytest.raises(ProjectError, match="sha256 differs"):
        read_bundle(folder / "dist")
    with pytest.raises(ProjectError, match="is not a bundle"):
        write_bundle(project, result, folder / "src")


def test_the_pinned_bundler_is_the_one_the_tests_use() -> None:
    version = subprocess.run([ESBUILD, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    assert version == bundler_version()
