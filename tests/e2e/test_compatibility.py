"""What the compatibility date and flags of a deployment change for a worker, and the limit of PBKDF2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import Atoll

GLOBALS = """
export default {
  fetch() {
    const names = ["process", "Buffer", "global", "navigator"].filter((name) => name in globalThis);
    return Response.json([names, typeof process === "undefined" ? null : process.env]);
  },
};
"""
OLD = "2025-01-01"
NODE = ["process", "Buffer", "global"]


@pytest.mark.parametrize(
    ("date", "flags", "names"),
    [
        (OLD, [], ["navigator"]),
        (OLD, ["nodejs_compat"], [*NODE, "navigator"]),
        (OLD, ["nodejs_compat_v2", "a_flag_nobody_knows"], [*NODE, "navigator"]),
        ("2026-08-04", [], [*NODE, "navigator"]),
        ("2026-08-04", ["no_nodejs_compat"], ["navigator"]),
        (OLD, ["no_global_navigator"], []),
    ],
)
def test_flags_control_globals(atoll: Atoll, date: str, flags: list[str], names: list[str]) -> None:
    atoll.deploy("flags", GLOBALS, compatibility_date=date, compatibility_flags=flags)
    assert atoll.get("flags").json[0] == names
    assert atoll.control("GET", "/api/workers/flags").json["compatibility_flags"] == flags


def test_process_env_holds_the_variables_unless_a_flag_says_otherwise(atoll: Atoll) -> None:
    atoll.deploy(
        "flags", GLOBALS, env={"A": "b"}, compatibility_date="2026-01-01", compatibility_flags=["nodejs_compat"]
    )
    assert atoll.get("flags").json[1] == {"A": "b"}
    flags = ["nodejs_compat", "nodejs_compat_do_not_populate_process_env"]
    atoll.deploy("flags", GLOBALS, env={"A": "b"}, compatibility_date="2026-01-01", compatibility_flags=flags)
    assert atoll.get("flags").json[1] == {}


def test_the_iterations_of_pbkdf2_are_a_setting(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, engines=1, pbkdf2_iterations=600_000)
    atoll.start()
    try:
        script = """
          import { pbkdf2Sync } from "node:crypto";
          export default {
            fetch(request) {
              const iterations = Number(new URL(request.url).searchParams.get("n"));
              try {
                return new Response(pbkdf2Sync("password", "salt", iterations, 16, "sha256").toString("hex"));
              } catch (error) {
                return new Response(error.message, { status: 400 });
              }
            },
          };
        """
        atoll.deploy("pbkdf2", script, limits={"cpu_ms": 10_000})
        assert len(atoll.get("pbkdf2", "/?n=300000").text) == 32
        refused = atoll.get("pbkdf2", "/?n=600001")
        assert refused.status == 400 and "<= 600000" in refused.text
    finally:
        atoll.stop()
