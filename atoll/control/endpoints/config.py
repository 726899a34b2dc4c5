"""GET /api/config: the node's settings, and where each value comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.routes import Route, json_answer
from atoll.config import FIELDS, Settings, env_names, facts_of, shown_value

CREDENTIALS = re.compile(r"//[^/@]*@")  # of an address


class SettingAnswer(msgspec.Struct):
    name: str
    value: str  # as written in a config file
    origin: str  # default, a line of a file, a variable or a flag
    env: str  # its name in the environment
    doc: str


class ConfigAnswer(msgspec.Struct):
    settings: list[SettingAnswer]


class ConfigApi:
    def __init__(self, settings: Settings, origins: Mapping[str, str] | None) -> None:
        """`origins` has the settings that are not defaults; None if a program made the settings."""
        self._settings = settings
        self._origins = origins

    def routes(self) -> list[Route]:
        summary = "The node's settings, and where each comes from"
        return [Route("GET", "/api/config", self.show, Scope.READ, summary, gives=ConfigAnswer, is_node=True)]

    async def show(self, request: Request) -> Response:
        return json_answer(ConfigAnswer([self._shown(name) for name in FIELDS]))

    def _shown(self, name: str) -> SettingAnswer:
        value = self._settings.value(name)
        if self._origins is not None:
            origin = self._origins.get(name, "default")
        else:
            origin = "default" if value == FIELDS[name].default else "program"
        text = CREDENTIALS.sub("//REDACTED@", shown_value(value))
        return SettingAnswer(name, text, origin, list(env_names(name))[-1], facts_of(name).doc)
