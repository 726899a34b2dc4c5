"""HTTPS: a certificate for each host, selected by the server name that the client sends (SNI).

The folder holds `<host>.pem` with the chain and the key, or `<host>.pem` and `<host>.key`. `_.example.com.pem` is for
all hosts directly below example.com, `default.pem` for all other names. Renewed files are loaded within LOOK_SECONDS.
"""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path

from atoll.errors import StartError

log = logging.getLogger("atoll.front")

LOOK_SECONDS = 5.0  # how often the folder is checked while connections arrive


class Certificates:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._seen: dict[str, float] = {}  # modification time of each file
        self._next_look = 0.0
        self._told: set[str] = set()  # problems that are logged
        self._is_starting = True
        self._load()
        self._is_starting = False
        if not self._contexts:
            raise StartError(
                f"there is no certificate in {folder}", "put <host>.pem and <host>.key there, or default.pem"
            )
        # Names without a certificate, and clients without SNI, get `default.pem`; without it the handshake fails.
        self.context = new_context()
        self.context.sni_callback = self._choose

    def reload(self) -> None:
        """Look at the folder now. StartError if a file cannot be used; the others are in use by then."""
        self._is_starting = True
        try:
            self._load()
        finally:
            self._is_starting = False

    def _load(self) -> None:
        """Load new and changed files. An unusable file is logged once and does not affect others: a renewal may arrive
        as two files, and is complete when both are there."""
        contexts: dict[str, ssl.SSLContext] = {}
        seen: dict[str, float] = {}
        for file in sorted(self._folder.glob("*.pem")):
            name, key = file.stem.lower(), file.with_suffix(".key")
            known = self._contexts.get(name)
            try:
                changed = max(path.stat().st_mtime for path in (file, key) if path.exists())
                if known is None or self._seen.get(file.name) != changed:
                    known = new_context()
                    known.load_cert_chain(
                        file, key if key.exists() else None, password=""
                    )  # never prompt for a password
                seen[file.name] = changed
            except (OSError, ValueError, ssl.SSLError) as error:
                known = self._contexts.get(name)
                self._refuse(file, error, known is not None)
            if known is not None:
                contexts[name] = known
        if contexts or not self._contexts:  # if all files are gone, keep the old certificates: it may be for a moment
            self._contexts, self._seen = contexts, seen

    def _refuse(self, file: Path, error: Exception, has_old: bool) -> None:
        problem = f"the certificate {file} cannot be used: {error}"
        if self._is_starting:
            raise StartError(problem, "each .pem needs its key, in it or as .key") from None
        if problem not in self._told:
            self._told.add(problem)
            log.error("%s%s", problem, "; the old one stays in use" if has_old else "")

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        self._look()
        host = (name or "").lower().rstrip(".")
        found = self._contexts.get(host) or self._contexts.get("_." + host.partition(".")[2])
        found = found or self._contexts.get("default")
        if found is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = found
        return None

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        self._load()


def new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
