"""Sources of settings, their precedence, and the errors for bad values."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.config import FIELDS, Settings, env_names, facts_of
from atoll.config_loading import load, load_with_origins, settings_from
from atoll.errors import StartError


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> Path:
    path = Path("node.toml")
    path.write_text(text)
    return path


def test_without_any_source_the_defaults_apply() -> None:
    settings = load(None, {}, {})
    assert settings == Settings()
    assert (settings.host, settings.port, settings.data) == ("127.0.0.1", 8080, Path(".atoll"))
    assert settings.engines >= 1


def test_a_later_source_wins() -> None:
    config = write("[node]\nport = 1\nspares = 1\nengines = 1\nmax_loaded = 1")
    env = {"ATOLL_SPARES": "2", "ATOLL_ENGINES": "2", "ATOLL_MAX_LOADED": "2"}
    settings = load(config, env, {"engines": "3", "max_loaded": "3"})
    assert (settings.port, settings.spares, settings.engines, settings.max_loaded) == (1, 2, 3, 3)


def test_settings_cannot_change_later() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]


def test_every_type_of_setting_can_come_from_every_source() -> None:
    text = 'control_hosts = ["A.example", "b.example."]\nheader_timeout = 2\ndata = "d"\nbase_domain = "X.Example"'
    from_file = load(write(f"name = 'x'\n[node]\n{text}\n[other]\nx = 1"), {}, {})
    flags = {"control_hosts": "a.example, b.example", "header_timeout": "2.0", "data": "d", "base_domain": "x.example"}
    from_flags = load(None, {}, flags)
    from_env = load(None, {f"ATOLL_{name.upper()}": value for name, value in flags.items()}, {})
    assert from_file == from_flags == from_env
    assert from_file.control_hosts == ("a.example", "b.example")


def test_a_path_in_a_file_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "atoll.toml").write_text('[node]\ndata = "state"')
    assert load(tmp_path / "etc" / "atoll.toml", {}, {}).data == tmp_path / "etc" / "state"


def test_the_file_may_be_in_the_folder_or_named_by_the_environment() -> None:
    write("[node]\nport = 1")
    assert load(None, {"ATOLL_CONFIG": "node.toml"}, {}).port == 1
    Path("atoll.toml").write_text("[node]\nport = 2")
    assert load(None, {}, {}).port == 2
    assert load(Path("node.toml"), {}, {}).port == 1


@pytest.mark.parametrize(
    ("variable", "name", "value"),
    [
        ("ISOLATE_POOL_SIZE", "max_loaded", 7),
        ("ISOLATE_HEAP_MAX_MB", "memory_mb", 64),
        ("PERSISTENT_WORKER_POOL_SIZE", "engines", 3),
        ("WORKER_TASK_QUEUE_SIZE", "worker_queue", 5),
        ("ISOLATE_HEAP_INITIAL_MB", "heap_initial_mb", 16),
        ("WORKER_RESTART_MEMORY_THRESHOLD_MB", "restart_memory_mb", 300),
        ("WORKER_HEALTH_CHECK_INTERVAL_MS", "health_check_ms", 2000),
    ],
)
def test_older_names_in_the_environment_work_and_current_names_win(variable: str, name: str, value: int) -> None:
    assert getattr(load(None, {variable: str(value)}, {}), name) == value
    ours = f"ATOLL_{name.upper()}"
    assert getattr(load(None, {variable: str(value), ours: str(value + 1)}, {}), name) == value + 1
    assert list(env_names(name)) == [variable, ours]


def test_the_settings_page_lists_the_older_names() -> None:
    text = (Path(__file__).parents[1] / "docs" / "reference" / "settings.md").read_text()
    listed = set(
        re.findall(r"^\| `([A-Z_]+)` \| \[(\w+)\]", text.split("## Names from other platforms")[1], re.MULTILINE)
    )
    names = {name: env_names(name) for name in FIELDS}
    assert listed == {(older, name) for name, (*olders, _) in names.items() for older in olders}


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load(None, {"ATOLL_PORT": ""}, {}).port == 8080


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("port", "abc", "--port is 'abc', not a whole number"),
        ("port", "65536", "--port is 65536, but must be from 0 to 65535"),
        ("port", "-1", "from 0 to 65535"),
        ("port", "80.5", "not a whole number"),
        ("engines", "0", "from 1 to 256"),
        ("header_timeout", "soon", "not a number"),
        ("header_timeout", "nan", "0.1 or more"),
        ("header_timeout", "inf", "0.1 or more"),
        ("base_domain", "a b", "not a host name"),
        ("base_domain", "x:80", "not a host name"),
        ("control_hosts", "ok.example,-bad", "not a host name"),
        ("data", " ", "not a text"),
        ("sandbox", "maybe", "--sandbox is 'maybe', not one of require, try, off"),
        ("cpu_ms", "40000", "cpu_ms is 40000 (--cpu-ms), above max_cpu_ms, which is 30000"),
        ("trusted_proxies", "10.0.0.0/8,proxy", "--trusted-proxies names 'proxy', which is not an address"),
        ("timer_ms", "1000000", "timer_ms is 1000000 (--timer-ms), above max_timer_ms, which is 900000"),
    ],
)
def test_a_bad_value_is_reported_with_the_name_of_its_source(name: str, value: str, says: str) -> None:
    with pytest.raises(StartError) as error:
        load(None, {}, {name: value})
    assert says in str(error.value) and error.value.hint


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("[node]\nprot = 1", "node.toml:2 sets `prot` in [node], which is not a setting", "did you mean `port`?"),
        ("[node]\nzzzzzz = 1", "zzzzzz", "the known ones are host, port"),
        ("[node]\nport = true", "not a whole number", "Default: 8080"),
        ('[node]\nport = "x"', "`port` in node.toml:2", "Default: 8080"),
        ("[node]\nport = 1.5", "not a whole number", "Default: 8080"),
        ("[node]\nhost = 5", "not a text", "Default: 127.0.0.1"),
        ('[node]\ntrusted_proxies = ["1.2.3.4/33"]', "`trusted_proxies` in node.toml:2 names", "10.0.0.0/8"),
        ("[node]\nmax_cpu_ms = 40", "above max_cpu_ms, which is 40 (node.toml:2)", "lower cpu_ms"),
        ("[node]\ncontrol_hosts = [1]", "not a list of names", "in a file"),
        ("[node", "is not TOML", "toml.io"),
        ("node = 1", "is not a table", "[node]"),
        ("# a comment\nport = 1", "node.toml:2 has `port` outside of [node]", "below [node]"),
        ("prot = 1", "node.toml:1 has `prot` outside", "did you mean `port`?"),
        ("[node]\nport = 1\n\n[nodes]\nspares = 1", "node.toml:4 has a table [nodes]", "below [node]"),
        ("[[server]]\nport = 1", "node.toml:1", "below [node]"),
    ],
)
def test_a_bad_file_has_a_hint(text: str, says: str, hint: str) -> None:
    with pytest.raises(StartError) as error:
        load(write(text), {}, {})
    assert says in str(error.value) and hint in error.value.hint


def test_a_misspelt_variable_is_refused_and_unrelated_ones_are_ignored() -> None:
    with pytest.raises(StartError, match="ATOLL_PROT") as error:
        load(None, {"ATOLL_PROT": "1"}, {})
    assert error.value.hint == "did you mean ATOLL_PORT?"
    others = {"ATOLL_TOKEN": "x", "ATOLL_SERVICE_HOST": "10.0.0.1", "ATOLL_PORT_8080_TCP": "tcp://x", "PORT": "1"}
    assert load(None, others, {}) == Settings()


def test_values_are_shown_with_their_source() -> None:
    text = 'name = "x"\nport = 9\n\n[node]  # ours\nport = 1\n"spares" = 1\nengines = 1\n[other]\nmax_loaded = 1'
    env = {"ATOLL_SPARES": "2", "ISOLATE_HEAP_MAX_MB": "64"}
    _, origins = load_with_origins(write(text), env, {"engines": "3"})
    assert origins == {
        "port": "node.toml:5",
        "spares": "ATOLL_SPARES",
        "memory_mb": "ISOLATE_HEAP_MAX_MB",
        "engines": "--engines",
    }
    _, origins = load_with_origins(write("node = { port = 1 }"), {}, {})
    assert origins == {"port": "node.toml"}, "a line number is shown only if it is known"


@pytest.mark.parametrize(
    ("given", "kept", "domain"),
    [
        ("https://apps.example.com", "https://apps.example.com", "apps.example.com"),
        ("https://Apps.Example.com:443/", "https://apps.example.com", "apps.example.com"),
        ("https://apps.example.com:8443", "https://apps.example.com:8443", "apps.example.com"),
        ("http://localhost:80", "http://localhost", "localhost"),
    ],
)
def test_a_public_url_is_a_scheme_a_host_and_a_port_and_sets_the_base_domain(
    given: str, kept: str, domain: str
) -> None:
    settings, origins = load_with_origins(None, {}, {"public_url": given})
    assert (settings.public_url, settings.base_domain) == (kept, domain)
    assert origins["base_domain"] == "public_url (--public-url)"
    assert settings_from({"public_url": given}).base_domain == domain


@pytest.mark.parametrize(
    "wrong",
    [
        "apps.example.com",
        "ftp://a.example",
        "https://",
        "https://a.example/x",
        "https://a.example?x",
        "https://u@a.example",
        "https://a.example:0",
        "https://a.example:99999",
        "https://a_b.example",
        "https://127.0.0.1",
        "https://[::1]",
    ],
)
def test_any_other_public_url_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(StartError) as refused:
        load(None, {}, {"public_url": wrong})
    assert "--public-url" in str(refused.value) and refused.value.hint


def test_a_public_url_on_another_host_than_the_base_domain_is_refused() -> None:
    flags = {"public_url": "https://apps.example.com", "base_domain": "workers.example"}
    with pytest.raises(StartError, match=r"workers\.example"):
        load(None, {}, flags)
    assert load(None, {}, {**flags, "base_domain": "apps.example.com"}).base_domain == "apps.example.com"


def test_settings_of_a_program_follow_the_same_rules() -> None:
    settings = settings_from({"port": 1, "data": Path("d"), "control_hosts": ["A.example"], "idle_seconds": 2})
    assert (settings.port, settings.data, settings.control_hosts) == (1, Path("d"), ("a.example",))
    for values, says in (
        ({"prot": 1}, "not a setting"),
        ({"port": -1}, "`port` is -1"),
        ({"port": "x"}, "whole number"),
    ):
        with pytest.raises(StartError, match=says):
            settings_from(values)


def test_a_named_file_must_exist() -> None:
    with pytest.raises(StartError, match=r"no file nowhere\.toml"):
        load(Path("nowhere.toml"), {}, {})


@given(st.sampled_from(sorted(FIELDS)), st.text())
def test_any_text_is_a_value_or_a_start_error(name: str, text: str) -> None:
    try:
        load(None, {}, {name: text})
    except StartError as error:
        assert error.hint


def test_every_setting_has_a_one_line_description() -> None:
    for name in FIELDS:
        doc = facts_of(name).doc
        assert doc.endswith(".") and "\n" not in doc, name
