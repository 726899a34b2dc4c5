"""The doctor's list of the platform matches a real engine."""

from __future__ import annotations

import re

from atoll.manifests.config_fields import FindingLevel
from atoll.project.flags import ABSENT, ALWAYS, CHANGING, finding_about_flag
from tests.project.conftest import ROOT
from tools.gen_platform import TARGET, described, text_of


async def test_the_generated_list_matches_an_engine() -> None:
    assert text_of(await described()) == TARGET.read_text("utf-8"), "run `python -m tools.gen_platform`"


def test_the_effective_flags_match_the_platform() -> None:
    sources = [*(ROOT / "web").rglob("*.js"), *(ROOT / "atoll/bindings").rglob("*.js")]
    code = "".join(path.read_text("utf-8") for path in sources)
    asked = set(re.findall(r'\bisO(?:n|ff)\("(\w+)"\)', code))
    since = set(re.findall(r'(\w+): "\d{4}-\d\d-\d\d"', (ROOT / "web/worker/compatibility.js").read_text("utf-8")))
    assert asked | since <= set(CHANGING)
    off = "no_|disable_|legacy_|.*_do_not_|.*_transfer_|.*_preserves_"
    assert {flag for flag in CHANGING if not re.match(off, flag)} == asked | since
    page = (ROOT / "docs/reference/compatibility.md").read_text("utf-8")
    assert [flag for flag in ABSENT if f"`{flag}`" not in page] == []
    assert [flag for flag in since if f"`{flag}`" not in page] == []


def test_each_flag_has_one_treatment() -> None:
    assert all(finding_about_flag(flag) is None for flag in (*CHANGING, *ALWAYS))
    for flags, level in ((ABSENT, FindingLevel.ERROR), (ALWAYS.values(), FindingLevel.WARNING)):
        found = [finding_about_flag(flag) for flag in flags]
        assert all(each is not None and each.level is level for each in found)
    assert finding_about_flag("enable_nodejs_http_server_modules") is None
    for flag, level, hint in (
        ("enable_nodejs_wasi_module", FindingLevel.ERROR, ""),
        ("nodejs_compt", FindingLevel.WARNING, "did you mean `nodejs_compat`?"),
        ("strange_flag", FindingLevel.NOTE, ""),
    ):
        about = finding_about_flag(flag)
        assert about is not None and (about.level, about.hint) == (level, hint)
