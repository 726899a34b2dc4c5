"""Bindings of the program that embeds a node: `Atoll(bindings=[…])`.

    class Inventory(HostBinding):
        kind = "inventory"
        javascript = '''
            const count = defineOp("inventory.count");
            defineBinding("inventory", class {
              #name;
              constructor(name) { this.#name = name; }
              async count(item) { return (await count({ binding: this.#name, item })).meta.count; }
            });
        '''

        @op("inventory.count")
        def count(self, call: OpCall) -> Reply:
            return Reply({"count": self.stock.get(call.meta.get("item"), 0)})

The Python half runs in the host program, with its rights: it must check what workers send. The JavaScript half runs in
the isolate of every worker, before any code of the worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from atoll.bindings.base import Binding
from atoll.errors import StartError
from atoll.manifests.every import manifests

NOT_ASCII = re.compile(r"[^\x00-\x7f]")
KIND = re.compile(r"[a-z][a-z0-9_]{0,62}")


class HostBinding(Binding):
    """The base class: set a `kind`, methods marked with @op, and the JavaScript that workers see."""

    javascript: ClassVar[str]  # has `defineOp` and `defineBinding`, in a scope of its own


def checked_host_bindings(bindings: Iterable[HostBinding]) -> tuple[HostBinding, ...]:
    """StartError if the kind of a binding is not valid or not unique."""
    found = tuple(bindings)
    kinds = [getattr(binding, "kind", "") for binding in found]
    for kind in kinds:
        if not KIND.fullmatch(kind):
            raise StartError(f"a binding has the kind {kind!r}", "use lower-case letters, digits and _, a letter first")
        if kind in manifests() or kinds.count(kind) > 1:
            raise StartError(f"there are two bindings of the kind `{kind}`", "choose another kind for yours")
    return found


def host_script(bindings: Iterable[HostBinding]) -> str:
    """The JavaScript halves of all host bindings, for the end of the platform's bundle."""
    scripts = [f"(({{ defineOp, defineBinding }}) => {{\n{each.javascript}\n}})(bundle.host);\n" for each in bindings]
    return NOT_ASCII.sub(_escaped, "".join(scripts))


def _escaped(letter: re.Match[str]) -> str:
    """A character as a JavaScript escape: V8 then keeps the bundle at one byte per character."""
    units = letter[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
