"""The OpenAPI 3.1 document of the control API, made from its routes, and an HTML page that shows it.

Paths, scopes and shapes come from the list of routes, schemas from the types that decode and encode the bodies. Every
declared Route is in the document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll import __version__
from atoll.api.bodies import JSON_TYPE
from atoll.api.callers import Scope
from atoll.api.multipart import FORM
from atoll.api.routes import HEADERS, Route
from atoll.control.checks.body import DeployBody
from atoll.control.edge.boundary import PAGE_HEADERS, Refusal

PARAMETER = re.compile(r"\{(\w+)(:path)?\}")
TENANT = {
    "name": "X-Atoll-Tenant",
    "in": "header",
    "description": "The tenant that an operator acts for; `default` if left out.",
    "schema": {"type": "string"},
}
INTRODUCTION = (
    "Deploys and inspects workers. Authenticate with `Authorization: Bearer <token>`; on a node that listens on a"
    " loopback address only, local tools need no token."
)

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Atoll: control API</title>
<style>
  :root {{ color-scheme: light dark; --ink: #16252d; --soft: #5b6f79; --line: #dbe4e8; --back: #fbfdfd; --code: #eef4f5;
    --link: #00707c; }}
  @media (prefers-color-scheme: dark) {{ :root {{ --ink: #e4eef1; --soft: #93a8b2; --line: #26363e; --back: #10191e;
    --code: #18252c; --link: #5fd0dc; }} }}
  body {{ margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem; background: var(--back); color: var(--ink);
    font: 16px/1.55 system-ui, sans-serif }}
  h1 {{ font-size: 1.6rem }} h2 {{ font-size: 1.15rem; margin: 2.2rem 0 .4rem }}
  a {{ color: var(--link) }} .soft {{ color: var(--soft) }}
  table {{ border-collapse: collapse; width: 100% }}
  td {{ vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line) }}
  code {{ font: 14px ui-monospace, monospace; overflow-wrap: anywhere }}
  b {{ font: 600 13px ui-monospace, monospace; color: var(--link) }}
</style>
<h1>Control API</h1>
<p class="soft">Atoll {version}. For programs: <a href="/api/openapi.json">/api/openapi.json</a> (OpenAPI 3.1).</p>
{tables}
<h2 id="shapes">Shapes</h2>
{shapes}
</html>
"""


class OpenApi:
    """Serves the document. It covers all routes, its own included, once `routes` was called with the others."""

    def __init__(self) -> None:
        self._document = b""
        self._page = ""

    def routes(self, others: Sequence[Route]) -> list[Route]:
        own = [
            Route(
                "GET",
                "/api/openapi.json",
                self.document,
                Scope.PUBLIC,
                "This API, as OpenAPI 3.1",
                gives=dict[str, Any],
            ),
            Route("GET", "/api", self.page, Scope.PUBLIC, "This API, as a web page", media="text/html"),
        ]
        document = described([*others, *own])
        self._document = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
        self._page = rendered(document)
        return own

    async def document(self, request: Request) -> Response:
        return Response(self._document, headers=HEADERS, media_type=JSON_TYPE)

    async def page(self, request: Request) -> Response:
        return Response(self._page, headers=PAGE_HEADERS, media_type="text/html")


def described(routes: Sequence[Route]) -> dict[str, Any]:
    """The document for a list of routes."""
    shapes = [shape for route in routes for shape in (route.takes, route.gives) if shape is not None]
    schemas, components = msgspec.json.schema_components([*shapes, Refusal], ref_template="#/components/schemas/{name}")
    known = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        takes = next(known) if route.takes is not None else None
        gives = next(known) if route.gives is not None else None
        path = PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = operation(route, takes, gives)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Atoll", "version": __version__, "description": INTRODUCTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def operation(route: Route, takes: object, gives: object) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.summary}
    if route.status != 204:
        schema = gives if gives is not None else {"type": "string"} if route.media != JSON_TYPE else {"type": "object"}
        answer["content"] = {route.media.split(";")[0]: {"schema": schema}}
    refusal = {"$ref": "#/components/schemas/Refusal"}
    found: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [tag(route)],
        "parameters": parameters(route),
        "responses": {
            str(route.status): answer,
            "default": {"description": "Refused", "content": {JSON_TYPE: {"schema": refusal}}},
        },
    }
    if takes is not None or route.raw:
        content = {route.raw: {"schema": {}}} if route.raw else {JSON_TYPE: {"schema": takes}}
        if route.takes is DeployBody:
            content[FORM] = {"schema": {"type": "object", "properties": {"metadata": {"type": "string"}}}}
        found["requestBody"] = {"required": True, "content": content}
    if route.scope is not Scope.PUBLIC:
        found["security"] = [{"token": []}, {}]
        whose = "an operator's token" if route.is_node else "a token"
        scope = "of any scope" if route.scope is Scope.ANY else f"with the scope `{route.scope}`"
        found["description"] = f"Needs {whose} {scope}."
    return found


def parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name, _ in PARAMETER.findall(route.path)
    ]
    found += [
        {"name": query.name, "in": "query", "description": query.summary, "schema": dict(query.schema)}
        for query in route.query
    ]
    return found if route.scope is Scope.PUBLIC else [*found, TENANT]


def operation_id(route: Route) -> str:
    words = re.findall(r"\w+", PARAMETER.sub(r"by_\1", route.path))
    return "_".join([route.method.lower(), *words]) or "get"


def tag(route: Route) -> str:
    words = re.findall(r"\w+", route.path.removeprefix("/api"))
    return words[0] if route.path.startswith("/api/") else "node"


def rendered(document: dict[str, Any]) -> str:
    """The document as a web page: a table of endpoints for each tag, then every shape."""
    rows: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            about = escape(found.get("description", "Public."))
            shape = found.get("requestBody", {}).get("content", {}).get(JSON_TYPE, {}).get("schema", {})
            rows.setdefault(found["tags"][0], []).append(
                f"<tr><td><b>{method.upper()}</b></td><td><code>{escape(path)}</code></td>"
                f"<td>{escape(found['summary'])}<br><span class=soft>{about}</span>"
                f"</td><td>{_linked(shape)}</td></tr>"
            )
    tables = "\n".join(f"<h2>{escape(name)}</h2>\n<table>{''.join(lines)}</table>" for name, lines in rows.items())
    shapes = "\n".join(_shape(name, shape) for name, shape in document["components"]["schemas"].items())
    return PAGE.format(version=escape(__version__), tables=tables, shapes=shapes)


def _shape(name: str, shape: dict[str, Any]) -> str:
    fields = "".join(_field(field, schema, shape) for field, schema in shape.get("properties", {}).items())
    about = escape(shape.get("description", ""))
    return f'<h2 id="{escape(name)}">{escape(name)}</h2>\n<p class=soft>{about}</p><table>{fields}</table>'


def _field(name: str, schema: dict[str, Any], shape: dict[str, Any]) -> str:
    needed = " (required)" if name in shape.get("required", ()) else ""
    return f"<tr><td><code>{escape(name)}</code>{needed}</td><td>{_linked(schema)}</td></tr>"


def _linked(schema: dict[str, Any]) -> str:
    """A schema in words, with links to the shapes it names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_linked(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        inner = schema.get("items") or {}
        return f"array of {_linked(inner)}" if isinstance(inner, dict) else "array"
    return escape(
        str(schema.get("type") or ("one of " + ", ".join(map(str, schema["enum"])) if "enum" in schema else ""))
    )
