"""Which uploads may begin: what a tenant has in progress on this node is bounded before its quota is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from atoll.bindings.r2.content import INLINE
from atoll.bindings.r2.store import R2Bound, R2OverQuota
from atoll.errors import QuotaExceeded

MAX_OPEN_UPLOADS = 256  # of one tenant into files: each has a descriptor


class Admission:
    """The quotas of tenants, and their uploads in progress."""

    def __init__(self) -> None:
        self._bounds: dict[str, R2Bound] = {}
        self._arriving: Counter[str] = Counter()  # bytes of uploads in progress, by tenant
        self._open_uploads: Counter[str] = Counter()  # by tenant

    def bound(self, tenant: str, bound: R2Bound) -> None:
        self._bounds[tenant] = bound

    def bound_of(self, tenant: str) -> R2Bound | None:
        return self._bounds.get(tenant)

    def most_buckets(self, tenant: str, most: int) -> int:
        bound = self._bounds.get(tenant, R2Bound()).buckets
        return most if bound is None else min(bound, most)

    def admit(self, tenant: str, size: int) -> Callable[[], None]:
        """Begin an upload; call the result when it is over. R2OverQuota or QuotaExceeded if it may not begin.

        Only the commit knows what the object replaces, and decides. Until then uploads are bounded by themselves.
        """
        most = self._bounds.get(tenant, R2Bound()).bytes
        if most is not None and self._arriving[tenant] + size > most:
            raise R2OverQuota(self._arriving[tenant] + size, "bytes", most)
        is_file = size > INLINE
        if is_file and self._open_uploads[tenant] >= MAX_OPEN_UPLOADS:
            raise QuotaExceeded(f"{MAX_OPEN_UPLOADS} uploads of this tenant are in progress: wait for some of them")
        self._arriving[tenant] += size
        self._open_uploads[tenant] += is_file

        def release() -> None:
            for counter, amount in ((self._arriving, size), (self._open_uploads, int(is_file))):
                counter[tenant] -= amount
                if not counter[tenant]:
                    del counter[tenant]

        return release
