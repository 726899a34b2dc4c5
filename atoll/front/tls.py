"""HTTPS: a certificate for each host, chosen by the name the client asks for (SNI).

The folder holds `<host>.pem` with the chain and the key, or `<host>.pem` and `<host>.key`; `_.example.com.pem` is for
all hosts right below example.com, `default.pem` for every other name. A renewed file is used from the next connection
on.
"""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path

from atoll.errors import StartError

log = logging.getLogger("atoll.front")

LOOK_SECONDS = 5.0  # how often the folder is looked at, while connections come


class Certificates:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._seen: dict[str, float] = {}  # time of change of each file
        self._next_look = 0.0
        self._told: set[str] = set()  # what is wrong and was said
        self._is_starting = True
        self._load()
        self._is_starting = False
        if not self._contexts:
            raise StartError(
                f"there is no certificate in {folder}", "put <host>.pem and <host>.key there, or default.pem"
            )
        # What a client gets that asks for a name we have nothing for, or for none: the default, or a failed handshake.
        self.context = new_context()
        self.context.sni_callback = self._choose

    def _load(self) -> None:
        """Read what is new or has changed. A file that cannot be used is told of, once, and holds up no other one: a
        renewal may come as two files, and is whole when both are there."""
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
                    )  # nobody is there to be asked
                seen[file.name] = changed
            except (OSError, ValueError, ssl.SSLError) as error:
                known = self._contexts.get(name)
                self._refuse(file, error, known is not None)
            if known is not None:
                contexts[name] = known
        if contexts or not self._contexts:  # else the folder is gone, for a moment maybe
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
