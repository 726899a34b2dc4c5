"""A bundler process that stays alive: later builds reuse what did not change from its memory.

The output is one ES module with its source map, beside the files that are copied as they are (WebAssembly, data).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atoll.project.border import Border, Edge
from atoll.project.built import BuildFailed, Built, BuiltModule, Diagnostic
from atoll.project.fetch import bundler_version
from atoll.project.model import BuildOptions, Project, ProjectError
from atoll.project.native_packages import warnings_about
from atoll.project.packets import U32, decode_packet, encode_packet, encode_reply
from atoll.project.platform import platform
from atoll.project.plugin import Plugin, extension_of
from atoll.project.rules import type_of
from atoll.project.site import MANIFEST_MODULE
from atoll.project.unresolved import hint_for
from atoll.workers import ModuleKind

# Loaders by extension, unless `rules` override them. Text goes into the bundle; other files become modules beside it.
TEXT = (".txt", ".html", ".sql", ".md", ".css", ".svg", ".xml", ".csv", ".pem")
RULED = {"Text": "text", "Data": "copy", "CompiledWasm": "copy"}
KINDS = {
    "ESModule": ModuleKind.ESM,
    "Text": ModuleKind.TEXT,
    "Data": ModuleKind.DATA,
    "CompiledWasm": ModuleKind.WASM,
}
LOADERS = {".wasm": "copy", ".bin": "copy", ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx"} | dict.fromkeys(TEXT, "text")
# Packages that wrangler replaces with ones of its own when Node's modules are there
SHIMS = Path(__file__).parent / "shims"
REPLACED = {
    "cross-fetch": "fetch.mjs",
    "cross-fetch/polyfill": "nothing.mjs",
    "node-fetch": "fetch.mjs",
    "node-fetch-native": "fetch.mjs",
    "node-fetch-native/polyfill": "nothing.mjs",
    "whatwg-url": "url.mjs",
    "fsevents": "nothing.mjs",
    "ws": "ws.cjs",  # its build for browsers throws, and the one for Node needs `upgrade` of node:http
}


def flags_of(project: Project, *, dev: bool) -> list[str]:
    options = project.build
    mode = "development" if dev else "production"
    flags = [
        "--bundle",
        "--format=esm",
        "--target=es2024",
        "--platform=browser",
        "--conditions=atoll,workerd,worker,browser",
        "--sourcemap=external",
        f"--outdir={os.path.realpath(project.folder)}",
        "--asset-names=[name]-[hash]",
        "--metafile",
        "--log-level=silent",
        "--log-limit=0",
        "--color=false",
        "--external:node:*",
        "--external:cloudflare:*",
        "--external:atoll:*",
        f"--external:{MANIFEST_MODULE}",
    ]
    # Packages check this name to detect the platform; wrangler sets the same. With it, zod does not use eval.
    agent = json.dumps("Cloudflare-Workers")
    defines = {"process.env.NODE_ENV": json.dumps(mode), "navigator.userAgent": agent} | options.define
    flags += [f"--define:{name}={value}" for name, value in defines.items()]
    flags += [f"--loader:{extension}={loader}" for extension, loader in loaders_of(options).items()]
    for name in platform().node_modules:
        installed = (project.folder / "node_modules" / name.split("/")[0]).is_dir()
        if name not in options.alias and ("nodejs_compat" in project.compatibility_flags or not installed):
            flags.append(f"--alias:{name}=node:{name}")
    if platform().has_node_globals(project):
        kept = [name for name in REPLACED if name not in options.alias]
        flags += [f"--alias:{name}={SHIMS / REPLACED[name]}" for name in kept]
    for name, target in options.alias.items():
        local = project.folder / target
        flags.append(f"--alias:{name}={local if target.startswith('.') else target}")
    if options.minify:
        flags += ["--minify", *(["--keep-names"] if options.keep_names else [])]
    if options.tsconfig is not None:
        flags.append(f"--tsconfig={options.tsconfig}")
    if options.jsx_factory:
        flags.append(f"--jsx-factory={options.jsx_factory}")
    if options.jsx_fragment:
        flags.append(f"--jsx-fragment={options.jsx_fragment}")
    return flags


def loaders_of(options: BuildOptions) -> dict[str, str]:
    """Loaders by extension. The first rule for an extension decides; rules about folders are the plugin's."""
    ruled: dict[str, str] = {}
    for rule in options.rules:
        for glob in rule.globs if rule.type in RULED else ():
            extension = extension_of(glob)
            if extension is not None:
                ruled.setdefault(extension, RULED[rule.type])
    return LOADERS | ruled


def kind_of(path: Path, project: Project) -> ModuleKind:
    """The module type of a copied file."""
    named = type_of(path, project)
    is_wasm = named == "CompiledWasm" or (named is None and path.suffix == ".wasm")
    return ModuleKind.WASM if is_wasm else ModuleKind.DATA


class Esbuild:
    """One bundler process for one project. `build` as often as needed, then `close`."""

    def __init__(self, binary: Path, project: Project, *, dev: bool = False) -> None:
        self._project = project
        self._plugin = Plugin(project)
        self._number = 0
        flags = flags_of(project, dev=dev)
        command = [str(binary), f"--service={bundler_version()}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._read()  # its version
        assert project.main is not None
        self._inputs: tuple[Path, ...] = (project.main,)
        request = {
            "command": "build",
            "key": 0,
            "entries": [[project.main.stem, str(project.main)]],
            "flags": flags,
            "write": False,
            "stdinContents": None,
            "stdinResolveDir": None,
            "absWorkingDir": os.path.realpath(project.folder),  # its messages have paths relative to this folder
            "nodePaths": [],
            "context": True,
            "plugins": [self._plugin.registration()],
        }
        answer = self._ask(request)
        if answer.get("errors"):
            self.close()
            raise BuildFailed([_diagnostic(error) for error in answer["errors"]], project.folder)

    def build(self, border: Border) -> Built:
        """Raises BuildFailed, and ProjectError for a file outside of the project."""
        self._plugin.refresh()
        result = self._ask({"command": "rebuild", "key": 0})
        folder = Path(os.path.realpath(self._project.folder))
        if result.get("errors"):
            errors = [_diagnostic(error) for error in result["errors"]]
            raise BuildFailed(errors, folder, self._inputs, hint_for(result["errors"], folder))
        meta = json.loads(result["metafile"])
        real = {path: (folder / path).resolve() for path in meta["inputs"]}
        self._inputs = tuple(real.values())
        border.check_edges(
            Edge(real[path], real[edge["path"]], edge.get("original", ""))
            for path, facts in meta["inputs"].items()
            for edge in facts["imports"]
            if edge["path"] in real and not real[edge["path"]].is_relative_to(SHIMS)
        )
        outputs = {
            Path(file["path"]).relative_to(folder).as_posix(): file["contents"] for file in result["outputFiles"]
        }
        main = next(name for name, output in meta["outputs"].items() if output.get("entryPoint"))
        source, source_map = with_requires(
            outputs.pop(main), outputs.pop(f"{main}.map").decode(), meta["outputs"][main]
        )
        modules: list[BuiltModule] = []
        for path, contents in sorted(outputs.items()):
            kind = kind_of(real[next(iter(meta["outputs"][path]["inputs"]))], self._project)
            ending = ".wasm" if kind is ModuleKind.WASM else ".bin"
            if not path.endswith(ending):  # a node derives the type from the extension; the hash makes the name unique
                source = source.replace(path.encode(), (path + ending).encode())
                path += ending
            modules.append(BuiltModule(path, kind, contents))
        modules.insert(0, BuiltModule(main, ModuleKind.ESM, source, source_map))
        modules += self._additional(border)
        warnings = tuple(_diagnostic(warning) for warning in result.get("warnings", ()))
        warnings += warnings_about(self._inputs)
        return Built(main, tuple(modules), self._inputs, True, warnings)

    def _additional(self, border: Border) -> Iterator[BuiltModule]:
        """The files that are modules of their own. Scripts among them are taken as they are."""
        for path, kind in self._plugin.modules.items():
            border.check_entry(path)
            self._inputs += (path,)
            if kind == "CommonJS":
                raise ProjectError(f"{path} is CommonJS, and nothing bundles it", "set no_bundle, or write it as ESM")
            yield BuiltModule(self._plugin.name_of(path), KINDS[kind], path.read_bytes())

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()  # it ends when its stdin is closed
            except OSError:
                pass
        self._process.wait()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send(encode_packet(self._number, request))
        told: dict[str, Any] = {}
        while True:
            number, is_request, value = decode_packet(self._read())
            if not is_request:
                if "error" in value:
                    raise ProjectError(f"the bundler failed: {value['error']}", "report this, with the project")
                told.update(value)
                return told
            if value.get("command") == "on-end":
                told = value  # it carries the result; there is nothing to answer
            self._send(encode_reply(number, self._plugin.answer(value)))

    def _send(self, packet: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(packet)
            self._process.stdin.flush()
        except OSError:
            raise ProjectError("the bundler ended", "try again") from None

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        head = self._process.stdout.read(4)
        body = self._process.stdout.read(U32.unpack(head)[0]) if len(head) == 4 else b""
        if not body:
            raise ProjectError("the bundler ended", "check that ATOLL_ESBUILD has the version that Atoll needs")
        return body


def with_requires(source: bytes, source_map: str, output: dict[str, Any]) -> tuple[bytes, str]:
    """Turns `require("node:events")` of a CommonJS package into an import, on one line before the bundle.

    What is not there throws when it is required: packages try an optional one, such as pg-native.
    """
    names = sorted(
        {item["path"] for item in output["imports"] if item["kind"] == "require-call" and item.get("external")}
    )
    if not names:
        return source, source_map
    known = [name for name in names if name in platform().modules]
    imports = "".join(f"import * as __required{i} from {json.dumps(name)};" for i, name in enumerate(known))
    table = ",".join(f"{json.dumps(name)}:__required{i}.default??__required{i}" for i, name in enumerate(known))
    missing = "throw Object.assign(new Error(`Cannot find module '${name}'`),{code:\"MODULE_NOT_FOUND\"});"
    found = f"const found={{__proto__:null,{table}}}[name];if(found!==undefined)return found;"
    line = f"{imports}const require=(name)=>{{{found}{missing}}};\n"
    moved = json.loads(source_map)
    moved["mappings"] = ";" + moved["mappings"]
    return line.encode() + source, json.dumps(moved)


def _diagnostic(message: dict[str, Any]) -> Diagnostic:
    text = message["text"]
    place = message.get("location")
    if place is None:
        return Diagnostic(text)
    column = len(place["lineText"].encode()[: place["column"]].decode("utf-8", "replace")) + 1
    return Diagnostic(text, place["file"], place["line"], column, place["length"], place["lineText"])
