"""One Atoll per data folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.db.folder import LOCK_FILE, DataFolder
from atoll.errors import StartError

HOLD = """
import sys
from pathlib import Path
from atoll.db.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / LOCK_FILE).read_text() == str(os.getpid())
    folder.close()
    DataFolder(tmp_path / "a" / "b").close()


def test_a_second_atoll_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes) as first:  # type: ignore[call-overload]
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(StartError, match=f"process {first.pid}") as error:
            DataFolder(tmp_path)
        assert "--data" in error.value.hint
        first.kill()
        first.wait()
    DataFolder(tmp_path).close()  # however the first one ended, its lock is gone


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used"):
        DataFolder(tmp_path / "file")
