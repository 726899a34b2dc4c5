"""The doctor's list of the platform matches a real engine."""

from __future__ import annotations

import re

from atoll.manifests.config_fields import FindingLevel
from atoll.project.flags import finding_about_flag, flags
from tests.project.conftest import ROOT
from tools.gen_platform import TARGET, described, text_of


async def test_the_generated_list_matches_an_engine() -> None:
    assert text_of(await described()) == TARGET.read_text("utf-8"), "run `python -m tools.gen_platform`"


def test_the_flags_that_can_be_switched_are_those_that_code_asks_for() -> None:
    sources = [*(ROOT / "web").rglob("*.js"), *(ROOT / "atoll/bindings").rglob("*.js")]
    code = "".join(path.read_text("utf-8") for path in sources)
    asked = set(re.findall(r'\bisOn\("([\w-]+)"\)', code))
    assert asked == {name for name, flag in flags().items() if flag.state == "done"}
    assert len(asked) >= 40


def test_each_flag_has_one_treatment() -> None:
    levels = {"done": None, "always": None, "not yet": FindingLevel.WARNING, "cannot": FindingLevel.ERROR}
    for name, flag in flags().items():
        if name.startswith("enable_nodejs_") and "module" in name:
            continue  # by whether the module is there
        about = finding_about_flag(name)
        assert (about and about.level) == levels[flag.state], name
        opposite = finding_about_flag(flag.off) if flag.off is not None else None
        assert (opposite and opposite.level) == (FindingLevel.WARNING if flag.off and flag.state == "always" else None)
    assert finding_about_flag("enable_nodejs_http_server_modules") is None
    for name, level, hint in (
        ("enable_nodejs_quantum_module", FindingLevel.ERROR, ""),
        ("nodejs_compt", FindingLevel.WARNING, "did you mean `nodejs_compat`?"),
        ("strange_flag", FindingLevel.NOTE, ""),
    ):
        about = finding_about_flag(name)
        assert about is not None and (about.level, about.hint) == (level, hint)
