"""The list of bindings. A new one is a folder beside echo/ and a line here."""

from atoll.bindings.base import Binding
from atoll.bindings.echo.ops import Echo

BINDINGS: tuple[type[Binding], ...] = (Echo,)
