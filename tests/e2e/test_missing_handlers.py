"""A worker without the called handler fails with Cloudflare's message; no internal code is visible."""

from __future__ import annotations

import pytest

from tests.running import Atoll

NO_FETCH = "Handler does not export a fetch() function."
WORKERS = {
    "object": ("export default { scheduled() {} };", NO_FETCH),
    "class": (
        'import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint { add() {} }',
        NO_FETCH,
    ),
    "named": (
        'import { WorkerEntrypoint } from "cloudflare:workers"; export class Api extends WorkerEntrypoint { add() {} }',
        NO_FETCH,
    ),
    "script": ('addEventListener("scheduled", () => {});', "No fetch listener called event.respondWith()."),
    "nothing-returned": (
        "export default { fetch() {} };",
        "The fetch handler returned nothing; it must return a Response.",
    ),
}


@pytest.mark.parametrize("kind", WORKERS)
def test_a_worker_without_fetch_fails_with_a_clear_error(atoll: Atoll, kind: str) -> None:
    source, message = WORKERS[kind]
    name = f"lacks-{kind}"
    atoll.deploy(name, source)
    answer = atoll.get(name)
    assert answer.status == 500 and message in answer.text, answer.text
    atoll.wait_until(lambda: atoll.logs(name), 5)
    told = str(atoll.logs(name)[0])
    assert message in told
    for internal in ("target2", "target.", "runModule", "main.js", "call.js", "_engine", "bundle"):
        assert internal not in told, told
