"""`atoll dev` with several workers: service bindings, queues and KV between them, saves and errors of each."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.conftest import StartIn
from tests.cli.dev_session import Dev
from tests.cli.test_projects import run
from tests.project.conftest import ROOT

DATE = 'compatibility_date = "2026-01-01"\n'
SHOP = f"""
name = "shop"
main = "index.ts"
{DATE}
services = [
  {{ binding = "AUTH", service = "auth" }},
  {{ binding = "ADMIN", service = "auth", entrypoint = "Admin" }},
]
kv_namespaces = [{{ binding = "NAMES", id = "names" }}]
queues.producers = [{{ binding = "MAIL", queue = "mail" }}]
[vars]
WHO = "shop"
"""
AUTH = f"""
name = "auth"
main = "src/auth.ts"
{DATE}
kv_namespaces = [{{ binding = "KNOWN", id = "names" }}]
services = [{{ binding = "SHOP", service = "shop" }}]
[[queues.consumers]]
queue = "mail"
max_batch_timeout = 0
[vars]
WHO = "auth"
[env.staging.vars]
WHO = "staging auth"
"""
SHOP_WORKER = """
interface Env { AUTH: any; ADMIN: any; NAMES: any; MAIL: any; WHO: string }
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    try {
      if (pathname === "/call") return new Response(await env.AUTH.hello(env.WHO));
      if (pathname === "/admin") return new Response(await env.ADMIN.rights());
      if (pathname === "/fetch") return await env.AUTH.fetch("https://auth.internal/x");
      if (pathname === "/throw") return new Response(await env.AUTH.fail());
      if (pathname === "/mail") { await env.NAMES.put("ada", "1"); await env.MAIL.send("ada"); }
      return new Response("shop one");
    } catch (error: any) {
      return new Response(error.message, { status: 502 });
    }
  },
};
"""
AUTH_WORKER = """
import { WorkerEntrypoint } from "cloudflare:workers";
export class Admin extends WorkerEntrypoint { rights() { return "all rights"; } }
export default class extends WorkerEntrypoint<any> {
  async fetch(request: Request) {
    if (request.url.endsWith("/back")) return this.env.SHOP.fetch("https://shop/");
    return new Response(`${this.env.WHO} one`);
  }
  hello(who: string) { console.log("hello is called"); return `${this.env.WHO} greets ${who}`; }
  fail() { throw new RangeError("auth is cross"); }
  async queue(batch: any) {
    for (const { body } of batch.messages) console.log("mail to", body, await this.env.KNOWN.get(body));
  }
  scheduled(event: any) { console.log("cron of auth", event.cron); }
}
"""
FILES = {
    "shop/wrangler.toml": SHOP,
    "shop/index.ts": SHOP_WORKER,
    "auth/wrangler.toml": AUTH,
    "auth/src/auth.ts": AUTH_WORKER,
}
BOTH = ("-c", "shop/wrangler.toml", "-c", "auth/wrangler.toml")


def of_auth(dev: Dev) -> str:
    return f"auth.localhost:{dev.port}"


def test_workers_call_each_other_and_each_has_its_own_host(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(tmp_path, *BOTH, **FILES)
    told = dev.seen[-1]["workers"]
    assert [(each["name"], each["url"]) for each in told] == [
        ("shop", f"http://shop.localhost:{dev.port}/"),
        ("auth", f"http://auth.localhost:{dev.port}/"),
    ]
    assert dev.get() == (200, "shop one")
    assert dev.get("call") == (200, "auth greets shop")
    assert dev.get("admin") == (200, "all rights")
    assert dev.get("fetch") == (200, "auth one")
    assert dev.get(host=of_auth(dev)) == (200, "auth one")
    assert dev.get("back", host=of_auth(dev)) == (200, "shop one")  # bindings work in both directions
    assert dev.get(host=f"shop.localhost:{dev.port}") == (200, "shop one")
    assert dev.get(host="any.example") == (200, "shop one")  # the first worker has the port
    said = dev.wait_for("log")
    assert (said["worker"], said["message"]) == ("auth", "hello is called")
    dev.take_events()
    assert {event["worker"] for event in dev.seen if event["event"] == "call"} == {"shop", "auth"}
    assert (tmp_path / "shop/.atoll/dev").is_dir() and not (tmp_path / "auth/.atoll").exists()


def test_kv_and_queues_are_shared_by_their_id(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(tmp_path, *BOTH, **FILES)
    assert dev.get("mail")[0] == 200
    said = dev.wait_for("log")
    assert (said["worker"], said["message"]) == ("auth", "mail to ada 1")


def test_a_save_of_one_worker_is_live_for_the_others(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(tmp_path, *BOTH, **FILES)
    assert dev.get("call") == (200, "auth greets shop")
    dev.save("auth/src/auth.ts", AUTH_WORKER.replace("greets", "welcomes"))
    assert dev.wait_for("reloaded")["worker"] == "auth"
    assert dev.get("call") == (200, "auth welcomes shop")
    dev.save("auth/wrangler.toml", AUTH.replace('WHO = "auth"', 'WHO = "the other"'))
    assert dev.wait_for("reloaded")["worker"] == "auth"
    assert dev.get("call") == (200, "the other welcomes shop")
    dev.save("shop/index.ts", SHOP_WORKER.replace("shop one", "shop two"))
    assert dev.wait_for("reloaded")["worker"] == "shop"
    assert dev.get() == (200, "shop two")


def test_an_error_of_one_worker_is_shown_as_its_own_and_reaches_its_callers(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(tmp_path, *BOTH, **FILES)
    dev.save("auth/src/auth.ts", AUTH_WORKER + "\nconst = 1;\n")
    failed = dev.wait_for("build_failed")
    assert failed["worker"] == "auth" and "src/auth.ts:" in failed["message"]
    status, page = dev.get(host=of_auth(dev), accept="text/html")
    assert status == 500 and "The project does not build" in page and "auth.ts" in page
    assert dev.get() == (200, "shop one")  # the other one keeps serving
    status, said = dev.get("call")
    assert status == 502 and "`auth` is not there: it does not build or start, and `atoll dev` shows why" in said
    dev.save("auth/src/auth.ts", AUTH_WORKER)
    assert dev.wait_for("reloaded")["worker"] == "auth"
    assert dev.get("call") == (200, "auth greets shop")
    assert dev.get("throw") == (502, "auth is cross")
    thrown = dev.wait_for("call")
    while "exception" not in thrown:
        thrown = dev.wait_for("call")
    assert thrown["worker"] == "auth" and "src/auth.ts:10" in thrown["exception"]["stack"]
    assert "> 10 |" in thrown["exception"]["stack"]


def test_a_worker_that_fails_to_build_is_reported_and_the_others_serve(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(tmp_path, *BOTH, **{**FILES, "auth/src/auth.ts": "export default {"})
    failed = next(event for event in dev.seen if event["event"] == "build_failed")
    assert failed["worker"] == "auth"
    assert dev.get() == (200, "shop one")
    assert dev.get(host=of_auth(dev))[0] == 500
    dev.save("auth/src/auth.ts", AUTH_WORKER)
    assert dev.wait_for("reloaded")["worker"] == "auth"
    assert dev.get("call") == (200, "auth greets shop")


def test_a_missing_service_has_a_hint_how_to_add_it(start_in: StartIn, tmp_path: Path) -> None:
    shop = SHOP.replace("[vars]", 'tail_consumers = [{ service = "watcher" }]\n[vars]')
    dev = start_in(tmp_path, "-c", "shop/wrangler.toml", **{**FILES, "shop/wrangler.toml": shop})
    told = [event["message"] for event in dev.seen if event["event"] == "finding"]
    assert (
        "AUTH: the worker `auth` is not part of this session" in told[0]
        and "(atoll dev -c shop/wrangler.toml -c auth/wrangler.toml)" in told[0]
    )
    assert "the worker `watcher` is not part of this session, so it gets no events" in told[2]
    status, said = dev.get("call")
    assert status == 502 and "run it in this session too, with `atoll dev -c shop/wrangler.toml -c FILE`" in said
    dev.save("shop/index.ts", SHOP_WORKER.replace("one", "two"))  # the hint is not repeated
    assert dev.wait_for("finding", "reloaded")["event"] == "reloaded"


def test_an_environment_applies_to_the_workers_that_define_it(start_in: StartIn, tmp_path: Path) -> None:
    shop = SHOP + '[env.staging.vars]\nWHO = "staging shop"\n[[env.staging.services]]\nbinding = "AUTH"\n'
    shop += 'service = "auth-staging"\n'
    dev = start_in(tmp_path, *BOTH, "--env", "staging", **{**FILES, "shop/wrangler.toml": shop})
    assert dev.get("call") == (200, "staging auth greets staging shop")
    dev.stop()
    auth = AUTH[: AUTH.index("[env")]
    shop = shop.replace("auth-staging", "auth")
    dev = start_in(
        tmp_path, *BOTH, "--env", "staging", **{**FILES, "shop/wrangler.toml": shop, "auth/wrangler.toml": auth}
    )
    assert dev.get("call") == (200, "auth greets staging shop")
    assert "has no environment `staging`" in "".join(dev.stderr)


def test_dev_tools_belong_to_the_worker_of_the_requested_host(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(tmp_path, *BOTH, **FILES)
    assert dev.get("cdn-cgi/handler/scheduled?cron=1+*+*+*+*", host=of_auth(dev)) == (200, "Ran scheduled event\n")
    assert dev.wait_for("log")["message"] == "cron of auth 1 * * * *"
    status, said = dev.get("cdn-cgi/handler/scheduled")
    assert status == 500 and "scheduled" in said  # the shop has no scheduled handler


def test_the_two_workers_of_the_example_run_together(start_in: StartIn, tmp_path: Path) -> None:
    """With the command from its README."""
    for name in ("front-desk", "greeter"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / "examples" / name, ignore=shutil.ignore_patterns(".atoll"))
    readme = (ROOT / "examples/front-desk/README.md").read_text()
    [command] = re.findall(r"^\$ atoll dev (.*)$", readme, re.MULTILINE)
    dev = start_in(tmp_path, *command.split())
    assert dev.get("Ada") == (200, "Hello, Ada! Welcome.\n")
    assert dev.get("raw") == (200, "Hello, desk!\n")


def test_two_workers_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wrangler.toml").write_text(f'name = "same"\nmain = "w.js"\n{DATE}')
        (tmp_path / name / "w.js").write_text("export default {}")
    said = run(tmp_path, "dev", "-c", "one/wrangler.toml", "-c", "two", code=1).stderr
    assert "error: two workers are named `same`" in said and "hint: give each a `name` of its own" in said


@pytest.mark.parametrize("saves", [30])
def test_saves_of_two_workers_at_once_end_with_the_last_of_each(start_in: StartIn, tmp_path: Path, saves: int) -> None:
    dev = start_in(tmp_path, *BOTH, **FILES)
    for i in range(saves):
        dev.save("auth/src/auth.ts", AUTH_WORKER.replace("greets", f"greets {i}"))
        dev.save("shop/index.ts", SHOP_WORKER.replace("env.WHO", f'"shop {i}"'))
    deadline = time.monotonic() + 60
    while dev.get("call") != (200, f"auth greets {saves - 1} shop {saves - 1}"):
        assert time.monotonic() < deadline
