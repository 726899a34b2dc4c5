"""Which queues a deploy and the control API may create."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.bindings.queue import limits
from atoll.bindings.queue.consumer import QueueTriggers
from atoll.bindings.queue.limits import refuse_one_more
from atoll.bindings.queue.ops import QueueBinding
from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.engine.calls.events import EventRunner
from atoll.errors import BindingRefused


async def test_the_number_of_queues_of_a_tenant_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_QUEUES", 2)
    store = SqliteQueues(tmp_path / "queues.db")
    trigger = QueueTriggers(EventRunner(), store)
    binding = QueueBinding(store, trigger)
    for name in ("first", "second"):
        await refuse_one_more(store, "alice")
        await binding.prepare("alice", f"0 {name}")
    with pytest.raises(BindingRefused, match=r"^403 the tenant has reached the limit of 2 queues"):
        await binding.prepare("alice", "0 third")
    with pytest.raises(BindingRefused):
        await refuse_one_more(store, "alice")
    await binding.prepare("alice", "0 second")  # it exists
    await binding.prepare("bob", "0 first")
    assert [queue.name for queue in await store.all("alice")] == ["first", "second"]
    await trigger.close()
    await store.close()
