"""The client certificates of a node, by tenant and name. Certificate and private key are sealed on disk together."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from atoll.bindings.services import Seals
from atoll.db.known_rows import KnownRows
from atoll.db.shared import opened
from atoll.db.sqlite import Database
from atoll.egress.client import ClientIdentity
from atoll.egress.tls_ends import allow_half_close
from atoll.errors import NetworkError, QuotaExceeded

PLACE = "mtls certificate"  # takes the place of a worker's id in what a secret is bound to
MAX_CERTIFICATES = 100  # of one tenant: all of them are in memory
MAX_CONTEXTS = 200  # certificates that are ready to be presented


class ClientCertificate(NamedTuple):
    tenant: str
    name: str
    sealed: bytes
    issuer: str
    serial: str
    expires_at: int  # ms since 1970
    created_at: int


class UnusableCertificate(Exception):
    """The certificate and key cannot be used; the message says why."""


class ClientCertificates:
    """`place`: the file, or the database that several nodes share."""

    def __init__(self, place: Path | Database, seals: Seals, ca_file: str) -> None:
        self._database = opened(place, resources.files("atoll.bindings.mtls_certificate") / "migrations")
        self._seals = seals
        self._ca_file = ca_file
        self._known = KnownRows(self._database, "certificates", ClientCertificate)
        self._ready: dict[ClientCertificate, ClientIdentity] = {}  # the one used longest ago first

    def find(self, tenant: str, name: str) -> ClientCertificate | None:
        return self._known.find(tenant, name)

    def of_tenant(self, tenant: str) -> list[ClientCertificate]:
        return self._known.of(tenant)

    async def add(self, tenant: str, name: str, certificate: str, key: str) -> ClientCertificate:
        """Raises UnusableCertificate and QuotaExceeded."""
        pem = f"{key.strip()}\n{certificate.strip()}\n"
        issuer, serial, expires_at = await asyncio.to_thread(_checked, certificate, pem)
        sealed = self._seals.seal(pem, tenant, PLACE, name)
        made = ClientCertificate(tenant, name, sealed, issuer, serial, expires_at, time.time_ns() // 1_000_000)
        refused = QuotaExceeded(f"the tenant has {MAX_CERTIFICATES} client certificates")
        return await self._known.put(made, self._known.most(MAX_CERTIFICATES, refused, tenant, name))

    async def delete(self, each: ClientCertificate) -> None:
        self._ready.pop(each, None)
        await self._known.delete(each.tenant, each.name)

    async def seal_anew(self) -> None:
        """Seal every certificate with the newest root key."""
        await self._known.change_all(self._sealed_anew)

    def _sealed_anew(self, each: ClientCertificate) -> ClientCertificate:
        pem = self._seals.open(each.sealed, each.tenant, PLACE, each.name)
        return each._replace(sealed=self._seals.seal(pem, each.tenant, PLACE, each.name))

    async def identity(self, each: ClientCertificate) -> ClientIdentity:
        """The TLS context that presents a certificate, with the trust of the node. Raises NetworkError."""
        ready = self._ready.pop(each, None)
        if ready is None:
            pem = self._seals.open(each.sealed, each.tenant, PLACE, each.name)
            try:
                context = await asyncio.to_thread(_context, pem, self._ca_file)
            except UnusableCertificate as error:
                raise NetworkError(str(error)) from None
            ready = ClientIdentity(context)
            while len(self._ready) >= MAX_CONTEXTS:
                del self._ready[next(iter(self._ready))]
        self._ready[each] = ready
        return ready

    async def close(self) -> None:
        await self._database.close()


def _checked(certificate: str, pem: str) -> tuple[str, str, int]:
    """Issuer, serial number and end (ms since 1970) of a certificate that fits its key. Runs in a thread."""
    from cryptography import x509

    try:
        first = x509.load_pem_x509_certificate(certificate.encode())
    except (ValueError, UnicodeEncodeError):
        raise UnusableCertificate("`certificate` is no certificate in PEM") from None
    _present(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pem)
    ends = int(first.not_valid_after_utc.timestamp() * 1_000)
    return first.issuer.rfc4514_string()[:500], f"{first.serial_number:x}", ends


def _context(pem: str, ca_file: str) -> ssl.SSLContext:
    """Runs in a thread: it loads the root certificates of the system."""
    context = allow_half_close(ssl.create_default_context())
    if ca_file:
        context.load_verify_locations(ca_file)
    _present(context, pem)
    return context


def _present(context: ssl.SSLContext, pem: str) -> None:
    """Load certificate and key. OpenSSL takes them from files only, so they are in a file that is on no disk."""
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(file, "wb", closefd=False) as written:
            written.write(pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{file}", password="")
    except (ssl.SSLError, ValueError, OSError) as error:
        raise UnusableCertificate(_in_words(error)) from None
    finally:
        os.close(file)


def _in_words(error: Exception) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if reason == "KEY_VALUES_MISMATCH":
        return "`private_key` is not the key of the certificate"
    why = str(reason).replace("_", " ").lower()
    return f"certificate and key cannot be used ({why}): both are PEM, without a password"
