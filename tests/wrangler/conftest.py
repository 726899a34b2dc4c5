"""A node that needs a token, and the real wrangler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.npm import NoRegistry, install
from tests.running import Atoll
from tests.wrangler.stock import TOOL, Wrangler


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("strict"), engines=1, control_auth="token")
    node.start()
    yield node
    assert node.stop() == 0
    assert "Traceback" not in node.log()


@pytest.fixture(scope="session")
def token(strict: Atoll) -> str:
    return (strict.folder / "data/admin-token").read_text().strip()


@pytest.fixture(scope="session")
def wrangler(strict: Atoll, token: str, tmp_path_factory: pytest.TempPathFactory) -> Wrangler:
    try:
        install(Path(__file__).parent / "tool", TOOL)
    except NoRegistry as error:
        pytest.skip(str(error))
    return Wrangler(strict, token, "default", tmp_path_factory.mktemp("home"))
