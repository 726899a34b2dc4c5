"""The shapes of what a config file may hold, field by field, and what Atoll does with each.

One table, `FIELDS`, is the whole list: a field of Cloudflare's config that is not in it is told to be unknown, one that
Atoll has no part for is told so, and nothing is passed over in silence.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import msgspec

from atoll.workers import Isolation, Switches


class Route(msgspec.Struct):
    pattern: str
    zone_id: str = ""
    zone_name: str = ""
    custom_domain: bool = False
    enabled: bool = True
    previews_enabled: bool = False


class Triggers(msgspec.Struct):
    crons: list[str] | None = None


class Secrets(msgspec.Struct):
    required: list[str] = []


class KvNamespace(msgspec.Struct):
    binding: str
    id: str = ""
    preview_id: str = ""
    remote: bool = False


class Producer(msgspec.Struct):
    binding: str
    queue: str
    delivery_delay: int | None = None
    remote: bool = False


class Consumer(msgspec.Struct):
    queue: str
    max_batch_size: int | None = None
    max_batch_timeout: int | None = None
    max_retries: int | None = None
    dead_letter_queue: str | None = None
    max_concurrency: int | None = None
    retry_delay: int | None = None
    type: str = "worker"
    visibility_timeout_ms: int | None = None


class Queues(msgspec.Struct):
    producers: list[Producer] = []
    consumers: list[Consumer] = []


class Service(msgspec.Struct):
    binding: str
    service: str
    entrypoint: str = ""
    props: dict[str, Any] | None = None
    environment: str = ""
    remote: bool = False


class Tail(msgspec.Struct):
    service: str
    environment: str = ""


class Window(msgspec.Struct):
    limit: int
    period: int


class RateLimit(msgspec.Struct):
    name: str
    namespace_id: str | int
    simple: Window


class Unsafe(msgspec.Struct):
    bindings: list[dict[str, Any]] = []
    metadata: dict[str, Any] = {}


class VersionMetadata(msgspec.Struct):
    binding: str


class Limits(msgspec.Struct):
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
    inspector_port: int | None = None
    inspector_ip: str = ""
    local_protocol: str = "http"
    upstream_protocol: str = ""
    host: str = ""
    generate_types: bool = False
    enable_containers: bool = False
    container_engine: str = ""


class Kind(Enum):
    """How an environment gets a field it does not give itself."""

    INHERITED = "from the top level"
    OWN = "not at all: wrangler wants it repeated"
    TOP = "never: it stands at the top level only"


class Verdict(Enum):
    USED = "used"
    QUIET = "nothing to do here, and nothing is lost"
    IGNORED = "not done; the worker runs all the same"
    MISSING = "Atoll has no such part: the worker would miss it"


class Field(NamedTuple):
    kind: Kind
    shape: Any
    verdict: Verdict = Verdict.USED
    why: str = ""


I, N, T = Kind.INHERITED, Kind.OWN, Kind.TOP  # noqa: E741 (a table wants short names)
QUIET, IGNORED, MISSING = Verdict.QUIET, Verdict.IGNORED, Verdict.MISSING


FIELDS: dict[str, Field] = {
    "$schema": Field(T, Any, QUIET),
    "name": Field(I, str),
    "main": Field(I, str),
    "compatibility_date": Field(I, str),
    "compatibility_flags": Field(I, list[str]),
    "workers_dev": Field(I, bool),
    "route": Field(I, str | Route),
    "routes": Field(I, list[str | Route]),
    "triggers": Field(I, Triggers),
    "vars": Field(N, dict[str, Any]),
    "secrets": Field(N, Secrets),
    "keep_vars": Field(T, bool),
    "strict_env": Field(T, bool),  # Atoll's own, see read.py
    "kv_namespaces": Field(N, list[KvNamespace]),
    "queues": Field(N, Queues),
    "services": Field(N, list[Service]),
    "ratelimits": Field(N, list[RateLimit]),
    "unsafe": Field(N, Unsafe),
    "version_metadata": Field(N, VersionMetadata),
    "tail_consumers": Field(N, list[Tail]),
    "limits": Field(I, Limits),
    "isolation": Field(I, Isolation),  # Atoll's own
    "switches": Field(I, Switches),  # Atoll's own
    "build": Field(I, Build),
    "no_bundle": Field(I, bool),
    "minify": Field(I, bool),
    "keep_names": Field(I, bool),
    "rules": Field(I, list[ModuleRule]),
    "alias": Field(T, dict[str, str]),
    "define": Field(N, dict[str, str]),
    "tsconfig": Field(I, str),
    "jsx_factory": Field(I, str),
    "jsx_fragment": Field(I, str),
    "dev": Field(T, Dev),
    "env": Field(T, dict[str, dict[str, Any]]),
    "node": Field(T, dict[str, Any], QUIET),  # atoll.toml: the settings of `atoll serve`
    # Nothing to do here
    "upload_source_maps": Field(I, bool, QUIET),  # always: they are stored with the version
    "observability": Field(I, dict[str, Any], QUIET),  # every call is logged
    "find_additional_modules": Field(I, bool, QUIET),  # imports are followed
    "preserve_file_names": Field(I, bool, QUIET),
    "send_metrics": Field(T, bool, QUIET),  # Atoll sends none
    "legacy_env": Field(T, bool, QUIET),
    # Not done
    "account_id": Field(I, str, IGNORED, "a node of your own has no account"),
    "preview_urls": Field(I, bool, IGNORED, "versions have no address of their own yet"),
    "base_dir": Field(I, str, IGNORED, "modules are named from the folder of `main`"),
    "logpush": Field(I, bool, IGNORED, "`atoll tail` and `atoll logs` show the logs"),
    "placement": Field(I, dict[str, Any], IGNORED, "a node runs where it runs"),
    "cache": Field(I, Any, IGNORED, "no cache stands in front of a worker"),
    "access": Field(I, Any, IGNORED, "put a proxy in front that asks who is there"),
    "compliance_region": Field(I, str, IGNORED, "data stays on the node"),
    "python_modules": Field(I, Any, IGNORED, "workers are JavaScript"),
    "streaming_tail_consumers": Field(N, list[Any], IGNORED, "use `tail_consumers`"),
    "first_party_worker": Field(I, bool, IGNORED, "it means nothing outside Cloudflare"),
    "logfwdr": Field(T, Any, IGNORED, "it means nothing outside Cloudflare"),
    # Parts that Atoll does not have
    "assets": Field(I, Any, MISSING, "static assets are not there yet: import files as text or data"),
    "site": Field(T, Any, MISSING, "Workers Sites are not there: import files as text or data"),
    "durable_objects": Field(N, Any, MISSING, "Durable Objects are not there yet"),
    "migrations": Field(I, list[Any], MISSING, "they belong to Durable Objects, which are not there yet"),
    "exports": Field(I, Any, MISSING, "it declares Durable Objects, which are not there yet"),
    "r2_buckets": Field(N, list[Any], MISSING, "R2 is not there yet"),
    "d1_databases": Field(N, list[Any], MISSING, "D1 is not there yet"),
    "analytics_engine_datasets": Field(N, list[Any], MISSING, "Analytics Engine is not there: log instead"),
    "hyperdrive": Field(N, list[Any], MISSING, "Hyperdrive is not there"),
    "workflows": Field(N, list[Any], MISSING, "Workflows are not there: queues and crons are"),
    "dispatch_namespaces": Field(N, list[Any], MISSING, "dispatch is not there: deploy over the API"),
    "worker_loaders": Field(N, list[Any], MISSING, "worker loaders are not there: deploy over the API"),
    "wasm_modules": Field(T, Any, MISSING, 'import the file instead: import module from "./x.wasm"'),
    "text_blobs": Field(T, Any, MISSING, 'import the file instead: import text from "./x.txt"'),
    "data_blobs": Field(T, Any, MISSING, 'import the file instead: import data from "./x.bin"'),
    "pages_build_output_dir": Field(T, Any, MISSING, "this is a Pages project: Atoll runs Workers"),
}
CLOUDFLARE_ONLY = (
    "agent_memory ai ai_search ai_search_namespaces artifacts browser cloudchamber containers flagship images media "
    "mtls_certificates pipelines secrets_store_secrets send_email stream vectorize vpc_networks vpc_services websearch"
)
FIELDS.update(
    {
        name: Field(N, Any, MISSING, "it is a service of Cloudflare's, reach it with fetch")
        for name in CLOUDFLARE_ONLY.split()
    }
)
