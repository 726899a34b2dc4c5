"""What buckets have besides objects: settings, public hosts, lifecycle rules and notifications."""

from __future__ import annotations

from typing import NamedTuple

from atoll.bindings.r2.around.lifecycle import Lifecycle
from atoll.bindings.r2.around.notifications import Notifications
from atoll.bindings.r2.around.public import PublicBuckets
from atoll.bindings.r2.around.settings import BucketSettings


class Around(NamedTuple):
    settings: BucketSettings
    public: PublicBuckets
    lifecycle: Lifecycle
    notifications: Notifications

    async def close(self) -> None:
        """Before the store is closed."""
        await self.lifecycle.close()
        await self.notifications.close()
