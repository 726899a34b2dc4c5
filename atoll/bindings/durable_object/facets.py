"""Facets: child objects within an object, each with its own database. https://developers.cloudflare.com/dynamic-workers/usage/durable-object-facets/

A facet is an object of the same namespace for storage, commits and calls. Its id is a digest of the id of the outermost
object and of the names that lead to it. It is no id that a worker could make, so only the object around a facet reaches
it. The caller is known by the call that its engine sends an op for; the op names the child alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from atoll.bindings.durable_object.entries import CLASS_NAME
from atoll.bindings.durable_object.namespaces import FacetRow, Namespaces
from atoll.bindings.scope import CallScope
from atoll.bindings.services import FacetTarget, Objects, ObjectTarget
from atoll.errors import InvalidArgument, StorageFailed
from atoll.objects.store import ObjectDamaged, ObjectKey

log = logging.getLogger("atoll.objects")

FACET = "facet "  # begins the name of a facet, where otherwise the name of a binding stands
MAX_FACET = 64 << 10  # characters of such a name
MAX_NAME = 256
MAX_DEPTH = 4  # with the outermost object
CLONED_TEXT = "Facet was replaced by a clone."
UNREADABLE_TEXT = "Durable Object storage cannot be read."


class FacetName(msgspec.Struct, forbid_unknown_fields=True):
    """What an object says of a facet."""

    name: str
    class_name: str = msgspec.field(name="class", default="")
    props: dict[str, Any] = {}
    id: str = ""  # that its ctx.id shows; "": that of the object around it
    id_name: str | None = msgspec.field(name="idName", default=None)


def is_facet(name: object) -> bool:
    return isinstance(name, str) and name.startswith(FACET)


class Facets:
    def __init__(self, namespaces: Namespaces, objects: Callable[[], Objects], *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        self._namespaces = namespaces
        self._objects = objects

    def target(self, scope: CallScope, text: str) -> ObjectTarget:
        """The facet that the object behind a call names."""
        if self._is_shared:
            raise InvalidArgument("facets are not there yet on nodes that share Durable Objects")
        try:
            said = msgspec.json.decode(text[len(FACET) :], type=FacetName) if len(text) <= MAX_FACET else None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            said = None
        if said is None or not CLASS_NAME.fullmatch(said.class_name) or len(said.id) > 4 * MAX_NAME:
            raise InvalidArgument("the name of a facet is malformed")
        around = self._around(scope)
        root, path = self._child(around, said.name)
        id = facet_id(root, path)
        shown, name = (said.id, said.id_name) if said.id else shown_id(around)
        key = ObjectKey(around.namespace, around.id)
        facet = FacetTarget(key, root, path, shown, name, said.props)
        self._namespaces.know_facet(FacetRow(around.namespace, id, root, json.dumps(path)))
        return ObjectTarget(around.namespace, id, said.class_name, True, None, (), facet)

    def _around(self, scope: CallScope) -> ObjectTarget:
        key = scope.object_key
        found = self._objects().target(key) if isinstance(key, ObjectKey) else None
        if found is None:
            raise InvalidArgument("only a Durable Object has facets")
        return found

    def _child(self, around: ObjectTarget, name: str) -> tuple[str, tuple[str, ...]]:
        if len(name) > MAX_NAME:
            raise InvalidArgument(f"Facet name is too long (max {MAX_NAME} characters).")
        root, path = (around.facet.root, around.facet.path) if around.facet is not None else (around.id, ())
        if len(path) + 2 > MAX_DEPTH:
            raise InvalidArgument(
                "Facet nesting depth limit exceeded. The maximum depth including the root Durable Object is"
                f" {MAX_DEPTH}."
            )
        return root, (*path, name)

    async def end(self, scope: CallScope, name: object, reason: object, deletes: bool) -> None:
        """Stop a facet and those within it; with `deletes` delete what they stored as well."""
        if not isinstance(name, str) or not isinstance(reason, str):
            raise InvalidArgument("the name of a facet is malformed")
        around = self._around(scope)
        root, path = self._child(around, name)
        rows = self._namespaces.facets_in(around.namespace, root, path)
        keys = {ObjectKey(row.namespace, row.id) for row in rows} | {ObjectKey(around.namespace, facet_id(root, path))}
        for key in keys:
            self._objects().reset(key, reason[:4096])
        if deletes:
            await self.delete(rows)

    async def clone(self, scope: CallScope, name: object, to: object) -> None:
        """Give a facet a copy of what another one and those within it have stored, in place of its own.

        What the first one has committed is copied, while it runs. What is known to be within an object is deleted with
        it, so a copy is known before anything is stored of it.
        """
        if not isinstance(name, str) or not isinstance(to, str) or name == to:
            raise InvalidArgument("the name of a facet is malformed")
        around = self._around(scope)
        root, path = self._child(around, name)
        _, target = self._child(around, to)
        rows = self._namespaces.facets_in(around.namespace, root, path)
        for row in rows:  # before anything is deleted
            await self._copy(row, None)
        await self.end(scope, to, CLONED_TEXT, deletes=True)
        for row in rows:
            inner = (*target, *json.loads(row.path)[len(path) :])
            if refusal := self._objects().refuses_new(around.namespace):
                raise InvalidArgument(refusal)
            copied = FacetRow(around.namespace, facet_id(root, inner), root, json.dumps(inner))
            self._namespaces.know_facet(copied)
            await self._copy(row, ObjectKey(row.namespace, copied.id))

    async def _copy(self, row: FacetRow, target: ObjectKey | None) -> None:
        try:
            await self._objects().store.copy(ObjectKey(row.namespace, row.id), target)
        except ObjectDamaged as error:
            log.error("facet %s of namespace %s cannot be cloned: %s", row.id, row.namespace, error)
            raise StorageFailed(UNREADABLE_TEXT) from None

    async def delete(self, rows: list[FacetRow]) -> None:
        for row in rows:
            await self._objects().delete(ObjectKey(row.namespace, row.id))
            await self._namespaces.forget_facet(row)


def facet_id(root: str, path: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(["facet", root, *path]).encode()).hexdigest()


def shown_id(around: ObjectTarget) -> tuple[str, str | None]:
    return (around.facet.shown, around.facet.shown_name) if around.facet is not None else (around.id, around.name)
