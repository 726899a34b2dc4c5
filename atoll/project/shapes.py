"""The fields of a config file, and what Atoll does with each.

`FIELDS` lists every field of Cloudflare's config and Atoll's own. Each is used, ignored with one line, or not
supported, which is an error. Those of bindings are in their manifests. The shapes hold only the subfields that are
used; subfields.py lists the others.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import msgspec

from atoll.manifests.config_fields import FieldVerdict, FindingLevel
from atoll.manifests.every import config_fields
from atoll.workers import Isolation, Switches


class ConfigRoute(msgspec.Struct):
    pattern: str
    custom_domain: bool = False
    enabled: bool = True


class Secrets(msgspec.Struct):
    required: list[str] = []


class Unsafe(msgspec.Struct):
    bindings: list[dict[str, Any]] = []


class ConfigLimits(msgspec.Struct):
    cpu_ms: int | None = None
    subrequests: int | None = None
    internal_subrequests: int | None = None  # Atoll's own
    wall_ms: int | None = None  # Atoll's own
    memory_mb: int | None = None  # Atoll's own


class Build(msgspec.Struct):
    command: str = ""
    cwd: str = ""
    watch_dir: str | list[str] = []


class ModuleRule(msgspec.Struct):
    type: str
    globs: list[str]
    fallthrough: bool = False


class Dev(msgspec.Struct):
    ip: str = "localhost"
    port: int | None = None


class Kind(Enum):
    """How an environment gets a field that it does not set itself."""

    INHERITED = "from the top level"
    OWN = "not at all: wrangler wants it repeated"
    TOP = "never: it stands at the top level only"


class Field(NamedTuple):
    kind: Kind
    shape: Any
    verdict: FieldVerdict = FieldVerdict.USED
    why: str = ""
    level: FindingLevel = FindingLevel.WARNING  # of the finding about an ignored field; a note if nothing is lost
    inert: Any = None  # the value for what Atoll does anyway: no finding


I, N, T = Kind.INHERITED, Kind.OWN, Kind.TOP  # noqa: E741 (a table wants short names)
IGNORED, MISSING, NOTE = FieldVerdict.IGNORED, FieldVerdict.MISSING, FindingLevel.NOTE


FIELDS: dict[str, Field] = {
    "$schema": Field(T, Any),  # editors use it
    "name": Field(I, str),
    "main": Field(I, str),
    "compatibility_date": Field(I, str),
    "compatibility_flags": Field(I, list[str]),
    "workers_dev": Field(I, bool),
    "preview_urls": Field(I, bool),
    "route": Field(I, str | ConfigRoute),
    "routes": Field(I, list[str | ConfigRoute]),
    "vars": Field(N, dict[str, Any]),
    "secrets": Field(N, Secrets),
    "keep_vars": Field(T, bool),
    "strict_env": Field(T, bool),  # Atoll's own, see read.py
    "unsafe": Field(N, Unsafe),
    "limits": Field(I, ConfigLimits),
    "isolation": Field(I, Isolation),  # Atoll's own
    "switches": Field(I, Switches),  # Atoll's own
    "build": Field(I, Build),
    "no_bundle": Field(I, bool),
    "minify": Field(I, bool),
    "keep_names": Field(I, bool),
    "rules": Field(I, list[ModuleRule]),
    "find_additional_modules": Field(I, bool),
    "base_dir": Field(I, str),
    "alias": Field(T, dict[str, str]),
    "define": Field(N, dict[str, str]),
    "wasm_modules": Field(I, dict[str, str]),
    "text_blobs": Field(I, dict[str, str]),
    "data_blobs": Field(I, dict[str, str]),
    "tsconfig": Field(I, str),
    "jsx_factory": Field(I, str),
    "jsx_fragment": Field(I, str),
    "dev": Field(T, Dev),
    "env": Field(T, dict[str, dict[str, Any]]),
    "node": Field(T, dict[str, Any]),  # Atoll's own: `atoll serve` uses it
    # Ignored, and nothing is lost
    "upload_source_maps": Field(I, bool, IGNORED, "source maps are always kept with the version", NOTE, True),
    "observability": Field(I, dict[str, Any], IGNORED, "every call is logged; `atoll logs` shows the logs", NOTE),
    "preserve_file_names": Field(I, bool, IGNORED, "module names do not change what a worker does", NOTE, False),
    "send_metrics": Field(T, bool, IGNORED, "Atoll sends no metrics", NOTE, False),
    "dependencies_instrumentation": Field(T, Any, IGNORED, "Atoll sends no list of packages", NOTE),
    "legacy_env": Field(T, bool, IGNORED, "an environment is a worker of its own, `name-env`", NOTE, True),
    "account_id": Field(I, str, IGNORED, "a node of your own has no accounts", NOTE),
    "compliance_region": Field(I, str, IGNORED, "data stays on the node", NOTE),
    # Ignored, and something is not done
    "previews": Field(I, Any, IGNORED, "there are no preview deployments: use an environment"),
    "logpush": Field(I, bool, IGNORED, "`atoll tail` and `atoll logs` show the logs"),
    "placement": Field(I, dict[str, Any], IGNORED, "a node does not move workers between places"),
    "cache": Field(I, Any, IGNORED, "there is no cache in front of workers"),
    "access": Field(I, Any, IGNORED, "put a proxy in front of the node that authenticates users"),
    "python_modules": Field(I, Any, IGNORED, "workers are JavaScript", inert={"exclude": ["**/*.pyc"]}),
    "streaming_tail_consumers": Field(N, list[Any], IGNORED, "tail workers get records of finished calls"),
    "first_party_worker": Field(I, bool, IGNORED, "it has no meaning outside Cloudflare"),
    "logfwdr": Field(T, Any, IGNORED, "it has no meaning outside Cloudflare"),
    # Not supported
    "connect": Field(N, list[Any], MISSING, "workers cannot listen on raw sockets"),
    "addresses": Field(N, list[Any], IGNORED, "the operator of the node routes addresses to workers"),
    "unsafe_hello_world": Field(N, list[Any], MISSING, "it is Cloudflare's example of a binding"),
    "dispatch_namespaces": Field(N, list[Any], MISSING, "Atoll does not have dispatch namespaces: deploy over the API"),
    "worker_loaders": Field(N, list[Any], MISSING, "Atoll does not have worker loaders: deploy over the API"),
    "pages_build_output_dir": Field(T, Any, MISSING, "this is a Pages project: Atoll runs Workers"),
}
CLOUDFLARE_ONLY = (
    "agent_memory ai_search ai_search_namespaces analytics artifacts browser cloudchamber containers flagship "
    "images k2 media pipelines stream vectorize vpc_networks "
    "vpc_services websearch"
)
FIELDS.update(
    {
        name: Field(N, Any, MISSING, "it is a Cloudflare service: call its API with fetch")
        for name in CLOUDFLARE_ONLY.split()
    }
)
FIELDS.update({field.name: Field(I if field.inherited else N, field.shape) for field in config_fields()})
