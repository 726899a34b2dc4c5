"""A bundler process that stays: each build after the first takes what did not change from its memory.

The output is one ES module with its source map, beside the files that are copied as they are (WebAssembly, data).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from atoll.project.built import BuildFailed, Built, BuiltModule, Diagnostic
from atoll.project.fetch import bundler_version
from atoll.project.model import BuildOptions, Project, ProjectError
from atoll.project.packets import U32, decode_packet, encode_packet, encode_reply
from atoll.workers import ModuleKind

# What is what, unless `rules` say otherwise. Text goes into the bundle; the rest is a module beside it.
TEXT = (".txt", ".html", ".sql", ".md", ".css", ".svg", ".xml", ".csv", ".pem")
LOADERS = {".wasm": "copy", ".bin": "copy", ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx"} | dict.fromkeys(TEXT, "text")
RULE_LOADERS = {"Text": "text", "Data": "copy", "CompiledWasm": "copy", "ESModule": "js", "CommonJS": "js"}
NODE_MODULES = [
    "assert",
    "async_hooks",
    "buffer",
    "console",
    "constants",
    "crypto",
    "diagnostics_channel",
    "dns",
    "events",
    "fs",
    "http",
    "https",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "stream",
    "string_decoder",
    "timers",
    "tls",
    "tty",
    "url",
    "util",
    "worker_threads",
    "zlib",
    "fs/promises",
    "path/posix",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "timers/promises",
    "util/types",
    "assert/strict",
]


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
        f"--outdir={project.folder}",
        "--asset-names=[name]-[hash]",
        "--metafile",
        "--log-level=silent",
        "--log-limit=0",
        "--color=false",
        "--external:node:*",
        "--external:cloudflare:*",
        "--external:atoll:*",
    ]
    # Packages ask for this name to know what they run in, and wrangler answers the same: zod leaves eval alone then.
    agent = json.dumps("Cloudflare-Workers")
    defines = {"process.env.NODE_ENV": json.dumps(mode), "navigator.userAgent": agent} | options.define
    flags += [f"--define:{name}={value}" for name, value in defines.items()]
    flags += [f"--loader:{extension}={loader}" for extension, loader in loaders_of(options).items()]
    for name in NODE_MODULES:
        installed = (project.folder / "node_modules" / name.split("/")[0]).is_dir()
        if name not in options.alias and ("nodejs_compat" in project.compatibility_flags or not installed):
            flags.append(f"--alias:{name}=node:{name}")
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
    """By extension: that is how the bundler tells files apart."""
    loaders = dict(LOADERS)
    for rule in options.rules:
        for glob in rule.globs:
            name = glob.rsplit("/", 1)[-1].removesuffix("?module")
            if not name.startswith("*.") or "*" in name[2:]:
                raise ProjectError(f"the rule for `{glob}` cannot be followed", "write it by extension: **/*.txt")
            if name[1:] not in (".js", ".mjs", ".cjs"):
                loaders[name[1:]] = RULE_LOADERS[rule.type]
    return loaders


def kinds_of(options: BuildOptions) -> dict[str, ModuleKind]:
    """What the copied files are."""
    kinds = {".wasm": ModuleKind.WASM}
    for rule in options.rules:
        kind = ModuleKind.WASM if rule.type == "CompiledWasm" else ModuleKind.DATA
        kinds |= {"." + glob.rsplit(".", 1)[-1].removesuffix("?module"): kind for glob in rule.globs}
    return kinds


class Esbuild:
    """One bundler process for one project. `build` as often as needed, then `close`."""

    def __init__(self, binary: Path, project: Project, *, dev: bool = False) -> None:
        self._project = project
        self._kinds = kinds_of(project.build)
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
            "absWorkingDir": str(project.folder),
            "nodePaths": [],
            "context": True,
        }
        answer = self._ask(request)
        if answer.get("errors"):
            self.close()
            raise BuildFailed([_diagnostic(error) for error in answer["errors"]], project.folder)

    def build(self) -> Built:
        """Raises BuildFailed."""
        result = self._ask({"command": "rebuild", "key": 0})
        folder = self._project.folder
        if result.get("errors"):
            errors = [_diagnostic(error) for error in result["errors"]]
            raise BuildFailed(errors, folder, self._inputs)
        meta = json.loads(result["metafile"])
        self._inputs = tuple((folder / path).resolve() for path in meta["inputs"])
        outputs = {
            Path(file["path"]).relative_to(folder).as_posix(): file["contents"] for file in result["outputFiles"]
        }
        main = next(name for name, output in meta["outputs"].items() if output.get("entryPoint"))
        source, source_map = with_requires(
            outputs.pop(main), outputs.pop(f"{main}.map").decode(), meta["outputs"][main]
        )
        modules: list[BuiltModule] = []
        for path, contents in sorted(outputs.items()):
            kind = self._kinds.get(Path(path).suffix, ModuleKind.DATA)
            ending = ".wasm" if kind is ModuleKind.WASM else ".bin"
            if not path.endswith(ending):  # a node tells kinds by their ending; the hash in a name makes it unique
                source = source.replace(path.encode(), (path + ending).encode())
                path += ending
            modules.append(BuiltModule(path, kind, contents))
        modules.insert(0, BuiltModule(main, ModuleKind.ESM, source, source_map))
        warnings = tuple(_diagnostic(warning) for warning in result.get("warnings", ()))
        return Built(main, tuple(modules), self._inputs, True, warnings)

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()  # it ends when it has nothing more to read
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
            told = value  # on-end: what the build made; nothing to add
            self._send(encode_reply(number, {"errors": [], "warnings": []}))

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
            raise ProjectError("the bundler ended", "is ATOLL_ESBUILD of the version Atoll wants?")
        return body


def with_requires(source: bytes, source_map: str, output: dict[str, Any]) -> tuple[bytes, str]:
    """`require("node:events")` of a CommonJS package as an import, on a line of its own before the bundle."""
    names = sorted(
        {item["path"] for item in output["imports"] if item["kind"] == "require-call" and item.get("external")}
    )
    if not names:
        return source, source_map
    imports = "".join(f"import * as __required{i} from {json.dumps(name)};" for i, name in enumerate(names))
    table = ",".join(f"{json.dumps(name)}:__required{i}.default??__required{i}" for i, name in enumerate(names))
    line = f"{imports}const require=(name)=>({{{table}}})[name];\n"
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
