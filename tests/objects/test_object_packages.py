"""Packages from npm that use the storage of a Durable Object."""

from __future__ import annotations

from tests.e2e.test_packages import bundle
from tests.running import Atoll


def test_drizzle_orm_works_on_the_storage_of_an_object(atoll: Atoll) -> None:
    atoll.deploy(
        "drizzle-object",
        bundle("drizzle_object", "--external:cloudflare:*"),
        bindings=[{"type": "durable_object", "name": "NOTES", "class_name": "Notes"}],
        migrations=[{"tag": "v1", "new_sqlite_classes": ["Notes"]}],
        limits={"cpu_ms": 1000},
    )
    assert atoll.get("drizzle-object").json == {
        "first": {"id": 1, "text": "one"},
        "undone": "undo",
        "all": [{"id": 1, "text": "changed"}],
    }
