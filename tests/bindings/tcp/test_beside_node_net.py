"""node:net and node:tls beside the Node that the engine runs in: the same calls, results and errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atoll.engine.process.engine_process import find_files

CALLS = (Path(__file__).parent / "beside_node.js").read_text()
IMPORTS = 'import net from "node:net"; import tls from "node:tls";'


def test_addresses_and_certificates_are_judged_as_in_node(run: Callable[..., Any], tmp_path: Path) -> None:
    function = CALLS.replace("export default function", "function")
    script = tmp_path / "calls.mjs"
    script.write_text(f"{IMPORTS}\n{function}\nconsole.log(JSON.stringify(calls(net, tls, Buffer)));")
    in_node = json.loads(subprocess.run([find_files().node, script], check=True, capture_output=True).stdout)
    in_worker = run("return calls(net, tls, Buffer);", outside=IMPORTS + function)
    assert "error" not in in_worker, in_worker
    assert [pair for pair in zip(in_worker[:-1], in_node[:-1], strict=True) if pair[0] != pair[1]] == []
    assert set(in_node[-1]) - set(in_worker[-1]) <= {"BoundSocket"}  # a worker has no ports of its own
