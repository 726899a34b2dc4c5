"""What a deploy and the control API may make of queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.bindings.queue import ops
from atoll.bindings.queue.ops import QueueBinding, refuse_one_more
from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.errors import BindingRefused


async def test_a_tenant_has_no_more_queues_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "MAX_QUEUES", 2)
    store = SqliteQueues(tmp_path / "queues.db")
    binding = QueueBinding(store)
    for name in ("first", "second"):
        await refuse_one_more(store, "alice")
        await binding.prepare("alice", f"0 {name}")
    with pytest.raises(BindingRefused, match=r"^403 the tenant has 2 queues"):
        await binding.prepare("alice", "0 third")
    with pytest.raises(BindingRefused):
        await refuse_one_more(store, "alice")
    await binding.prepare("alice", "0 second")  # which is there
    await binding.prepare("bob", "0 first")
    assert [queue.name for queue in await store.all("alice")] == ["first", "second"]
    await store.close()
