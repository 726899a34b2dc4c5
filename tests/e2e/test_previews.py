"""Preview URLs on a real node: a version without traffic is read, loaded and served; a large one does not hold others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cli.test_projects import run
from tests.running import Atoll

SAYS = """export default { async fetch(request, env) {
  if (env.KV) await env.KV.put("seen", env.N);
  return new Response(`${env.N} ${env.KEY ?? ""} ${await request.text()}`);
} };"""


def upload(atoll: Atoll, name: str, query: str = "", **fields: object) -> dict[str, Any]:
    answer = atoll.control("POST", f"/api/workers/{name}/versions{query}", fields)
    assert answer.status == 201, answer.text
    found: dict[str, Any] = answer.json
    return found


def label_of(url: str) -> str:
    return url.removeprefix("http://").partition(".")[0]


def test_a_version_without_traffic_is_served_on_its_preview_host(atoll: Atoll) -> None:
    first = atoll.deploy("seen-before", SAYS, env={"N": "one"}, secrets={"KEY": "old"})
    bindings = [{"type": "kv", "name": "KV", "namespace": "seen-before"}]
    second = upload(atoll, "seen-before", env={"N": "two"}, secrets={"KEY": "new"}, bindings=bindings)
    label = label_of(second["preview_url"])
    assert label == f"{second['id'].removeprefix('version_')[:8]}-seen-before"
    with ThreadPoolExecutor(8) as pool:  # the first calls wait together for its code
        assert set(pool.map(lambda _: atoll.get(label).text, range(16))) == {"two new "}
    assert atoll.post(label, "/", b"a body").text == "two new a body"
    assert atoll.post(label, "/", b"x" * 300_000).text.endswith("x" * 300_000)
    assert atoll.get("seen-before").text == "one old "
    active = atoll.control("GET", f"/api/workers/seen-before/versions/{first['version']['number']}").json
    assert atoll.get(label_of(active["preview_url"])).text == "one old ", "the active version has one too"


def test_an_alias_follows_the_newest_upload_and_survives_a_restart(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("shop", SAYS, env={"N": "one"})
    for word in ("two", "three"):
        found = upload(atoll, "shop", "?alias=staging", env={"N": word})
        assert found["alias_urls"] == [f"http://staging-shop.localhost:{atoll.port}/"]
        assert atoll.get("staging-shop").text == f"{word}  "
    assert atoll.stop() == 0
    atoll.start()
    assert atoll.get("staging-shop").text == "three  "
    assert atoll.get("other-shop").status == 404
    assert atoll.control("DELETE", "/api/workers/shop/aliases/staging").status == 204
    assert atoll.get("staging-shop").status == 404


def test_previews_are_off_where_the_node_or_the_active_version_says_so(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("shop", SAYS, env={"N": "one"})
    hidden = upload(atoll, "shop", env={"N": "hidden"}, preview_urls=False)
    shown = upload(atoll, "shop", "?alias=next", env={"N": "shown"}, preview_urls=True)
    assert hidden["preview_url"] == "" and not hidden["preview_urls"]
    assert atoll.get(f"{hidden['id'][8:16]}-shop").status == 404
    label = label_of(shown["preview_url"])
    assert atoll.get(label).text == atoll.get("next-shop").text == "shown  "
    atoll.deploy("shop", env={"N": "two"}, preview_urls=False)
    assert atoll.get(label).status == atoll.get("next-shop").status == 404
    atoll.deploy("shop", env={"N": "three"}, preview_urls=True)
    assert atoll.get(label).text == "shown  "
    atoll.stop()
    atoll.settings["preview_urls"] = "off"
    atoll.start()
    assert atoll.get(label).status == atoll.get("next-shop").status == 404
    assert atoll.control("GET", f"/api/workers/shop/versions/{shown['number']}").json["preview_url"] == ""


def test_code_of_previews_is_read_again_after_it_was_dropped(new_atoll: Callable[..., Atoll]) -> None:
    """Ten previews of 4 MB are more than what is kept; each is loaded again when it is called again."""
    atoll = new_atoll(engines=1, max_loaded=2)
    filler = "/*" + "x" * (4 << 20) + "*/"
    atoll.deploy("large", SAYS, env={"N": "0"})
    labels = {
        str(number): label_of(upload(atoll, "large", script=SAYS + filler, env={"N": str(number)})["preview_url"])
        for number in range(1, 11)
    }
    for _ in range(2):
        for word, label in labels.items():
            assert atoll.get(label).text == f"{word}  "
    assert atoll.get("large").text == "0  "


def test_a_deleted_version_has_no_preview(atoll: Atoll) -> None:
    atoll.deploy("soon-gone", SAYS, env={"N": "one"})
    label = label_of(upload(atoll, "soon-gone", "?alias=later", env={"N": "two"})["preview_url"])
    assert atoll.get(label).text == "two  "
    assert atoll.control("DELETE", "/api/workers/soon-gone").status == 204
    assert atoll.get(label).status == atoll.get("later-soon-gone").status == 404


API = """export default { async fetch(request, env) {
  const { pathname } = new URL(request.url);
  if (pathname === "/asset") return env.ASSETS.fetch("http://assets/page7");
  return new Response(`worker ${await request.text()}`);
} };"""


def test_the_first_calls_of_a_preview_wait_for_the_names_of_its_assets(
    new_atoll: Callable[..., Atoll], tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "public").mkdir(parents=True)
    for number in range(2_000):
        (site / f"public/page{number}.html").write_text(f"old {number}")
    (site / "worker.js").write_text(API)
    (site / "wrangler.jsonc").write_text(
        '{"name": "big-site", "main": "worker.js", "assets": {"directory": "public", "binding": "ASSETS"}}'
    )
    atoll = new_atoll()
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(site, "deploy", **node)
    (site / "public/page7.html").write_text("new 7")
    label = label_of(run(site, "versions", "upload", **node).stdout.strip())
    assert atoll.get(label, "/page7").text == "new 7"
    assert atoll.stop() == 0
    atoll.start()  # nothing of the preview is in memory
    with ThreadPoolExecutor(8) as pool:
        asked = ["/page7", "/page8", "/asset", "/page9"] * 4
        answers = list(pool.map(lambda path: atoll.get(label, path).text, asked))
    assert answers == ["new 7", "old 8", "new 7", "old 9"] * 4
    assert atoll.stop() == 0
    atoll.start()
    body = b"x" * 600_000  # longer than what a waiting call may hold
    assert atoll.post(label, "/upload", body).text == f"worker {body.decode()}"
    assert atoll.get("big-site", "/page7").text == "old 7"
