"""Built-in modules: compiled when the snapshot is made; nothing in them outlives the limits of a call."""

from __future__ import annotations

import struct
from pathlib import Path

from atoll.engine.process.engine_process import ensure_snapshot, find_files
from tests.running import Atoll

NAMES = ("assert", "buffer", "crypto", "events", "http", "process", "stream", "url", "util", "zlib")


def parts_of(snapshot: bytes) -> tuple[bytes, bytes]:
    """The code caches and the source; each is followed by its size (engine/src/isolate/snapshot.cc)."""
    found = []
    for _ in range(2):
        (size,) = struct.unpack("<I", snapshot[-4:])
        found.append(snapshot[-4 - size : -4])
        snapshot = snapshot[: -4 - size]
    return found[1], found[0]


def test_the_code_cache_of_every_module_is_made_and_taken(atoll: Atoll, tmp_path: Path) -> None:
    caches, source = parts_of(ensure_snapshot(find_files(), tmp_path).read_bytes())
    table = source.partition(b"\n//# atoll:lazy\n")[2].partition(b"\n")[0]  # ;key,start,end;key,start,end;
    names = [entry.partition(b",")[0] for entry in table.split(b";")[1:-1]]
    assert b"node/crypto.js" in names
    assert not [name for name in names if name not in caches]
    imports = "".join(f'import * as m{index} from "node:{name}";' for index, name in enumerate(NAMES))
    atoll.deploy("importer", f"{imports} export default {{ fetch() {{ return new Response(typeof m0); }} }};")
    assert atoll.get("importer").text == "object"
    assert "code cache" not in atoll.log()  # the log would say "… was refused"


def test_generating_a_key_ends_with_its_call(atoll: Atoll) -> None:
    script = """
        import { generateKeyPairSync } from "node:crypto";
        export default { fetch(request) {
          if (new URL(request.url).pathname === "/") return new Response("fine");
          for (;;) generateKeyPairSync("rsa", { modulusLength: 8192 });
        } };"""
    atoll.deploy("maker", script, limits={"cpu_ms": 300})
    engines = atoll.engines()
    assert atoll.get("maker", "/keys").status == 503
    assert atoll.get("maker").text == "fine"
    assert atoll.engines() == engines  # no engine was stuck and replaced
