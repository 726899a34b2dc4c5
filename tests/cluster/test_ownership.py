"""Leases, ownership and fenced writes under random schedules: nodes that stop, clocks that differ, lost answers.

The model is the protocol of atoll/objects/shared with its I/O replaced by a table. It uses the decisions of
atoll/postgres/ownership.py, so a change there that breaks a promise fails here. The checker is tested too: variants of
the protocol that lack one of its parts must be found.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.postgres.ownership import MARGIN, Lease, Owner, WriteOutcome, Written, may_take, outcome

SECONDS = 6.0
NODES = 3


class Broken(Exception):
    """A promise does not hold."""


@dataclass
class Variant:
    checks_epoch: bool = True
    checks_seq: bool = True
    answers_before: bool = False  # the reply leaves before the commit
    ignores_lease: bool = False


@dataclass
class Row:
    owner: str = ""
    epoch: int = 0
    log: list[tuple[int, int]] = field(default_factory=list)  # (epoch, write)


@dataclass
class Statement:
    """An append on its way to the database, or back."""

    node: int
    epoch: int
    before: int
    write: int
    is_repeat: bool = False


@dataclass
class Copy:
    epoch: int
    log: list[int]  # the writes that it has seen committed
    waiting: Statement | None = None
    unknown: Statement | None = None  # the answer was lost


class World:
    """One object, its row, and three nodes with clocks of their own speed."""

    def __init__(self, variant: Variant, speeds: list[float]) -> None:
        self.variant = variant
        self.now = 0.0
        self.row = Row()
        self.speeds = speeds
        self.expires = [0.0] * NODES  # by the clock of the database
        self.leases = [Lease(SECONDS) for _ in range(NODES)]
        self.renewals: list[list[float]] = [[] for _ in range(NODES)]  # when those under way were sent
        self.copies: list[Copy | None] = [None] * NODES
        self.on_way: list[Statement] = []
        self.acknowledged: list[int] = []
        self.next_write = 0
        self.read: dict[int, int] = {}  # by epoch: the most writes that it has shown

    def clock(self, node: int) -> float:
        return 100.0 + self.now * self.speeds[node]

    # What may happen

    def send_renewal(self, node: int) -> None:
        self.renewals[node].append(self.clock(node))

    def renew(self, node: int) -> None:
        if self.renewals[node]:
            sent = self.renewals[node].pop(0)
            is_first = self.expires[node] == 0.0
            if is_first or self.now < self.expires[node]:
                self.expires[node] = self.now + SECONDS
            else:  # it joins again; the answer comes at once
                self.expires[node], sent = self.now + SECONDS, self.clock(node)
            self.leases[node].on_lapse = lambda: self.drop(node)
            self.leases[node].renew(sent, self.clock(node))

    def drop(self, node: int) -> None:
        self.copies[node] = None

    def take(self, node: int) -> None:
        if self.now >= self.expires[node]:
            return
        owner = self.row.owner
        is_live = owner != "" and self.now < self.expires[int(owner)]
        if may_take(Owner(owner, is_live), str(node)):
            self.row.owner, self.row.epoch = str(node), self.row.epoch + 1
            self.copies[node] = Copy(self.row.epoch, [write for _, write in self.row.log])

    def write(self, node: int) -> None:
        copy = self.copies[node]
        if copy is not None and copy.waiting is None and copy.unknown is None:
            self.next_write += 1
            copy.waiting = Statement(node, copy.epoch, len(copy.log), self.next_write)
            self.on_way.append(copy.waiting)
            if self.variant.answers_before:
                self.answer(node, copy, self.next_write)

    def commit(self, which: int, is_lost: bool) -> None:
        """A statement reaches the database; its answer may be lost."""
        if not self.on_way:
            return
        statement = self.on_way.pop(which % len(self.on_way))
        is_done = self.append(statement)
        copy = self.copies[statement.node]
        if copy is None or copy.waiting is not statement:
            return
        copy.waiting = None
        if is_lost or (statement.is_repeat and not is_done):
            copy.unknown = statement
        elif is_done:
            self.committed(statement.node, copy, statement)
        else:
            self.copies[statement.node] = None  # fenced

    def cut(self, node: int) -> None:
        """The connection breaks while a statement is on its way. It may arrive nevertheless, later."""
        copy = self.copies[node]
        if copy is not None and copy.waiting is not None:
            copy.unknown, copy.waiting = copy.waiting, None

    def append(self, statement: Statement) -> bool:
        may = statement.epoch == self.row.epoch or not self.variant.checks_epoch
        may = may and (statement.before == len(self.row.log) or not self.variant.checks_seq)
        if may:
            self.row.log.append((statement.epoch, statement.write))
        return may

    def look(self, node: int) -> None:
        """Find out what became of a statement."""
        copy = self.copies[node]
        if copy is None or copy.unknown is None:
            return
        statement, copy.unknown = copy.unknown, None
        found = Written(self.row.epoch, len(self.row.log))
        became = outcome(found, statement.epoch, statement.before, statement.before + 1)
        if became is WriteOutcome.COMMITTED:
            self.committed(node, copy, statement)
        elif became is WriteOutcome.REPEAT:
            copy.waiting = replace(statement, is_repeat=True)
            self.on_way.append(copy.waiting)
        else:
            self.copies[node] = None

    def committed(self, node: int, copy: Copy, statement: Statement) -> None:
        copy.log.append(statement.write)
        if not self.variant.answers_before:
            self.answer(node, copy, statement.write)

    def answer(self, node: int, copy: Copy, write: int) -> None:
        if self.holds(node):
            self.acknowledged.append(write)

    def holds(self, node: int) -> bool:
        return self.variant.ignores_lease or self.leases[node].holds(self.clock(node))

    def show(self, node: int) -> None:
        """A read. It shows everything that was acknowledged before, whichever node did that."""
        copy = self.copies[node]
        if copy is None or not self.holds(node):
            return
        missing = set(self.acknowledged) - set(copy.log)
        if missing and not self.variant.answers_before:
            raise Broken(f"node {node} does not show {missing}")
        if any(epoch > copy.epoch for epoch in self.read):
            raise Broken(f"the copy of epoch {copy.epoch} answers after a newer one")
        self.read[copy.epoch] = len(copy.log)

    def check(self) -> None:
        stored = [write for _, write in self.row.log]
        if len(stored) != len(set(stored)):
            raise Broken("a write is there twice")
        if not set(self.acknowledged) <= set(stored):
            raise Broken("a write that was acknowledged is lost")
        epochs = [epoch for epoch, _ in self.row.log]
        if epochs != sorted(epochs):
            raise Broken("an epoch went back")


ACTS: list[Callable[[World, int], None] | None] = [
    World.send_renewal, World.renew, World.take, World.write, None, World.cut, World.look, World.show, World.drop,
]  # fmt: skip
WEIGHTS = [4, 4, 5, 5, 3, 1, 3, 4, 0.2]  # None: a statement arrives


def run(world: World, choice: random.Random, steps: int) -> None:
    for _ in range(steps):
        node = choice.randrange(NODES)
        act = choice.choices(ACTS, WEIGHTS)[0]
        if act is None:
            world.commit(choice.randrange(8), choice.random() < 0.3)
        else:
            act(world, node)
        if choice.random() < 0.3:
            world.now += choice.choice([0.01, 0.5, 2.0, 7.0])
    # Everything that is still on its way arrives
    for _ in range(len(world.on_way)):
        world.commit(0, is_lost=False)
    if not world.variant.answers_before:
        world.check()
        return
    for node in range(NODES):  # what was answered must be there once no one can repeat it
        world.copies[node] = None
    world.check()


@given(seed=st.integers(0, 2**32), drift=st.lists(st.floats(-MARGIN / 2, MARGIN / 2), min_size=NODES, max_size=NODES))
@settings(max_examples=300, deadline=None)
def test_nothing_acknowledged_is_lost_and_no_former_owner_answers(seed: int, drift: list[float]) -> None:
    run(World(Variant(), [1 + each for each in drift]), random.Random(seed), 200)


@pytest.mark.parametrize(
    "variant",
    [
        Variant(checks_epoch=False),
        Variant(checks_seq=False),
        Variant(answers_before=True),
        Variant(ignores_lease=True),
    ],
    ids=["without the epoch", "without the number", "with the reply before the commit", "without the lease"],
)
def test_the_checker_finds_a_protocol_that_lacks_a_part(variant: Variant) -> None:
    for seed in range(5_000):
        try:
            run(World(variant, [1.0] * NODES), random.Random(seed), 200)
        except Broken:
            return
    pytest.fail("5,000 schedules did not show the fault")
