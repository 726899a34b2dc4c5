"""What an operator may set, and where a value may come from.

`Settings` is the one list: the documentation, the flags of `atoll serve` and the names in the environment all derive
from its fields. A later source wins: defaults, the `[node]` table of atoll.toml, the environment, flags. Whatever is
wrong with a value is found here, before anything has started, and is told with the name the operator used for it.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from atoll.config_file import find_file, nearest, read_file
from atoll.errors import StartError

T = TypeVar("T")

MB = 1024 * 1024
# Names in the environment that are not of settings.
OTHER_VARIABLES = frozenset({
    "ATOLL_API", "ATOLL_COMPLETE", "ATOLL_CONFIG", "ATOLL_ESBUILD", "ATOLL_PROFILE", "ATOLL_ROOT_KEY", "ATOLL_TENANT",
    "ATOLL_TOKEN",
})  # fmt: skip
HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


class Facts(Struct, frozen=True):
    """What is known about a setting besides its value."""

    doc: str
    low: float = 0
    high: float = 2**53
    also: str = ""  # a second name in the environment: the one the platform's first specification gave it
    shown: str = ""  # the default as people read it, where the value itself depends on the machine
    words: tuple[str, ...] = ()  # the only values there are
    free: bool = False  # a list of anything; else of host names


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

    # Where it listens and what it is called
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8080, "Port to listen on; 0 takes any free one.", high=65535)
    base_domain: str = setting("localhost", "Workers answer on <name>.<base domain>.")
    control_hosts: tuple[str, ...] = setting(
        (), "More host names, separated by commas, that serve the control API beside localhost, 127.0.0.1 and [::1]."
    )

    https_port: int = setting(0, "Port for HTTPS beside the plain one; 0: none.", high=65535)
    certificates: Path = setting(  # noqa: RUF009 (a Path cannot be changed)
        Path("certificates"), "Folder of certificates for HTTPS: <host>.pem with its key in it or as <host>.key."
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or ranges of proxies, separated by commas, whose X-Forwarded-For and -Proto are believed.",
        free=True,
    )
    control_auth: str = setting(
        "auto",
        "Who needs a token for the control API: auto, everybody who is not on this machine; token, everybody.",
        words=("auto", "token"),
    )

    # What it keeps
    data: Path = setting(  # noqa: RUF009 (a Path cannot be changed)
        Path(".atoll"), "Folder for everything Atoll stores; one node at a time may use it."
    )
    metrics_workers: int = setting(
        200, "Workers with series of their own in /metrics; the others share one.", high=10_000
    )
    otlp_endpoint: str = setting(
        "", "Where traces go, such as http://localhost:4318/v1/traces; needs `pip install '.[otel]'`.", shown="none"
    )
    trace_share: float = setting(0.01, "Part of the calls that are traced, if otlp_endpoint is set.", high=1)
    log_days: float = setting(7.0, "Days for which the log records of calls are kept.", low=0.001, high=36_500)
    log_bytes: int = setting(512 * MB, "Size of all log records; beyond it the largest tenant's oldest go.", low=MB)
    log_rate: int = setting(
        1_000,
        "Log records kept per second and worker; more are counted and not kept. Twice as many if they say something.",
    )

    cache_bytes: int = setting(256 * MB, "What the Cache API keeps for one tenant; beyond it the oldest goes.", low=MB)
    cache_object_bytes: int = setting(16 * MB, "Largest response that the Cache API keeps.", low=1)
    kv_bytes: int = setting(10_000 * MB, "What one tenant may have in KV, unless its quota says otherwise.", low=MB)
    queue_bytes: int = setting(
        1_000 * MB, "What may wait in the queues of one tenant, unless its quota says otherwise.", low=MB
    )

    # Engines
    engines: int = setting(
        len(os.sched_getaffinity(0)),
        "Number of engine processes.",
        low=1,
        high=256,
        also="PERSISTENT_WORKER_POOL_SIZE",
        shown="one per core",
    )
    engine_threads: int = setting(4, "Threads that run workers in each engine.", low=1, high=64)
    spares: int = setting(4, "Isolates each engine keeps prepared for the next cold start.", high=64)
    sandbox: str = setting(
        "try",
        "Whether the operating system must confine engines: require, try or off.",
        words=("require", "try", "off"),
    )
    worker_clock: str = setting(
        "frozen",
        "Whether time stands still for all workers while they compute, or may pass for some: frozen or live.",
        words=("frozen", "live"),
    )
    max_loaded: int = setting(
        1000,
        "Workers kept loaded over all engines; beyond it the one idle longest goes.",
        low=1,
        also="ISOLATE_POOL_SIZE",
    )
    idle_seconds: float = setting(30.0, "A worker that has had no call for so long is unloaded.")
    worker_queue: int = setting(
        100, "Calls that may wait for one worker; more are refused with 503.", low=1, also="WORKER_TASK_QUEUE_SIZE"
    )
    worker_calls: int = setting(1000, "Calls of one worker under way at once; more are refused with 503.", low=1)
    worker_isolates: int = setting(
        256,
        "Isolates one busy worker may be spread over, each in another engine; 1 never spreads one.",
        low=1,
        high=256,
    )
    tenant_calls: int = setting(2000, "Calls of one tenant under way at once; more are refused with 429.", low=1)
    tenant_loaded: int = setting(
        0, "Isolates of one tenant kept loaded; 0 is as many as max_loaded. Beyond it its own idle ones go."
    )
    own_engines: int = setting(
        16, "Engine processes that may run beside the shared ones, each for a single tenant or worker.", high=256
    )
    health_check_ms: int = setting(
        1000,
        "Time between two heartbeats of an engine; one that misses five is replaced.",
        low=50,
        also="WORKER_HEALTH_CHECK_INTERVAL_MS",
    )
    heap_initial_mb: int = setting(
        0,
        "Heap an isolate may fill before V8 begins to collect garbage in earnest; 0 leaves it to V8.",
        high=4096,
        also="ISOLATE_HEAP_INITIAL_MB",
    )
    restart_memory_mb: int = setting(
        256,
        "An engine that uses more than this and 10 MB for each loaded worker is replaced; 0 never replaces one for it.",
        also="WORKER_RESTART_MEMORY_THRESHOLD_MB",
    )
    restart_hours: float = setting(24.0, "An engine that has run for so long is replaced; 0 never replaces one for it.")
    min_free_mb: int = setting(
        256, "With less memory left on the machine or in the control group, idle workers are unloaded; 0 never does."
    )
    quarantine_seconds: float = setting(
        3600.0, "How long a worker that ended two engines is kept in an engine process of its own."
    )
    blocked_seconds: float = setting(
        600.0, "How long a worker that ended an engine of its own is refused, unless a new version is deployed."
    )

    # HTTP
    header_bytes: int = setting(128 * 1024, "Largest request head, all header lines together.", low=1024, high=MB)
    url_bytes: int = setting(16 * 1024, "Longest request target.", low=256, high=MB)
    body_bytes: int = setting(100 * MB, "Largest request body to a worker.", low=1)
    header_timeout: float = setting(10.0, "Time a client has to send a whole request head.", low=0.1)
    body_timeout: float = setting(30.0, "Time a client may pause within a request body.", low=0.1)
    idle_timeout: float = setting(75.0, "Time a kept-alive connection may be silent between requests.", low=0.1)
    drain_delay: float = setting(0.0, "Time from /readyz saying no until the port closes, when Atoll stops.", high=3600)
    socket_timeout: float = setting(
        120.0, "Time a WebSocket may be silent; it is pinged after half of it. 0: for ever."
    )
    drain_seconds: float = setting(30.0, "Time calls in flight have to finish when Atoll stops.")

    # What workers may reach
    egress_allow: tuple[str, ...] = setting(
        (),
        "Internal hosts and address ranges that workers may reach, separated by commas, as db.internal, 10.0.0.0/8 or "
        "127.0.0.1:9000; the public internet is always allowed.",
        free=True,
    )
    egress_deny: tuple[str, ...] = setting(
        (), "Hosts, address ranges and ports that no worker may reach, written as those of egress_allow.", free=True
    )
    ca_file: str = setting("", "PEM file of certificates that workers' https trusts beside the system's.", shown="none")
    connect_timeout: float = setting(10.0, "Time a fetch has to connect to another server.", low=0.1)
    fetch_timeout: float = setting(60.0, "Time another server may be silent while a fetch waits for it.", low=0.1)
    fetch_bytes: int = setting(10_000 * MB, "Largest response body a fetch may bring, as it is transferred.", low=1)
    tenant_connections: int = setting(
        200, "Connections to other servers that the workers of one tenant may have.", low=1, high=60_000
    )

    # What a worker gets when it names no limits, and the most it may ask for
    cpu_ms: int = setting(50, "CPU time of one call, for workers that name no cpu_ms.", low=1)
    wall_ms: int = setting(30_000, "Time of one call, for workers that name no wall_ms.", low=1)
    memory_mb: int = setting(
        128, "Memory of one isolate, for workers that name no memory_mb.", low=8, also="ISOLATE_HEAP_MAX_MB"
    )
    subrequests: int = setting(50, "Fetches of one call, for workers that name no subrequests.", low=1)
    internal_subrequests: int = setting(
        1_000, "What one call may ask of bindings, for workers that name no internal_subrequests.", low=1
    )
    timer_ms: int = setting(30_000, "Longest delay of a timer, for workers that name no timer_ms.", low=1)
    max_cpu_ms: int = setting(30_000, "The most a worker may ask for as cpu_ms.", low=1)
    max_wall_ms: int = setting(900_000, "The most a worker may ask for as wall_ms.", low=1)
    pbkdf2_iterations: int = setting(
        100_000, "Iterations of PBKDF2 a worker may ask for; it cannot be stopped half way.", low=1, high=10_000_000
    )
    max_memory_mb: int = setting(512, "The most a worker may ask for as memory_mb.", low=8)
    max_subrequests: int = setting(10_000, "The most a worker may ask for as subrequests.", low=1)
    max_internal_subrequests: int = setting(10_000, "The most a worker may ask for as internal_subrequests.", low=1)
    max_timer_ms: int = setting(900_000, "The most a worker may ask for as timer_ms.", low=1)
    script_bytes: int = setting(10 * MB, "Largest worker, all modules together.", low=1024, high=48 * MB)


def facts_of(name: str) -> Facts:
    facts = FIELDS[name].metadata["facts"]
    assert isinstance(facts, Facts)
    return facts


FIELDS: dict[str, dataclasses.Field[object]] = {field.name: field for field in dataclasses.fields(Settings)}


def env_names(name: str) -> Iterator[str]:
    """The names of a setting in the environment, the one that counts most last."""
    if facts_of(name).also:
        yield facts_of(name).also
    yield f"ATOLL_{name.upper()}"


def flag_name(name: str) -> str:
    return "--" + name.replace("_", "-")


def shown_default(name: str) -> str:
    """The default of a setting as help and documentation print it."""
    default = FIELDS[name].default
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return facts_of(name).shown or str(default)


def load(config: Path | None, env: Mapping[str, str], flags: Mapping[str, str]) -> Settings:
    """The settings of this start. `flags` holds only the flags that were given, by the name of their setting."""
    return load_with_origins(config, env, flags)[0]


def load_with_origins(
    config: Path | None, env: Mapping[str, str], flags: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """The same, and where each value comes from that is not the default: a line of a file, a variable or a flag."""
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    path = find_file(config, env)
    for name, raw, place in read_file(path, FIELDS) if path is not None else ():
        value = _value(name, raw, f"`{name}` in {place}")
        # A path in a file means the same wherever Atoll is started from.
        values[name] = path.parent / value if path is not None and isinstance(value, Path) else value
        origins[name] = place
    _refuse_mistyped(env)
    for name in FIELDS:
        for variable in env_names(name):
            if env.get(variable, "") != "":
                values[name], origins[name] = _value(name, env[variable], variable), variable
    for name, text in flags.items():
        values[name], origins[name] = _value(name, text, flag_name(name)), flag_name(name)
    return _settings(values, origins), origins


def settings_from(values: Mapping[str, object]) -> Settings:
    """Settings that a program gives, by name, checked as those of a file are."""
    checked: dict[str, object] = {}
    for name, raw in values.items():
        if name not in FIELDS:
            raise StartError(f"`{name}` is no setting", nearest(name, FIELDS))
        checked[name] = _value(name, str(raw) if isinstance(raw, Path) else raw, f"`{name}`")
    return _settings(checked)


def _settings(values: Mapping[str, object], origins: Mapping[str, str] | None = None) -> Settings:
    settings = dataclasses.replace(Settings(), **values)  # type: ignore[arg-type]  # each was converted by its field
    _check_together(settings, origins or {})
    return settings


def shown_value(value: object) -> str:
    """A value as people write it."""
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _refuse_mistyped(env: Mapping[str, str]) -> None:
    """A variable that is almost the name of a setting. Others are somebody else's, such as those Kubernetes makes."""
    names = [variable for name in FIELDS for variable in env_names(name)]
    for variable in env:
        if variable.startswith("ATOLL_") and variable not in names and variable not in OTHER_VARIABLES:
            import difflib

            close = difflib.get_close_matches(variable, names, n=1, cutoff=0.85)
            if close:
                raise StartError(f"the variable {variable} is no setting", f"did you mean {close[0]}?")


def _value(name: str, raw: object, called: str) -> object:
    """`raw` as the type of the setting, checked. `called` is what the operator wrote, for the error."""
    default = FIELDS[name].default
    if isinstance(default, int | float):
        return _number(name, raw, called)
    if isinstance(default, tuple):
        hosts = [part.strip() for part in raw.split(",")] if isinstance(raw, str) else raw
        if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
            raise StartError(f"{called} is {raw!r}, not a list of names", 'write ["a.example", "b.example"] in a file')
        if name == "trusted_proxies":
            return tuple(_network(text, called) for text in hosts if text)
        return tuple(host if facts_of(name).free else _host_name(host, called) for host in hosts if host)
    if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
        raise StartError(f"{called} is {raw!r}, not a text", f"{facts_of(name).doc} Default: {shown_default(name)}")
    if isinstance(default, Path):
        return Path(raw).expanduser()
    words = facts_of(name).words
    if words and raw.strip() not in words:
        raise StartError(f"{called} is {raw!r}, not one of {', '.join(words)}", facts_of(name).doc)
    return _host_name(raw, called) if name == "base_domain" else raw.strip()


def _number(name: str, raw: object, called: str) -> int | float:
    facts, kind = facts_of(name), type(FIELDS[name].default)
    expected = "a whole number" if kind is int else "a number"
    hint = f"{facts.doc} Default: {shown_default(name)}"
    try:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise ValueError
        number: int | float = float(raw) if kind is float else int(raw)
        if isinstance(raw, float) and number != raw:
            raise ValueError
    except (ValueError, OverflowError):
        raise StartError(f"{called} is {raw!r}, not {expected}", hint) from None
    if not facts.low <= number <= facts.high:  # also false for NaN
        bounds = f"from {facts.low:g} to {facts.high:.0f}" if facts.high < 2**53 else f"{facts.low:g} or more"
        raise StartError(f"{called} is {raw}, but must be {bounds}", hint)
    return number


def _host_name(raw: str, called: str) -> str:
    name = raw.strip().lower().rstrip(".")
    if not HOST_NAME.fullmatch(name):
        raise StartError(f"{called} is {raw!r}, not a host name", "use letters, digits, dashes and dots, and no port")
    return name


def _network(raw: str, called: str) -> str:
    try:
        ipaddress.ip_network(raw, strict=False)
    except ValueError:
        raise StartError(
            f"{called} names {raw!r}, which is no address", "write addresses or ranges: 10.0.0.0/8"
        ) from None
    return raw


def _check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """What no single value shows: a default above its own cap."""
    for name in ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests", "timer_ms"):
        value, cap = getattr(settings, name), getattr(settings, f"max_{name}")
        if value > cap:
            place, cap_place = (f" ({origins[each]})" if each in origins else "" for each in (name, f"max_{name}"))
            raise StartError(
                f"{name} is {value}{place}, above max_{name}, which is {cap}{cap_place}",
                f"raise max_{name} or lower {name}",
            )
