"""Which files a build accepts and refuses: the real location of a file counts, not its links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.model import ProjectError
from atoll.project.read import read_project
from tests.project.conftest import Write

CONFIG = 'name = "a"\nmain = "src/index.ts"\ncompatibility_date = "2026-01-01"\n'
USES = "export default { fetch: () => new Response(String(it)) };\n"
SECRET = "AKIA-SECRET"
BUNDLED = "enum Kind { A }\nconsole.log(Kind.A);\n"  # plain TypeScript has no enum, so the bundler is needed


def built(folder: Path, *, root: Path | None = None) -> Built:
    project = read_project(folder)
    project.root = root
    with Builder(project) as builder:
        return builder.build()


def text_of(result: Built) -> str:
    return "\n".join(module.source.decode("utf-8", "replace") for module in result.modules)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("key.txt", "key.bin", "key.odd", "key.pem"):
        (folder / name).write_text(SECRET)
    (folder / "key.js").write_text(f'export default "{SECRET}";')
    (folder / "key.ts").write_text(f'const key: string = "{SECRET}"; export default key;')
    (folder / "key.json").write_text(f'{{"key":"{SECRET}"}}')
    (folder / "key.wasm").write_bytes(b"\0asm\1\0\0\0")
    (folder / "package.json").write_text('{"name":"home","main":"key.js"}')
    return folder


@pytest.mark.parametrize("is_bundled", [False, True], ids=["plain", "bundled"])
@pytest.mark.parametrize("is_repository", [False, True], ids=["folder", "repository"])
@pytest.mark.parametrize("name", ["key.txt", "key.bin", "key.js", "key.ts", "key.json", "key.wasm"])
def test_a_link_out_of_the_project_is_refused(
    write: Write, outside: Path, name: str, is_repository: bool, is_bundled: bool
) -> None:
    source = f'import it from "./{name}";\n' + (BUNDLED if is_bundled else "") + USES
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": source})
    if is_repository:
        (folder / ".git").mkdir()
    (folder / "src" / name).symlink_to(outside / name)
    with pytest.raises(ProjectError, match="leads out of the project, to ") as refused:
        built(folder)
    assert str(outside / name) in str(refused.value) and SECRET not in str(refused.value)
    assert "--root DIR" in refused.value.hint
    assert SECRET in text_of(built(folder, root=folder.parent)) or name == "key.wasm"  # an explicit root allows it


@pytest.mark.parametrize("is_bundled", [False, True], ids=["plain", "bundled"])
def test_a_linked_folder_and_a_chain_of_links_are_refused(write: Write, outside: Path, is_bundled: bool) -> None:
    more = BUNDLED if is_bundled else ""
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": f'import it from "./lib/key.js";\n{more}{USES}'})
    (folder / "src/lib").symlink_to(outside)
    with pytest.raises(ProjectError, match="leads out of the project"):
        built(folder)
    (folder / "src/lib").unlink()
    (folder / "src/lib").mkdir()
    (folder / "src/lib/key.js").symlink_to("../hop.js")
    (folder / "src/hop.js").symlink_to(os.path.relpath(outside / "key.js", folder / "src"))
    with pytest.raises(ProjectError, match="leads out of the project"):
        built(folder)


def test_a_file_that_a_rule_makes_text_is_refused_too(write: Write, outside: Path) -> None:
    rules = 'rules = [{ type = "Text", globs = ["**/*.odd"] }]\n'
    folder = write(**{"atoll.toml": CONFIG + rules, "src/index.ts": f'import it from "./key.odd";\n{USES}'})
    (folder / "src/key.odd").symlink_to(outside / "key.odd")
    with pytest.raises(ProjectError, match=r'"\./key\.odd" in src/index\.ts leads out of the project'):
        built(folder)


def test_a_main_module_and_a_tsconfig_that_are_links_are_refused_too(write: Write, outside: Path) -> None:
    folder = write(**{"atoll.toml": CONFIG, "src/other.ts": ""})
    (folder / "src/index.ts").symlink_to(outside / "key.ts")
    with pytest.raises(ProjectError, match=r"src/index\.ts leads out of the project"):
        built(folder)
    (folder / "src/index.ts").unlink()
    (outside / "base.json").write_text('{"compilerOptions":{"jsxFactory":"h"}}')
    write(**{"src/index.ts": BUNDLED + "const it = 1;\n" + USES, "tsconfig.json": '{"extends":"./base"}'})
    (folder / "base.json").symlink_to(outside / "base.json")
    with pytest.raises(ProjectError, match=r"base\.json leads out of the project"):
        built(folder)


def test_links_within_the_project_and_into_its_repository_are_followed(write: Write) -> None:
    files = {"pnpm-workspace.yaml": "", "packages/lib/lib.ts": "export default 42;", "packages/app/atoll.toml": CONFIG}
    files["packages/app/src/index.ts"] = f'import it from "./lib.ts";\n{USES}'
    folder = write(**files) / "packages/app"
    (folder / "src/lib.ts").symlink_to("../../lib/lib.ts")
    assert "42" in text_of(built(folder))


def test_packages_linked_by_package_managers_are_accepted(write: Write, tmp_path: Path) -> None:
    """pnpm: a link to node_modules/.pnpm. Workspaces: a link into the repository. A shared store: a link elsewhere."""
    stored = "node_modules/.pnpm/left@1/node_modules/left"
    names = ("left", "@team/tools", "shared")
    imports = "".join(f'import it{i} from "{name}"; console.log(it{i});\n' for i, name in enumerate(names))
    folder = write(
        **{
            "package.json": '{"workspaces":["packages/*"]}',
            f"{stored}/package.json": '{"name":"left","main":"i.js"}',
            f"{stored}/i.js": "module.exports = require('./more') + 'left';",
            f"{stored}/more.js": "module.exports = 'more';",
            "packages/tools/package.json": '{"name":"@team/tools","main":"t.ts"}',
            "packages/tools/t.ts": "export default 'tools' as string;",
            "packages/app/atoll.toml": CONFIG,
            "packages/app/src/index.ts": imports + "const it = 1;\n" + USES,
        }
    )
    store = tmp_path / "store/links/shared/1/node_modules/shared"
    store.mkdir(parents=True)
    (store / "package.json").write_text('{"name":"shared","main":"s.js"}')
    (store / "s.js").write_text("export { default } from './deep.js'")
    (store / "deep.js").write_text("export default 'of the store'")
    modules = folder / "packages/app/node_modules"
    (modules / "@team").mkdir(parents=True)
    (modules / "left").symlink_to("../../../" + stored)
    (modules / "@team/tools").symlink_to("../../../tools")
    (modules / "shared").symlink_to(store)
    text = text_of(built(folder / "packages/app"))
    assert all(word in text for word in ("left", "tools", "of the store"))


def test_a_package_that_is_a_link_to_somewhere_else_is_refused(write: Write, outside: Path) -> None:
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": f'import it from "home";\n{USES}'})
    (folder / "node_modules").mkdir()
    (folder / "node_modules/home").symlink_to(outside)
    with pytest.raises(ProjectError, match=r'"home" in src/index\.ts leads out of the project'):
        built(folder)
    assert SECRET in text_of(built(folder, root=folder.parent))  # as with `npm link`
    (folder / "node_modules/home").unlink()
    (folder / "node_modules").rmdir()
    (folder / "node_modules").symlink_to(outside.parent)
    with pytest.raises(ProjectError, match="leads out of the project"):
        built(folder)


def test_a_link_into_the_packages_of_another_project_is_refused(write: Write, outside: Path) -> None:
    other = outside / "node_modules/private"
    other.mkdir(parents=True)
    (other / "key.js").write_text(f'export default "{SECRET}";')
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": f'import it from "./key.js";\n{BUNDLED}{USES}'})
    (folder / "src/key.js").symlink_to(other / "key.js")
    with pytest.raises(ProjectError, match="leads out of the project"):
        built(folder)


@pytest.mark.parametrize("is_bundled", [False, True], ids=["plain", "bundled"])
def test_a_relative_import_may_leave_a_folder_but_not_a_repository(
    write: Write, outside: Path, is_bundled: bool
) -> None:
    more = BUNDLED if is_bundled else ""
    source = f'import it from "../../home/key.js";\n{more}{USES}'
    folder = write(**{"atoll.toml": CONFIG, "src/index.ts": source})
    assert SECRET in text_of(built(folder))
    (folder / ".git").mkdir()
    with pytest.raises(ProjectError, match="leads out of the project"):
        built(folder)


def test_a_project_in_a_linked_folder_builds(write: Write, tmp_path: Path) -> None:
    folder = write(
        **{"atoll.toml": CONFIG, "src/index.ts": f'import it from "./x.ts";\n{USES}', "src/x.ts": "export default 42;"}
    )
    (tmp_path / "linked").symlink_to(folder)
    assert "42" in text_of(built(tmp_path / "linked"))
    write(**{"src/index.ts": f'import it from "./x.ts";\n{BUNDLED}{USES}'})
    assert "42" in text_of(built(tmp_path / "linked"))
