"""The settings of a node: their names, defaults and documentation. atoll/config_loading.py reads their values.

`Settings` and the manifests of bindings are the only lists: the documentation, the flags of `atoll serve` and the
environment variables derive from them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from atoll.config_values import shown
from atoll.manifests.every import manifests
from atoll.manifests.manifest import MB, Facts

T = TypeVar("T")


def setting(
    default: T,
    doc: str,
    *,
    low: float = 0,
    high: float = 2**53,
    also: str = "",
    shown: str = "",
    words: tuple[str, ...] = (),
    free: bool = False,
) -> T:
    return dataclasses.field(default=default, metadata={"facts": Facts(doc, low, high, also, shown, words, free)})


@dataclass(frozen=True)
class Settings:
    """One node's configuration. Sizes are bytes and times are seconds unless the name says otherwise."""

    # Addresses and host names
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8080, "Port to listen on; 0 picks a free one.", high=65535)
    base_domain: str = setting("localhost", "Workers answer on <name>.<base domain>.")
    public_url: str = setting(
        "",
        "Address at which clients reach the node, if a proxy is in front of it, such as https://apps.example.com. Its"
        " host is the base domain.",
        shown="the node's own",
    )
    preview_urls: str = setting(
        "on",
        "Whether versions can be reached by preview URLs, <8 digits of the id>-<name>.<base domain>: on or off.",
        words=("on", "off"),
    )
    control_hosts: tuple[str, ...] = setting(
        (), "Host names, separated by commas, that serve the control API in addition to localhost, 127.0.0.1 and [::1]."
    )
    reserved_host_days: float = setting(
        30.0, "Days for which a released host stays reserved for its tenant; 0 reserves none.", high=36_500
    )
    https_port: int = setting(0, "Port for HTTPS, in addition to the plain port; 0 disables it.", high=65535)
    certificates: Path = setting(  # noqa: RUF009 (a Path cannot be changed)
        Path("certificates"),
        "Folder with certificates for HTTPS: <host>.pem, with its key in the same file or in <host>.key.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or ranges of proxies, separated by commas, whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
        free=True,
    )
    geo_files: tuple[str, ...] = setting(
        (),
        "Files in MaxMind's format, separated by commas, with countries, cities or networks of clients for request.cf.",
        free=True,
    )
    control_auth: str = setting(
        "auto",
        "Who needs a token for the control API: auto exempts tools on this machine, token exempts nobody.",
        words=("auto", "token"),
    )

    # Storage
    data: Path = setting(  # noqa: RUF009 (a Path cannot be changed)
        Path(".atoll"), "Folder for everything the node stores. Only one node may use it at a time."
    )
    store: str = setting(
        "sqlite",
        "Where the data is that all nodes share: sqlite, for a node by itself, or postgresql://user:password@host/database"
        " (docs/guides/cluster.md).",
    )
    only_node: str = setting(
        "off",
        "Whether this node is the only one on its PostgreSQL: on allows what cannot be shared yet, such as Workflows.",
        words=("on", "off"),
    )
    node_name: str = setting("", "Name of this node among others.", shown="its address")
    node_address: str = setting(
        "", "Address, host:port, at which a load balancer reaches this node.", shown="host and port"
    )
    node_link: str = setting(
        "",
        "Address, host:port, at which this node listens for the others; the port 0 is any free one.",
        shown="host, port 0",
    )
    metrics_workers: int = setting(
        200, "Number of workers with their own series in /metrics; all others share one.", high=10_000
    )
    otlp_endpoint: str = setting(
        "",
        "URL that receives traces, such as http://localhost:4318/v1/traces; needs `pip install '.[otel]'`.",
        shown="none",
    )
    otlp_metrics_endpoint: str = setting(
        "", "URL that receives metrics, such as http://localhost:4318/v1/metrics.", shown="none"
    )
    otlp_metrics_seconds: float = setting(60.0, "Time between two messages with metrics.", low=1)
    otlp_logs_endpoint: str = setting(
        "", "URL that receives logs of workers and of the node, such as http://localhost:4318/v1/logs.", shown="none"
    )
    trace_share: float = setting(0.01, "Share of calls that are traced when otlp_endpoint is set, from 0 to 1.", high=1)
    access_log: str = setting(
        "", "Where each request gets a line: stdout, or a file. Empty: there is no access log.", shown="none"
    )
    access_log_format: str = setting(
        "combined", "Lines of the access log: combined, as nginx and Apache, or json.", words=("combined", "json")
    )
    access_log_share: float = setting(1.0, "Share of requests that get a line, from 0 to 1.", high=1)
    access_log_bytes: int = setting(100 * MB, "Size at which the file is rotated; 0 never rotates it.")
    access_log_files: int = setting(5, "Rotated files that are kept: access.log.1 is the newest.", high=1_000)
    node_log_format: str = setting(
        "text", "Lines of the node's own log, on standard error: text or json.", words=("text", "json")
    )
    node_log_level: str = setting(
        "info", "The least that the node logs of itself.", words=("debug", "info", "warning", "error")
    )
    log_days: float = setting(7.0, "Days for which log records are kept.", low=0.001, high=36_500)
    log_bytes: int = setting(
        512 * MB,
        "Maximum size of all log records; above it the oldest records of the largest tenant are deleted.",
        low=MB,
    )
    log_rate: int = setting(
        1_000,
        "Log records kept per second and worker, twice as many with console lines or errors; the rest are counted.",
    )
    log_quiet_rate: int = setting(
        2_000, "Log records kept per second for calls of all workers that wrote no line and did not fail."
    )
    object_history_days: float = setting(
        30.0, "Days for which Durable Objects and D1 databases can go back in time; 0 keeps no history.", high=3650
    )
    object_history_bytes: int = setting(
        256 * MB, "Maximum size of the history of one object; the oldest part goes first.", low=MB
    )
    object_history_node_bytes: int = setting(
        10_000 * MB, "Maximum size of the history of all objects of this node.", low=MB
    )
    asset_grace_hours: float = setting(
        24.0, "Hours for which uploaded static assets are kept although no version names them.", high=8_760
    )
    asset_cache_bytes: int = setting(64 * MB, "Memory for small static assets that were requested recently.")

    # Engines
    processes: int = setting(
        1,
        "Number of equal node processes that share the port, on nodes with PostgreSQL; each has a port of its own after"
        " it, and its part of the engines.",
        low=1,
        high=64,
    )
    engines: int = setting(
        len(os.sched_getaffinity(0)),
        "Number of engine processes.",
        low=1,
        high=256,
        also="PERSISTENT_WORKER_POOL_SIZE",
        shown="one per core",
    )
    engine_threads: int = setting(4, "Threads per engine that run workers.", low=1, high=64)
    spares: int = setting(4, "Spare isolates that each engine keeps; up to four times as many under demand.", high=64)
    sandbox: str = setting(
        "try",
        "Whether the operating system must confine engines: require, try or off.",
        words=("require", "try", "off"),
    )
    worker_clock: str = setting(
        "frozen",
        "Whether time stands still while a worker computes: frozen for every worker, live allows exceptions.",
        words=("frozen", "live"),
    )
    max_loaded: int = setting(
        1000,
        "Loaded isolates in all engines; above it the longest idle one is evicted.",
        low=1,
        also="ISOLATE_POOL_SIZE",
    )
    idle_seconds: float = setting(30.0, "Time without a call after which a worker is unloaded.")
    worker_queue: int = setting(
        100, "Calls that may wait for one worker; more are refused with 503.", low=1, also="WORKER_TASK_QUEUE_SIZE"
    )
    worker_calls: int = setting(1000, "Concurrent calls of one worker; more are refused with 503.", low=1)
    worker_isolates: int = setting(
        256,
        "Maximum number of isolates of a busy worker, each in another engine; 1 keeps every worker in one.",
        low=1,
        high=256,
    )
    tenant_calls: int = setting(2000, "Concurrent calls of one tenant; more are refused with 429.", low=1)
    tenant_loaded: int = setting(
        0, "Loaded isolates of one tenant; above it the tenant's own idle ones are evicted. 0 means max_loaded."
    )
    tenant_buffer_mb: int = setting(
        64,
        "Memory for bodies and messages in transit of one tenant. Above it, its connections get small windows.",
        low=1,
        high=65_536,
    )
    own_engines: int = setting(
        16, "Engine processes for a single tenant or worker, in addition to the shared ones.", high=256
    )
    health_check_ms: int = setting(
        1000,
        "Interval of engine heartbeats; an engine that misses five is replaced.",
        low=50,
        also="WORKER_HEALTH_CHECK_INTERVAL_MS",
    )
    heap_initial_mb: int = setting(
        0,
        "Heap size up to which V8 delays garbage collection in an isolate; 0 uses V8's default.",
        high=4096,
        also="ISOLATE_HEAP_INITIAL_MB",
    )
    restart_memory_mb: int = setting(
        256,
        "Memory, plus 10 MB per loaded worker, above which an engine is replaced; 0 disables this.",
        also="WORKER_RESTART_MEMORY_THRESHOLD_MB",
    )
    restart_hours: float = setting(24.0, "Age at which an engine is replaced; 0 disables this.")
    min_free_mb: int = setting(
        256, "Free memory of the machine or control group below which idle workers are evicted; 0 disables this."
    )
    quarantine_seconds: float = setting(
        3600.0, "Time for which a worker that ended two engines is kept in its own engine process."
    )
    blocked_seconds: float = setting(
        600.0, "Time for which a worker that ended its own engine is refused, unless a new version is deployed."
    )

    # HTTP
    header_bytes: int = setting(128 * 1024, "Largest request head: all header lines together.", low=1024, high=MB)
    url_bytes: int = setting(16 * 1024, "Longest request target.", low=256, high=MB)
    body_bytes: int = setting(100 * MB, "Largest request body to a worker.", low=1)
    header_timeout: float = setting(10.0, "Time in which a client must send the whole request head.", low=0.1)
    body_timeout: float = setting(30.0, "Longest pause within a request body.", low=0.1)
    idle_timeout: float = setting(75.0, "Time for which an idle connection is kept open between requests.", low=0.1)
    drain_delay: float = setting(
        0.0, "Time between the first failing /readyz and the closing of the port, when the node stops.", high=3600
    )
    socket_timeout: float = setting(
        120.0, "Time after which a silent WebSocket is closed; it is pinged after half of it. 0 disables this."
    )
    drain_seconds: float = setting(30.0, "Time that running calls have to finish when the node stops.")
    job_processes: int = setting(2, "Maximum number of processes for heavy control API requests.", low=1, high=16)
    job_memory_mb: int = setting(512, "Memory limit of each job process.", low=128)
    upload_bytes: int = setting(
        1_000 * MB, "Maximum size of all unfinished request bodies of the control API.", low=4 * MB
    )

    # Egress of workers
    egress_allow: tuple[str, ...] = setting(
        (),
        "Internal hosts and address ranges that workers may reach, separated by commas, such as db.internal, 10.0.0.0/8"
        " or 127.0.0.1:9000. The public internet is always allowed.",
        free=True,
    )
    egress_deny: tuple[str, ...] = setting(
        (), "Hosts, address ranges and ports that no worker may reach, in the syntax of egress_allow.", free=True
    )
    ca_file: str = setting(
        "", "PEM file of certificate authorities that fetch trusts in addition to the system's.", shown="none"
    )
    connect_timeout: float = setting(10.0, "Time in which a fetch must connect to its server.", low=0.1)
    fetch_timeout: float = setting(60.0, "Time for which a fetch waits for a silent server.", low=0.1)
    fetch_bytes: int = setting(10_000 * MB, "Largest response body of a fetch, as transferred.", low=1)
    tenant_connections: int = setting(
        200, "Maximum number of connections of one tenant's workers to other servers.", low=1, high=60_000
    )

    # Limits of workers: defaults and maximums
    cpu_ms: int = setting(50, "CPU time limit of one call, for workers that set no cpu_ms.", low=1)
    wall_ms: int = setting(30_000, "Wall time limit of one call, for workers that set no wall_ms.", low=1)
    memory_mb: int = setting(
        128, "Memory limit of one isolate, for workers that set no memory_mb.", low=8, also="ISOLATE_HEAP_MAX_MB"
    )
    subrequests: int = setting(50, "Maximum number of fetches of one call, for workers that set no subrequests.", low=1)
    internal_subrequests: int = setting(
        1_000, "Maximum number of binding calls of one call, for workers that set no internal_subrequests.", low=1
    )
    timer_ms: int = setting(30_000, "Longest timer that a request waits for, for workers that set no timer_ms.", low=1)
    long_timers: str = setting(
        "unawaited",
        "What happens to timers longer than timer_ms: unawaited or refused.",
        words=("unawaited", "refused"),
    )
    max_cpu_ms: int = setting(30_000, "Largest cpu_ms that a worker may set.", low=1)
    max_wall_ms: int = setting(900_000, "Largest wall_ms that a worker may set.", low=1)
    pbkdf2_iterations: int = setting(
        100_000, "Maximum number of PBKDF2 iterations; the computation cannot be interrupted.", low=1, high=10_000_000
    )
    max_memory_mb: int = setting(512, "Largest memory_mb that a worker may set.", low=8)
    max_subrequests: int = setting(10_000, "Largest subrequests that a worker may set.", low=1)
    max_internal_subrequests: int = setting(10_000, "Largest internal_subrequests that a worker may set.", low=1)
    max_timer_ms: int = setting(900_000, "Largest timer_ms that a worker may set.", low=1)
    script_bytes: int = setting(10 * MB, "Largest worker: all modules together.", low=1024, high=48 * MB)

    # Settings declared by manifests of bindings, by name
    of_bindings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def value(self, name: str) -> Any:
        """A setting by its name, including those of bindings."""
        if name in self.of_bindings:
            return self.of_bindings[name]
        return getattr(self, name) if hasattr(self, name) else FIELDS[name].default


class KnownSetting(Struct, frozen=True):
    default: Any
    facts: Facts
    of_binding: bool = False


def _known() -> dict[str, KnownSetting]:
    own = {
        field.name: KnownSetting(field.default, field.metadata["facts"])
        for field in dataclasses.fields(Settings)
        if "facts" in field.metadata
    }
    return own | {
        name: KnownSetting(found.default, found.facts, of_binding=True)
        for manifest in manifests().values()
        for name, found in manifest.settings.items()
    }


FIELDS: dict[str, KnownSetting] = _known()


def facts_of(name: str) -> Facts:
    return FIELDS[name].facts


def env_names(name: str) -> Iterator[str]:
    """The names of a setting in the environment. The last one wins."""
    if facts_of(name).also:
        yield facts_of(name).also
    yield f"ATOLL_{name.upper()}"


def flag_name(name: str) -> str:
    return "--" + name.replace("_", "-")


def shown_default(name: str) -> str:
    """The default of a setting as help and documentation print it."""
    return shown(FIELDS[name].default, facts_of(name))


def shown_value(value: object) -> str:
    """A value as people write it."""
    return ",".join(value) if isinstance(value, tuple) else str(value)
