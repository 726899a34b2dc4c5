"""Disks that tests may fill and break: small file systems. Only root may mount them; for other users the tests skip."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"`{command[0]}` does not work here: {done.stderr.strip()[:200]}")
    return done.stdout.strip()


class SmallDisk:
    """A folder with limited room, which can be filled and freed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Leaves no room at all."""
        with self._ballast.open("ab", buffering=0) as file:
            size = 1 << 20
            while size >= 512:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int = 64) -> Iterator[SmallDisk]:
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class BreakingDisk:
    """A folder on a disk that becomes read-only when it breaks, as disks with errors do, until it is repaired."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image = image
        self.folder = folder

    def mount(self) -> None:
        run("mount", "-o", "loop,errors=remount-ro", self._image, self.folder)

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)

    def break_down(self) -> None:
        device = Path(run("findmnt", "-no", "SOURCE", self.folder)).name
        trigger = Path(f"/sys/fs/ext4/{device}/trigger_fs_error")
        if not trigger.exists():
            pytest.skip("this kernel breaks no disk on demand")
        os.sync()
        trigger.write_text("a test breaks this disk")

    def is_free(self) -> bool:
        """True if no file of it is open after the unmount."""
        return not run("losetup", "-j", self._image)

    def repair(self) -> None:
        """Repairs the disk. Nothing may use it meanwhile."""
        self.unmount()
        subprocess.run(["e2fsck", "-p", "-f", str(self._image)], check=False, capture_output=True)
        self.mount()


@contextmanager
def breaking_disk(folder: Path, megabytes: int = 64) -> Iterator[BreakingDisk]:
    if shutil.which("mkfs.ext4") is None or os.geteuid() != 0:
        pytest.skip("mkfs.ext4 and root are needed to make a disk that can break")
    folder.mkdir()
    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    run("mkfs.ext4", "-q", "-F", image)
    disk = BreakingDisk(image, folder)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()
