"""Where the contents of a store are in tests: files, or a real S3 service that we start."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import boto3
from botocore.config import Config

from atoll.bindings.r2.postgres.store import PostgresObjects
from atoll.bindings.r2.service.client import ServiceClient
from atoll.bindings.r2.service.contents import ServiceContents
from atoll.bindings.r2.service.settings import AccessKey, ServiceSettings
from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.config import Settings
from atoll.egress.client import Origin
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.postgres.pool import Postgres
from tests.eventually import eventually
from tests.running import Atoll, free_port

RCLONE = str(Path(sys.executable).parent / "rclone")
BUCKET = "contents"


class RcloneServer:
    """`rclone serve s3`: a server that we did not write. It verifies signatures, and its objects are files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.key = AccessKey("AKIATESTTEST", "a secret of the tests")
        self._process: subprocess.Popen[bytes] | None = None
        (folder / BUCKET).mkdir(parents=True)
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        auth = f"--auth-key={self.key.id},{self.key.secret}"
        self._process = subprocess.Popen(
            [RCLONE, "serve", "s3", f"--addr=127.0.0.1:{self.port}", auth, "--config=", str(self.folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, "rclone does not serve"
                time.sleep(0.02)

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


class Backend:
    """Opens stores. A service is given by its port and its key."""

    def __init__(self, port: int = 0, key: AccessKey | None = None) -> None:
        self._origin, self._key = Origin(False, "127.0.0.1", port), key

    def open(self, folder: Path, **changes: Any) -> Any:
        """A store of either kind."""
        if self._key is None:
            return SqliteObjects(folder)
        return SqliteObjects(folder, self.service(**changes))

    def service(self, **changes: Any) -> Callable[[str, Callable[[], bytes]], ServiceContents] | None:
        if self._key is None:
            return None
        header = f"{self._origin.host}:{self._origin.port}"
        settings = ServiceSettings(self._origin, header, "", BUCKET, "some/prefix/", "us-east-1", self._key)
        client = ServiceClient(Settings(), settings._replace(**changes), Pacer(), Holdings())
        return lambda name, owner: ServiceContents(client, name, owner)

    def contents(self, folder: Path) -> list[str]:
        """The contents of the store of a data folder, and the files of unfinished ones."""
        left = [*(folder / "r2" / "objects").rglob("*"), *(folder / "r2" / "r2-unfinished").iterdir()]
        found = [str(path) for path in left if path.is_file()]
        if self._key is None:
            return found
        index = apsw.Connection(str(folder / "r2" / "index.db"), flags=apsw.SQLITE_OPEN_READONLY)
        [(name,)] = index.execute("SELECT folder FROM service").fetchall()
        index.close()
        return found + self.keys(str(name))

    def keys(self, name: str) -> list[str]:
        """What is in a folder of the service."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"some/prefix/{name}/")
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return [key for key in keys if not key.endswith("/owner")]

    def client(self) -> Any:
        assert self._key is not None
        return boto3.client(
            "s3", endpoint_url=f"http://{self._origin.host}:{self._origin.port}", region_name="us-east-1",
            aws_access_key_id=self._key.id, aws_secret_access_key=self._key.secret,
            config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
        )  # fmt: skip

    async def has(self, folder: Path, count: int) -> None:
        async def look() -> bool:
            return len(self.contents(folder)) == count

        await eventually(look, f"{count} contents")


class PostgresBackend(Backend):
    """Opens the stores of nodes that share a PostgreSQL. Garbage does not wait for other readers."""

    def __init__(self, postgres: Postgres, port: int = 0, key: AccessKey | None = None) -> None:
        super().__init__(port, key)
        self.postgres = postgres

    def open(self, folder: Path, **changes: Any) -> PostgresObjects:
        values = {"session": "one", "grace": 0.0, **changes}
        return PostgresObjects(folder, self.postgres, open_service=self.service(), **values)

    def contents(self, folder: Path) -> list[str]:
        left = [str(path) for path in (folder / "r2" / "r2-unfinished").iterdir()]
        with ThreadPoolExecutor(1) as thread:  # with a loop of its own: the callers do not wait
            return left + thread.submit(asyncio.run, self._files()).result()

    async def _files(self) -> list[str]:
        connection = await asyncpg.connect(self.postgres._address)
        try:
            rows = await connection.fetch("SELECT DISTINCT file FROM atoll.r2_pieces")
            folder = await connection.fetchval("SELECT folder FROM atoll.r2_service") if self._key is not None else None
            return [str(row["file"]) for row in rows] + (self.keys(folder) if folder is not None else [])
        finally:
            await connection.close()


def of_rclone(server: RcloneServer) -> Backend:
    return Backend(server.port, server.key)


def of_atoll(node: Atoll, keys_of: Callable[[Atoll], dict[str, str]]) -> Backend:
    """Another node of ours, by its S3 endpoint."""
    keys = keys_of(node)
    made = Backend(node.port, AccessKey(keys["access_key_id"], keys["secret_access_key"]))
    made.client().create_bucket(Bucket=BUCKET)
    return made
