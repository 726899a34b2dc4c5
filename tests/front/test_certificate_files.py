"""The folder of certificates while files in it change: pairs are independent, and valid ones keep working."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import pytest

from atoll.errors import StartError
from atoll.front import tls
from atoll.front.tls import Certificates
from tests.certificates import make_authority, make_certificate, require_openssl


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require_openssl()
    monkeypatch.setattr(tls, "LOOK_SECONDS", 0)
    authority = make_authority(tmp_path)
    for host in ("a.test", "b.test"):
        make_certificate(tmp_path / "certificates", host, host, authority=authority)
    return tmp_path / "certificates"


def renew(folder: Path, host: str) -> None:
    before = (folder / f"{host}.pem").stat().st_mtime
    make_certificate(folder, host, host, authority=folder.parent / "ca.pem")
    os.utime(folder / f"{host}.pem", (before + 10, before + 10))  # a clearly later time, however fast the test is


def take_away(folder: Path) -> None:
    folder.rename(folder.parent / "away")


async def serial(certificates: Certificates, host: str) -> str:
    """The serial number of the certificate that a client receives."""
    trust = ssl.create_default_context(cafile=str(certificates._folder.parent / "ca.pem"))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=certificates.context)
    port = server.sockets[0].getsockname()[1]
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=host)
        found = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        writer.transport.abort()
    finally:
        server.close()
    return str(found)


async def test_a_broken_file_does_not_affect_other_certificates(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificates = Certificates(folder)
    a, b = await serial(certificates, "a.test"), await serial(certificates, "b.test")
    (folder / "a.test.pem").write_text("half of a file")
    renew(folder, "b.test")
    assert await serial(certificates, "b.test") != b
    assert await serial(certificates, "a.test") == a
    assert caplog.text.count("a.test.pem cannot be used") == 1 and "the old one stays in use" in caplog.text
    renew(folder, "a.test")
    assert await serial(certificates, "a.test") != a


async def test_a_renewal_takes_effect_when_both_files_are_new(folder: Path) -> None:
    certificates = Certificates(folder)
    a = await serial(certificates, "a.test")
    old_key = (folder / "a.test.key").read_bytes()
    renew(folder, "a.test")
    new_key = (folder / "a.test.key").read_bytes()
    (folder / "a.test.key").write_bytes(old_key)  # only the certificate is new
    assert await serial(certificates, "a.test") == a
    (folder / "a.test.key").write_bytes(new_key)
    assert await serial(certificates, "a.test") != a


async def test_a_folder_that_disappears_briefly_affects_no_host(folder: Path) -> None:
    certificates = Certificates(folder)
    a = await serial(certificates, "a.test")
    take_away(folder)
    assert await serial(certificates, "a.test") == a


@pytest.mark.parametrize("text", ["", "no certificate"])
def test_a_start_with_a_broken_file_names_it(folder: Path, text: str) -> None:
    (folder / "b.test.pem").write_text(text)
    with pytest.raises(StartError, match=r"b\.test\.pem cannot be used"):
        Certificates(folder)
