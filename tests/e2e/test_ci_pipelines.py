"""The pipelines of deploy/ci: the commands of their steps run here, as a runner runs them, up to a deployed worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.debian import require
from tests.running import Atoll

CI = Path(__file__).parents[2] / "deploy/ci"
FOREIGN = re.compile(r"^\s*(npm|pip|apt-get|python3 -m venv)\b")  # what a runner installs, and the project's own checks


def gitlab() -> list[str]:
    """The commands of all jobs but those that the deploy does not need."""
    jobs = yaml.safe_load((CI / "gitlab-ci.yml").read_text())
    return [*jobs["sign"]["script"], *jobs["deploy"]["script"]]


def github() -> list[str]:
    jobs = yaml.safe_load((CI / "github-actions.yml").read_text())["jobs"]
    return [step["run"] for job in ("check", "deploy") for step in jobs[job]["steps"] if "run" in step]


class Runner:
    """A folder with a project, a signing key and the variables of a pipeline."""

    def __init__(self, folder: Path, atoll: Atoll, name: str) -> None:
        require("openssh-client", "ssh-keygen")
        self.folder = folder
        (folder / "worker.js").write_text(f"export default {{ fetch: () => new Response('by {name}') }};")
        (folder / "atoll.toml").write_text(f'name = "{name}"\nmain = "worker.js"\n')
        key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        (folder / "allowed_signers").write_text("ci " + key.with_suffix(".pub").read_text())
        body = {"name": name, "scopes": ["deploy"]}
        self.variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "RUNNER_TEMP": str(folder.parent),
            "ATOLL_API": f"http://localhost:{atoll.port}",
            "ATOLL_TOKEN": atoll.control("POST", "/api/tokens", body).json["token"],
            "SIGNING_KEY": key.read_text() if name == "github" else str(key),
            "CI_COMMIT_SHORT_SHA": "abcdef123456", "GITHUB_SHA": "abcdef1234567890",
            "CI_COMMIT_REF_NAME": "main", "GITHUB_REF_NAME": "main",
        }  # fmt: skip

    def run(self, step: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step],
            cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip


@pytest.mark.parametrize("name, steps", [("gitlab", gitlab()), ("github", github())], ids=["gitlab", "github"])
def test_a_pipeline_builds_signs_verifies_and_deploys(
    name: str, steps: list[str], atoll: Atoll, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    runner = Runner(folder, atoll, name)
    ours = [step for step in steps if not FOREIGN.match(step)]
    for step in ours:
        done = runner.run(step)
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    assert atoll.get(name).text == f"by {name}"
    (version,) = atoll.control("GET", f"/api/workers/{name}/versions").json["versions"]
    assert "abcdef123456" in json.dumps(version)
    script = next((folder / "bundle").rglob("*.js"))
    script.write_text(script.read_text() + "// changed after it was signed")
    verify = next(step for step in ours if "sha256sum --check" in step)
    assert runner.run(verify).returncode != 0
