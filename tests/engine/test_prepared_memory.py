"""Memory that is prepared for the next isolate (engine/src/pages.h)."""

import json
import subprocess
from pathlib import Path

from atoll.engine.process import V8_FLAGS, ensure_snapshot, find_files


def rehearse(snapshots: Path, count: int) -> dict[str, int]:
    """What the engine says of isolates it makes for nobody."""
    files = find_files()
    snapshot = ensure_snapshot(files, snapshots)
    command = [str(files.node), *V8_FLAGS, str(files.main), "rehearse", str(snapshot), str(count)]
    done = subprocess.run(command, capture_output=True, check=True, env={"OPENSSL_CONF": "/dev/null"})
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_an_isolate_finds_the_memory_it_touches_prepared(snapshots: Path) -> None:
    found = rehearse(snapshots, 5)
    assert found["make_faults"] > 200
    assert found["ready_faults"] < found["make_faults"] / 4
