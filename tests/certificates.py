"""Certificates for tests: our own authority and certificates that it signs. Made by the openssl command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def require_openssl() -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command (apt install openssl)")


def make_authority(folder: Path) -> Path:
    """Makes ca.pem and its key."""
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=Test CA",
        "-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem"),
    )  # fmt: skip
    return folder / "ca.pem"


def make_certificate(folder: Path, name: str, *hosts: str, authority: Path, days: int = 2) -> None:
    """Makes <name>.pem and <name>.key in `folder`, for hosts or addresses; with -1 days it has expired."""
    folder.mkdir(exist_ok=True)
    names = ",".join(f"IP:{host}" if host[0].isdigit() or ":" in host else f"DNS:{host}" for host in hosts)
    (folder / "ext").write_text(f"subjectAltName={names}")
    request = str(folder / "csr")
    _openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={hosts[0]}",
        "-keyout", str(folder / f"{name}.key"), "-out", request,
    )  # fmt: skip
    _openssl(
        "x509", "-req", "-in", request, "-CA", str(authority), "-CAkey", str(authority.with_suffix(".key")),
        "-CAcreateserial",
        "-days", str(days), "-extfile", str(folder / "ext"), "-out", str(folder / f"{name}.pem"),
    )  # fmt: skip


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
