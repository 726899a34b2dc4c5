"""A deploy by stock wrangler beside the same deploy by `atoll deploy`.

    python -m bench.wrangler_deploy

The bar: wrangler beyond its own start takes at most 1.3 times as long as `atoll deploy`. Its start is what
`wrangler deploy --dry-run` takes, which bundles the same project and sends nothing; that of atoll is `--dry-run` too.
So the rest is what the node and the requests to it take. The two alternate, each deploy has new code, and the median
counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.npm import install
from tests.running import Atoll
from tests.wrangler.stock import ROOT, TOOL, Wrangler

ROUNDS = 7
CONFIG = """
name = "%s"
main = "index.js"
compatibility_date = "2026-01-01"
[vars]
A = "1"
[assets]
directory = "public"
"""
CODE = "export default { fetch(request, env) { return new Response(env.A + %r); } };\n"


def project(folder: Path, name: str) -> Path:
    (folder / "public").mkdir(parents=True)
    (folder / "wrangler.toml").write_text(CONFIG % name)
    for number in range(20):
        (folder / f"public/{number}.txt").write_text(f"file {number}\n" * 100)
    return folder


def seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=120)
    return time.perf_counter() - begun


def main() -> None:
    install(ROOT / "tests/wrangler/tool", TOOL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node = Atoll(folder / "node", engines=1, control_auth="token")
        node.start()
        token = (node.folder / "data/admin-token").read_text().strip()
        wrangler = Wrangler(node, token, "default", folder)
        direct = wrangler.environment | {"CLOUDFLARE_API_BASE_URL": f"http://localhost:{node.port}/client/v4"}
        node_js = str(Path(sys.executable).parent / "node")
        tool = [node_js if Path(node_js).exists() else "node", str(TOOL / "node_modules/wrangler/bin/wrangler.js")]
        own = [str(Path(sys.executable).parent / "atoll")]
        target = ["--api", f"http://localhost:{node.port}", "--token", token]
        commands = {
            "wrangler deploy": ([*tool, "deploy"], project(folder / "w", "by-wrangler"), direct),
            "wrangler deploy --dry-run": ([*tool, "deploy", "--dry-run"], folder / "w", direct),
            "atoll deploy": ([*own, "deploy", *target], project(folder / "a", "by-atoll"), direct),
            "atoll deploy --dry-run": ([*own, "deploy", "--dry-run", *target], folder / "a", direct),
        }
        took: dict[str, list[float]] = {each: [] for each in commands}
        for turn in range(ROUNDS + 1):
            for each, (command, where, environment) in commands.items():
                (where / "index.js").write_text(CODE % f"{each} {turn}")
                spent = seconds(command, where, environment)
                if turn:  # the first deploy of each uploads the files
                    took[each].append(spent)
        node.stop()
    medians = {each: statistics.median(spent) for each, spent in took.items()}
    for each, median in medians.items():
        sys.stdout.write(f"{each:28} {median * 1000:7.0f} ms  {[round(s * 1000) for s in sorted(took[each])]}\n")
    theirs = medians["wrangler deploy"] - medians["wrangler deploy --dry-run"]
    ratio = theirs / medians["atoll deploy"]
    sys.stdout.write(f"wrangler beyond its start {theirs * 1000:.0f} ms: {ratio:.2f} x `atoll deploy`\n")


if __name__ == "__main__":
    main()
