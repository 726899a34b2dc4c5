"""Seals secrets at rest: AES-256-GCM with a key per tenant, derived from a root key that is in no database.

    sealed   key id (1 byte) · nonce (12) · ciphertext and tag
    key      HKDF-SHA256 of the root key, for one tenant
    bound to tenant, worker and name: a row that is moved to another of them does not open

The root keys are in the file `root-key` of the data folder, readable by its owner only, or in the environment variable
ATOLL_ROOT_KEY, which makes a stolen data folder useless. The first key is made with the first secret: a node that does
not find its key must not replace it with a wrong one. Keys are numbered; the newest seals, all of them open. A rotation
adds a key, seals all secrets again in one transaction, and only then drops the old keys.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.db.folder import KEY_FILE
from atoll.errors import StartError

if TYPE_CHECKING:  # imported with the first secret: a node without secrets starts sooner
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

log = logging.getLogger("atoll.control")

VARIABLE = "ATOLL_ROOT_KEY"
KEY_BYTES = 32
NONCE_BYTES = 12
PURPOSE = b"atoll secrets v1\0"
FORMAT = "write <number>:<base64 of 32 random bytes>, several of them separated by commas, the newest last"

RootKeys = Mapping[int, bytes]  # by number; the last one seals


class CannotOpen(Exception):
    """A secret does not open: the root key, or the tenant, worker or name, is not the one it was sealed for."""


class Vault:
    def __init__(self, folder: Path, variable: str | None = None) -> None:
        self._path = folder / KEY_FILE
        self.is_from_environment = bool(variable)
        self._roots: RootKeys = parse_keys(variable, VARIABLE) if variable else self._read()
        self._derived: dict[tuple[int, str], AESGCM] = {}

    @property
    def key_id(self) -> int:
        """The number of the key that seals now."""
        return list(self._roots)[-1]

    def seal(self, value: str, tenant: str, worker_id: str, name: str) -> bytes:
        if not self._roots:
            self.add_key()
        nonce = os.urandom(NONCE_BYTES)
        key_id = self.key_id
        box = self._box(key_id, tenant).encrypt(nonce, value.encode(), _place(tenant, worker_id, name))
        return bytes([key_id]) + nonce + box

    def open(self, sealed: bytes, tenant: str, worker_id: str, name: str) -> str:
        from cryptography.exceptions import InvalidTag

        key_id, nonce, box = sealed[0], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        if key_id not in self._roots:
            raise CannotOpen(f"it was sealed with root key {key_id}, which is missing")
        try:
            return self._box(key_id, tenant).decrypt(nonce, box, _place(tenant, worker_id, name)).decode()
        except InvalidTag:
            raise CannotOpen(f"root key {key_id} is not the one it was sealed with") from None

    def _box(self, key_id: int, tenant: str) -> AESGCM:
        box = self._derived.get((key_id, tenant))
        if box is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF

            derive = HKDF(SHA256(), KEY_BYTES, salt=None, info=PURPOSE + tenant.encode())
            box = self._derived[key_id, tenant] = AESGCM(derive.derive(self._roots[key_id]))
        return box

    def derive(self, purpose: str) -> bytes:
        """A key for something else than secrets, the same on each node with this root key."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if not self._roots:
            self.add_key()
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"atoll {purpose}".encode()).derive(self._roots[self.key_id])

    # Rotation: add a key, seal all secrets again, keep only the newest key

    def add_key(self) -> None:
        """Make a new root key, which seals from now on; the others still open. Only if the keys are in the file."""
        assert not self.is_from_environment
        number = next(number for number in range(1, 256) if number not in self._roots)
        self._write({**self._roots, number: os.urandom(KEY_BYTES)})

    def drop_old_keys(self) -> None:
        self._write({self.key_id: self._roots[self.key_id]})
        self._derived.clear()

    def sweep(self, used: Iterable[int]) -> None:
        """Remove the temporary file of a rotation that was killed before it replaced the key file.

        A key seals only once the key file has it, so keys in a temporary file have sealed nothing. As a safeguard, the
        temporary file stays if a key in `used` is missing: it may hold the only copy.
        """
        left = self._path.with_suffix(".new")
        if not left.exists():
            return
        missing = sorted(set(used) - set(self._roots))
        if missing:
            numbers = ", ".join(map(str, missing))
            log.error("root key %s is missing, but secrets are sealed with it: look into %s", numbers, left)
            return
        left.unlink(missing_ok=True)
        log.info("removed %s, which a node left behind when it was killed", left)

    def _read(self) -> RootKeys:
        try:
            return parse_keys(self._path.read_text("ascii"), str(self._path))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise StartError(f"{self._path} cannot be read: {error}", "it has the root key of all secrets") from None

    def _write(self, keys: RootKeys) -> None:
        """Replace the file as a whole: after a crash it is the old one or the new one."""
        text = ",\n".join(f"{number}:{base64.b64encode(key).decode()}" for number, key in keys.items())
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, text.encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        new.rename(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._roots = keys


def parse_keys(text: str, called: str) -> RootKeys:
    """Parse keys from the file or the environment. A text without a number is key 1."""
    keys: dict[int, bytes] = {}
    for part in text.split(","):
        number, found, encoded = part.strip().rpartition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
            key_id = int(number) if found else 1
        except (binascii.Error, ValueError):
            raise StartError(f"{called} has a part that is not a key", FORMAT) from None
        if len(key) != KEY_BYTES or not 1 <= key_id <= 255 or key_id in keys:
            raise StartError(f"{called} has a key that is not 32 bytes, or a number twice or not from 1 to 255", FORMAT)
        keys[key_id] = key
    return keys


def _place(tenant: str, worker_id: str, name: str) -> bytes:
    return f"{tenant}/{worker_id}/{name}".encode()  # none of them can contain a slash
