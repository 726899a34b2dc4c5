"""A node that requires tokens, from its first start."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.running import Atoll

HELLO = 'export default { fetch() { return new Response("Hello!"); } }'


def test_the_first_start_names_the_token_file_and_the_token_works(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, engines=1, control_auth="token")
    atoll.start()
    try:
        file = tmp_path / "data" / "admin-token"
        atoll.wait_until(lambda: str(file) in atoll.log())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert token not in atoll.log()
        assert atoll.control("GET", "/api/workers").status == 401
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = json.dumps({"name": "hello", "script": HELLO})
        host = f"localhost:{atoll.port}"
        assert atoll.request("POST", host, "/api/workers", body, headers).status == 201
        assert atoll.get("hello").text == "Hello!"
    finally:
        assert atoll.stop() == 0
