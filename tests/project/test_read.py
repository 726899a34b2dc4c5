"""A config becomes one Project, and every unused field is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.manifests.config_fields import FindingLevel
from atoll.project.files import read_dotenv
from atoll.project.model import Project, ProjectError
from atoll.project.read import read_project
from atoll.project.shapes import FIELDS
from tests.project.conftest import Write

WORKER = "export default { fetch() { return new Response('hi') } }"


def told(project: Project, field: str) -> list[FindingLevel]:
    return [finding.level for finding in project.findings if finding.field == field]


def test_a_script_alone_is_a_project(write: Write) -> None:
    project = read_project(write(**{"my_hello.js": WORKER}) / "my_hello.js")
    assert (project.name, project.findings) == ("my-hello", [])
    assert read_project(write(**{"index.ts": WORKER}) / "index.ts").name == "project"


def test_a_wrangler_jsonc_is_read_with_comments_and_trailing_commas(write: Write) -> None:
    text = """{
      // a comment with a "quote"
      "$schema": "node_modules/wrangler/config-schema.json",
      "name": "shop", "main": "src/index.js", "compatibility_date": "2025-01-01",
      /* more */ "vars": { "URL": "https://a.example/*not a comment*/", },
      "kv_namespaces": [{ "binding": "KV", "id": "abc" }, { "binding": "NEW" }],
      "routes": ["a.example/*", { "pattern": "shop.example", "custom_domain": true, "zone_name": "x" }],
      "triggers": { "crons": ["*/5 * * * *"] },
    }"""
    project = read_project(write(**{"wrangler.jsonc": text, "src/index.js": WORKER}))
    assert project.name == "shop" and [finding.field for finding in project.findings] == ["routes[].zone_name"]
    assert project.vars == {"URL": "https://a.example/*not a comment*/"}
    assert project.bindings == [
        {"type": "kv", "name": "KV", "namespace": "abc"},
        {"type": "kv", "name": "NEW", "namespace": "shop-new"},
    ]
    assert project.routes == ["a.example/*", "shop.example"]
    assert project.triggers["crons"] == ["*/5 * * * *"]


def test_comments_in_a_wrangler_jsonc_do_not_break_it(write: Write) -> None:
    text = """{
      "name": "hono", "main": "index.js", "compatibility_date": "2025-01-01",
      // "compatibility_flags": [
      //   "nodejs_compat"
      // ],
      "vars": { "A": "1", /* ] } */ "B": "2", /* } */ // ]
      },
      // "ai": { "binding": "AI" }
    }"""
    project = read_project(write(**{"wrangler.jsonc": text, "index.js": WORKER}))
    assert (project.name, project.vars, project.findings) == ("hono", {"A": "1", "B": "2"}, [])


def test_every_kind_of_binding_is_translated_to_the_api(write: Write) -> None:
    text = """
name = "all"
main = "w.js"
compatibility_date = "2025-01-01"
[[queues.producers]]
binding = "JOBS"
queue = "jobs"
delivery_delay = 5
[[queues.consumers]]
queue = "jobs"
max_batch_size = 3
dead_letter_queue = "dead"
[[services]]
binding = "API"
service = "other"
entrypoint = "Admin"
[[ratelimits]]
name = "RL"
namespace_id = "1001"
simple = { limit = 100, period = 60 }
[version_metadata]
binding = "META"
[[tail_consumers]]
service = "watcher"
[limits]
cpu_ms = 100
"""
    project = read_project(write(**{"wrangler.toml": text, "w.js": WORKER}))
    assert project.findings == []
    assert project.bindings == [
        {"type": "queue", "name": "JOBS", "queue": "jobs", "delivery_delay": 5},
        {"type": "ratelimit", "name": "RL", "namespace": "1001", "limit": 100, "period": 60},
        {"type": "service", "name": "API", "service": "other", "entrypoint": "Admin"},
        {"type": "version_metadata", "name": "META"},
    ]
    assert project.triggers["queue_consumers"] == [{"queue": "jobs", "max_batch_size": 3, "dead_letter_queue": "dead"}]
    assert project.triggers["tail_consumers"] == [{"service": "watcher"}]
    assert project.limits == {"cpu_ms": 100}


def test_isolation_and_switches_are_read_or_off(write: Write) -> None:
    plain = 'name = "w"\nmain = "w.js"\ncompatibility_date = "2025-01-01"\n'
    text = plain + 'isolation = "context"\n[switches]\nallow_eval = true\nallow_evil = true\n'
    project = read_project(write(**{"wrangler.toml": text, "w.js": WORKER}))
    assert told(project, "switches.allow_evil") == [FindingLevel.WARNING]
    assert project.settings()["isolation"] == "context"
    assert {name for name, is_on in project.settings()["switches"].items() if is_on} == {"allow_eval"}
    unsaid = read_project(write(**{"wrangler.toml": plain, "w.js": WORKER})).settings()
    assert unsaid["isolation"] == "pool" and set(unsaid["switches"].values()) == {False}
    with pytest.raises(ProjectError, match="isolation"):
        read_project(write(**{"wrangler.toml": plain + 'isolation = "none"\n', "w.js": WORKER}))


ENVIRONMENTS = """
name = "shop"
main = "w.js"
compatibility_date = "2025-01-01"
routes = ["shop.example/*"]
[vars]
MODE = "top"
[env.staging]
routes = []
[env.production]
name = "shop-live"
[env.production.vars]
MODE = "live"
"""


def test_a_wrangler_environment_inherits_routes_but_no_vars(write: Write) -> None:
    folder = write(**{"wrangler.toml": ENVIRONMENTS, "w.js": WORKER})
    staging = read_project(folder, "staging")
    assert (staging.name, staging.vars, staging.routes) == ("shop-staging", {}, [])
    assert told(staging, "vars") == [FindingLevel.WARNING]
    live = read_project(folder, "production")
    assert (live.name, live.vars, live.routes) == ("shop-live", {"MODE": "live"}, ["shop.example/*"])
    assert live.findings == []


@pytest.mark.parametrize("file", ["wrangler.toml", "atoll.toml"])
def test_an_environment_with_its_own_routes_inherits_none(write: Write, file: str) -> None:
    """`route` is `routes` with one entry: a deploy to staging must not take the host of production."""
    one, many = 'route = "shop.example/*"\n', 'routes = ["stage.example/*"]\n'
    for top, own, routes in ((one, many, ["stage.example/*"]), (many, one, ["shop.example/*"])):
        config = f'name = "a"\nmain = "w.js"\n{top}[env.staging]\n{own}'
        assert read_project(write(**{file: config, "w.js": WORKER}), "staging").routes == routes


def test_an_environment_of_atoll_toml_inherits_everything(write: Write) -> None:
    folder = write(**{"atoll.toml": ENVIRONMENTS, "w.js": WORKER})
    assert read_project(folder, "staging").vars == {"MODE": "top"}
    folder = write(**{"atoll.toml": "strict_env = true\n" + ENVIRONMENTS})
    assert read_project(folder, "staging").vars == {}


def test_an_unknown_environment_is_an_error_with_a_hint(write: Write) -> None:
    folder = write(**{"wrangler.toml": ENVIRONMENTS, "w.js": WORKER})
    with pytest.raises(ProjectError) as error:
        read_project(folder, "stagin")
    assert error.value.hint == "did you mean `staging`?"


@pytest.mark.parametrize(
    "name", [name for name, field in FIELDS.items() if field.verdict.name in ("MISSING", "IGNORED")]
)
def test_every_unused_field_gets_one_message(write: Write, name: str) -> None:
    value = '[{ x = "y" }]' if "list" in str(FIELDS[name].shape) else '"x"'
    text = f'name = "a"\nmain = "w.js"\ncompatibility_date = "2025-01-01"\n{name} = {value}\n'
    project = read_project(write(**{"wrangler.toml": text, "w.js": WORKER}))
    level = FindingLevel.ERROR if FIELDS[name].verdict.name == "MISSING" else FIELDS[name].level
    assert told(project, name) == [level]


def test_an_unknown_field_is_reported_at_any_depth(write: Write) -> None:
    text = 'name = "a"\nmain = "w.js"\ncompatibility_date = "2025-01-01"\nrouts = []\n'
    text += '[[kv_namespaces]]\nbinding = "K"\nid = "x"\nidd = "y"\n'
    project = read_project(write(**{"wrangler.toml": text, "w.js": WORKER}))
    assert told(project, "routs") == told(project, "kv_namespaces[0].idd") == [FindingLevel.WARNING]
    assert project.findings[0].hint == "did you mean `routes`?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a"\nmain = "w.js"\nvars = 1', "`vars` in wrangler.toml is invalid: expected `object`, got `int`"),
        ('name = "a"\nmain = "w.js"\nkv_namespaces = [{id = "x"}]', "`kv_namespaces[0]` in wrangler.toml"),
        ("name = ", "is not TOML"),
        ('name = "a"\nmain = "w.js"\nkv_namespaces = [{binding="A"}]\nvars = {A = "1"}', "two things are named `A`"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field(write: Write, text: str, message: str) -> None:
    with pytest.raises(ProjectError) as error:
        read_project(write(**{"wrangler.toml": text, "w.js": WORKER}))
    assert message in str(error.value)


def test_json_errors_keep_their_line(write: Write) -> None:
    with pytest.raises(ProjectError, match=r"wrangler.json:3:\d+ is not JSON"):
        read_project(write(**{"wrangler.json": '{ // one\n/* two */\n"name": }'}))


def test_dotenv_knows_quotes_comments_and_several_lines(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(
        'A=1\nexport B = two words # comment\nC="x\\ny # no comment"\nD=\'$A\'\nE="two\nlines"\n# F=1\nG=\n'
    )
    assert read_dotenv(path) == {
        "A": "1",
        "B": "two words",
        "C": "x\ny # no comment",
        "D": "$A",
        "E": "two\nlines",
        "G": "",
    }


def test_dev_vars_are_for_development_only_and_win_over_env_files(write: Write) -> None:
    config = 'name = "a"\nmain = "w.js"\n[vars]\nA = "config"\nB = "config"\n[env.x.vars]\nA = "x"'
    folder = write(**{"wrangler.toml": config, "w.js": WORKER, ".env": "A=dotenv", ".env.local": "C=local"})
    assert read_project(folder).vars == {"A": "config", "B": "config"}
    assert read_project(folder, for_dev=True).vars == {"A": "dotenv", "B": "config", "C": "local"}
    write(**{".dev.vars": "B=secret", ".dev.vars.x": "A=of x"})
    assert read_project(folder, for_dev=True).vars == {"A": "config", "B": "secret"}
    assert read_project(folder, "x", for_dev=True).vars == {"A": "of x"}


def test_the_config_of_a_parent_folder_is_found(write: Write) -> None:
    folder = write(**{"wrangler.toml": 'name = "a"\nmain = "src/w.js"', "src/w.js": WORKER})
    assert read_project(folder / "src").config == folder / "wrangler.toml"


def test_an_atoll_toml_with_only_node_settings_is_not_a_project(write: Write) -> None:
    folder = write(**{"atoll.toml": "[node]\nport = 9000"})
    with pytest.raises(ProjectError, match="there is no project"):
        read_project(folder)
    write(**{"wrangler.toml": 'name = "a"\nmain = "w.js"', "w.js": WORKER})
    assert read_project(folder).name == "a"


def test_every_field_has_a_row_in_the_reference() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "project.md").read_text("utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    assert [name for name, field in FIELDS.items() if name not in rows or field.why not in rows[name]] == []
