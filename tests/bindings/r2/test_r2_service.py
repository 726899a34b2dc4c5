"""R2 with its contents in another S3 service: large contents, faults of the service, copies of a node, settings."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import signal
import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from atoll.bindings.r2.service import client, transfer
from atoll.bindings.r2.service.settings import AccessKey, read_service
from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.bindings.r2.store import ListQuery, ObjectMeta
from atoll.config import Settings
from atoll.errors import StartError, StorageFailed
from tests.bindings.r2.backends import BUCKET, Backend, RcloneServer, of_rclone
from tests.bindings.r2.test_r2_faults import SCRIPT
from tests.bindings.r2.test_r2_store import ALICE, LARGE, drain, put, read
from tests.eventually import eventually
from tests.running import Atoll

MB = 1 << 20
HUGE = LARGE * 9 + b"the last part"  # with parts of 4 MB: three of them


@pytest.fixture(params=["in_rclone", "in_atoll"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PART", 5 * MB)  # our own endpoint takes no smaller ones


@pytest.fixture
async def store(tmp_path: Path, backend: Backend) -> AsyncIterator[SqliteObjects]:
    made = backend.open(tmp_path)
    await made.create(ALICE, 0)
    yield made
    await made.close()


def parts_in(backend: Backend) -> int:
    """Unfinished uploads in the service."""
    try:
        return len(backend.client().list_multipart_uploads(Bucket=BUCKET).get("Uploads", []))
    except Exception as error:
        assert "NoSuchUpload" in str(error), "rclone's answer if there are none"
        return 0


async def nothing_left(backend: Backend, folder: Path) -> None:
    await backend.has(folder, 0)

    async def look() -> bool:
        return parts_in(backend) == 0

    await eventually(look, "no unfinished uploads in the service")


@pytest.mark.usefixtures("small_parts")
async def test_large_content_goes_in_parts_and_a_range_is_read_across_them(
    store: SqliteObjects, backend: Backend, tmp_path: Path
) -> None:
    stored = await put(store, b"huge", HUGE)
    assert stored is not None and stored.etag == hashlib.md5(HUGE).hexdigest()
    assert len(backend.contents(tmp_path)) == 1 and parts_in(backend) == 0
    assert await read(store, b"huge") == HUGE
    opened = await store.open(ALICE, b"huge")
    assert opened is not None
    assert await drain(opened[1].reader(4 * MB + 7, 2 * MB)) == HUGE[4 * MB + 7 : 6 * MB + 7]


@pytest.mark.usefixtures("small_parts")
async def test_an_upload_that_ends_in_the_middle_leaves_nothing_in_the_service(
    store: SqliteObjects, backend: Backend, tmp_path: Path
) -> None:
    upload = await store.begin(ALICE, len(HUGE))
    await upload.write(HUGE[: 6 * MB])
    assert parts_in(backend) == 1 and len(backend.contents(tmp_path)) == 1, "one part, and the file of the next"
    [spool] = (tmp_path / "r2" / "r2-unfinished").iterdir()
    assert spool.stat().st_size == MB
    upload.close()
    await nothing_left(backend, tmp_path)
    assert (await store.list(ALICE, ListQuery())).objects == []


@pytest.mark.usefixtures("small_parts")
async def test_what_a_killed_node_left_in_the_service_is_removed(backend: Backend, tmp_path: Path) -> None:
    store = backend.open(tmp_path)
    await store.create(ALICE, 0)
    upload = await store.begin(ALICE, len(HUGE))
    await upload.write(HUGE[: 6 * MB])
    whole = await store.begin(ALICE, len(LARGE))
    await whole.write(LARGE)
    await whole._complete()  # type: ignore[attr-defined] (the node dies before the index has it)
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copytree(tmp_path / "r2", copy / "r2")  # as a kill leaves it
    assert parts_in(backend) == 1 and len(backend.contents(copy)) == 3
    again = backend.open(copy)
    await nothing_left(backend, copy)
    assert await put(again, b"k", LARGE) is not None and await read(again, b"k") == LARGE
    await again.close()
    upload.close()
    whole.close()
    await store.close()


async def test_while_the_service_is_down_metadata_is_there_and_errors_are_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    server = RcloneServer(tmp_path / "rclone")
    store = of_rclone(server).open(tmp_path)
    await store.create(ALICE, 0)
    await put(store, b"before", LARGE)
    await put(store, b"small", b"in the index")
    server.stop()
    with pytest.raises(StorageFailed, match="the S3 service that holds the contents of R2 cannot be reached: try"):
        await put(store, b"during", LARGE)
    with pytest.raises(StorageFailed, match="cannot be reached"):
        await read(store, b"before")
    assert await read(store, b"small") == b"in the index" and await put(store, b"small 2", b"x") is not None
    assert [each.key for each in (await store.list(ALICE, ListQuery())).objects] == [b"before", b"small", b"small 2"]
    assert (await store.delete(ALICE, [b"small 2"])) == 1
    server.start()
    assert await read(store, b"before") == LARGE
    await put(store, b"during", LARGE)
    assert await read(store, b"during") == LARGE
    await store.close()
    server.stop()


class Cutter(socketserver.ThreadingTCPServer):
    """A proxy that cuts every connection after some bytes of the answer."""

    daemon_threads = True

    def __init__(self, port: int, most: int) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self._behind, self._most = port, most
        self.cuts = 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def finish_request(self, request: Any, client_address: object) -> None:
        with socket.create_connection(("127.0.0.1", self._behind)) as behind:
            back = threading.Thread(target=self._answer, args=(behind, request), daemon=True)
            back.start()
            with suppress(OSError):
                while data := request.recv(65536):
                    behind.sendall(data)
                behind.shutdown(socket.SHUT_RDWR)
            back.join()

    def _answer(self, behind: socket.socket, request: socket.socket) -> None:
        left = self._most
        with suppress(OSError):
            while left and (data := behind.recv(min(65536, left))):
                left -= len(data)
                request.sendall(data)
            self.cuts += not left
            request.shutdown(socket.SHUT_RDWR)


async def test_a_stream_that_breaks_off_goes_on_where_it_was(rclone_server: RcloneServer, tmp_path: Path) -> None:
    whole = of_rclone(rclone_server).open(tmp_path)
    await whole.create(ALICE, 0)
    await put(whole, b"k", LARGE)
    await whole.close()
    with Cutter(rclone_server.port, 300_000) as cutter:
        host = f"127.0.0.1:{rclone_server.port}"  # the signature covers the host
        cut = Backend(cutter.server_address[1], rclone_server.key).open(tmp_path, host=host)
        assert await read(cut, b"k") == LARGE
        assert cutter.cuts >= 3
        await cut.close()
        cutter.shutdown()


async def test_a_reader_that_pauses_gives_its_connection_back(
    store: SqliteObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "IDLE_SECONDS", 0.01)
    await put(store, b"k", LARGE * 4)
    opened = await store.open(ALICE, b"k")
    assert opened is not None
    reader = opened[1].reader(0, 4 * len(LARGE))
    first = await reader.read(1000)
    assert isinstance(reader, transfer.ServiceReader)

    async def is_back() -> bool:
        return reader._stream is None

    await eventually(is_back, "the end of the stream")
    assert first + await drain(reader) == LARGE * 4


async def test_a_restored_copy_reads_and_changes_nothing_of_the_first(in_rclone: Backend, tmp_path: Path) -> None:
    first = in_rclone.open(tmp_path / "a")
    await first.create(ALICE, 0)
    await put(first, b"k", LARGE)
    (tmp_path / "b" / "r2").mkdir(parents=True)
    await first.close()
    for name in ("index.db", "index.db-wal"):  # as a backup does; it leaves out the owner file
        if (tmp_path / "a" / "r2" / name).exists():
            shutil.copy(tmp_path / "a" / "r2" / name, tmp_path / "b" / "r2" / name)
    copy = in_rclone.open(tmp_path / "b")
    assert await read(copy, b"k") == LARGE
    with pytest.raises(StorageFailed, match="belong to another node"):
        await put(copy, b"new", LARGE)
    await copy.delete(ALICE, [b"k"])
    with pytest.raises(StorageFailed, match="belong to another node"):
        await copy.garbage._collect()
    await copy.close()
    again = in_rclone.open(tmp_path / "a")
    assert await read(again, b"k") == LARGE
    await again.close()


async def test_deleted_content_stays_as_long_as_backups_need_it(in_rclone: Backend, tmp_path: Path) -> None:
    store = in_rclone.open(tmp_path, keep_seconds=3600)
    await store.create(ALICE, 0)
    await put(store, b"k", LARGE)

    async def is_noted() -> bool:
        return store.database.read(lambda c: c.execute("SELECT keep_seconds FROM service").fetchone()) == (3600,)

    await eventually(is_noted, "the setting in the index")
    await store.delete(ALICE, [b"k"])
    await store.garbage._collect()
    assert len(in_rclone.contents(tmp_path)) == 1
    await store.database.write(lambda c: c.execute("UPDATE garbage SET due = due - 3601") and None)
    store.garbage.wake()
    await in_rclone.has(tmp_path, 0)
    await store.close()


async def test_contents_of_before_stay_in_files_and_are_read_from_there(in_rclone: Backend, tmp_path: Path) -> None:
    files = Backend().open(tmp_path)
    await files.create(ALICE, 0)
    await put(files, b"old", LARGE)
    upload_id = await files.create_upload(ALICE, b"both", ObjectMeta())
    parts = []

    async def add_part(store: SqliteObjects, data: bytes) -> None:
        part = await store.begin(ALICE, len(data))
        await part.write(data)
        parts.append(await part.put_part(upload_id, b"both", len(parts) + 1))
        part.close()

    await add_part(files, LARGE * 5)
    await files.close()
    store = in_rclone.open(tmp_path)
    await add_part(store, LARGE[::-1])
    await store.complete(ALICE, b"both", upload_id, [(part.number, part.etag) for part in parts])
    assert await read(store, b"old") == LARGE
    assert await read(store, b"both") == LARGE * 5 + LARGE[::-1]
    await store.close()
    files = Backend().open(tmp_path)
    assert await read(files, b"old") == LARGE
    with pytest.raises(StorageFailed, match=r"is in an S3 service, and this node has no settings for one"):
        await read(files, b"both")
    await files.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"r2_service": "ftp://x"}, "not the address of a service"),
        ({"r2_service": "https://x:99999999"}, "not the address of a service"),
        ({"r2_service": "https://x"}, "not the name of a bucket"),
        ({"r2_service": "https://x", "r2_service_bucket": "b-1", "r2_service_prefix": "/a"}, "r2_service_prefix is"),
        ({"r2_service": "https://x", "r2_service_bucket": "b-1"}, "AWS_SECRET_ACCESS_KEY are not set"),
        (
            {"r2_service": "https://x", "r2_service_bucket": "b-1", "r2_service_credentials": "/nowhere"},
            "/nowhere: No such file",
        ),
    ],
)
def test_wrong_settings_are_told_at_the_start(given: dict[str, str], said: str) -> None:
    with pytest.raises(StartError, match=said):
        read_service(Settings(of_bindings=given), {})


def test_the_access_key_comes_from_a_file_or_the_environment_and_is_not_shown(tmp_path: Path) -> None:
    given = {"r2_service": "https://s3.example/base/", "r2_service_bucket": "b-1"}
    found = read_service(Settings(of_bindings=given), {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "hush"})
    assert found is not None and found.key == AccessKey("k", "hush") and "hush" not in f"{found} {found!r}"
    assert found.path("a/b") == "/base/b-1/a/b" and found.origin.port == 443
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = id\naws_secret_access_key = a%secret\naws_session_token = t\n")
    found = read_service(Settings(of_bindings={**given, "r2_service_credentials": str(file)}), {})
    assert found is not None and found.key == AccessKey("id", "a%secret", "t")


def test_a_node_killed_during_puts_has_what_it_acknowledged_in_the_service(
    new_atoll: Callable[..., Atoll], rclone_server: RcloneServer, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text(
        f"[default]\naws_access_key_id={rclone_server.key.id}\naws_secret_access_key={rclone_server.key.secret}\n"
    )
    node = new_atoll(
        engines=1, r2_service=rclone_server.endpoint, r2_service_bucket=BUCKET, r2_service_prefix="some/prefix/",
        r2_service_credentials=credentials,
    )  # fmt: skip
    node.deploy("store", SCRIPT, bindings=[{"type": "r2", "name": "R2", "bucket": "crash"}])
    acknowledged: dict[str, str] = {}
    enough = threading.Event()

    def upload(number: int) -> None:
        try:
            for count in range(10_000):
                data = bytes([number, count % 256]) * (20_000 + 60_000 * (count % 5))
                connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
                connection.request("PUT", f"/{number}-{count}", data, {"Host": node.host("store")})
                response = connection.getresponse()
                if response.status == 200 and response.read():
                    acknowledged[f"{number}-{count}"] = hashlib.md5(data).hexdigest()
                connection.close()
                if len(acknowledged) >= 40:
                    enough.set()
        except (OSError, http.client.HTTPException):
            pass

    threads = [threading.Thread(target=upload, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    node.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()
    node.start()
    listed = {key: (size, etag) for key, size, etag in node.get("store", "/").json}
    assert acknowledged.items() <= {key: etag for key, (_, etag) in listed.items()}.items()
    for key, (size, etag) in listed.items():
        body = node.get("store", f"/{key}").body
        assert len(body) == size and hashlib.md5(body).hexdigest() == etag, "what is listed is whole"
    large = sum(1 for size, _ in listed.values() if size > 65_536)
    folder = node.folder / "data"
    Atoll.wait_until(lambda: len(of_rclone(rclone_server).contents(folder)) == large, 20)
