"""rclone, which we did not write, against the S3 endpoint: a tree of small files both ways, and a large object."""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import debian
from tests.bindings.r2.test_s3 import keys_of
from tests.running import Atoll

MB = 1 << 20
FILES = 2_000
LARGE_MB = 200
NODE_GROWTH_MB = 64  # the node holds a few pieces of each of rclone's connections, never a file
CLIENT_SECONDS = 120


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    """Its S3 endpoint is on the address itself: rclone looks names up, and `s3.localhost` is not known everywhere."""
    made = Atoll(tmp_path_factory.mktemp("clients"), engines=1, s3_host="127.0.0.1", body_bytes=1 << 30)
    made.start()
    yield made
    assert made.stop() == 0


class Rclone:
    """A remote path is `:s3:bucket/key`."""

    def __init__(self, program: str, node: Atoll, home: Path) -> None:
        keys = keys_of(node, name="rclone")
        self._program = program
        self._environment = {  # nothing else: the settings of this machine for other S3 services must not count
            "HOME": str(home),
            "RCLONE_CONFIG": "",
            "RCLONE_S3_PROVIDER": "Other",
            "RCLONE_S3_ENDPOINT": f"http://127.0.0.1:{node.port}",
            "RCLONE_S3_REGION": "auto",
            "RCLONE_S3_ACCESS_KEY_ID": keys["access_key_id"],
            "RCLONE_S3_SECRET_ACCESS_KEY": keys["secret_access_key"],
        }

    def __call__(self, *arguments: str) -> None:
        done = subprocess.run(
            [self._program, *arguments, "--transfers=8", "--retries=1", "--low-level-retries=1", "--fast-list"],
            env=self._environment, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def rclone(node: Atoll, tmp_path_factory: pytest.TempPathFactory) -> Rclone:
    return Rclone(debian.require("rclone", "rclone"), node, tmp_path_factory.mktemp("home"))


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file, by its path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def peak_mb(node: Atoll) -> float:
    """The most memory that the node has used so far."""
    status = Path(f"/proc/{node.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Small files of many sizes, in folders, with names that need escapes."""
    folder, chance = tmp_path / "tree", random.Random(18)
    for number in range(FILES):
        path = folder / f"folder {number % 20}" / f"ü+{number % 7}" / f"file-{number}&=.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.choice((1, 100, 1_000, 5_000))))
    (folder / "empty").write_bytes(b"")
    (folder / "larger").write_bytes(chance.randbytes(300_000))  # in a file of the node
    return folder


def test_a_tree_is_synced_both_ways(node: Atoll, rclone: Rclone, tree: Path, tmp_path: Path) -> None:
    before = peak_mb(node)
    rclone("sync", str(tree), ":s3:tree")
    back = tmp_path / "back"
    rclone("sync", ":s3:tree", str(back))
    assert hashes(back) == hashes(tree)
    assert len(hashes(back)) == FILES + 2
    (tree / "empty").unlink()
    (tree / "larger").write_bytes(b"smaller now")
    rclone("sync", str(tree), ":s3:tree", "--checksum")
    rclone("sync", ":s3:tree", str(back), "--checksum")
    assert hashes(back) == hashes(tree), "what was deleted and changed is so there, too"
    assert peak_mb(node) - before < NODE_GROWTH_MB


def test_a_large_object_in_parts_comes_back_the_same(node: Atoll, rclone: Rclone, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    block = random.Random(200).randbytes(MB)
    with large.open("wb") as file:
        for number in range(LARGE_MB):
            file.write(number.to_bytes(8, "big") + block[8:])
    before = peak_mb(node)
    rclone("copyto", str(large), ":s3:large/large.bin", "--s3-upload-cutoff=16M", "--s3-chunk-size=8M")
    listed = node.control("GET", "/api/r2/large/objects").json["objects"]
    assert [(each["key"], each["size"], each["etag"][-3:]) for each in listed] == [("large.bin", LARGE_MB * MB, "-25")]
    rclone("copyto", ":s3:large/large.bin", str(tmp_path / "back.bin"))
    assert peak_mb(node) - before < NODE_GROWTH_MB, f"of {2 * LARGE_MB} MB that passed through it"
    with large.open("rb") as first, (tmp_path / "back.bin").open("rb") as second:
        assert hashlib.file_digest(first, "sha256").digest() == hashlib.file_digest(second, "sha256").digest()
