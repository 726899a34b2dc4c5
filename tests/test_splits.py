"""Which version serves a request while the traffic of a worker is split."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.router import Router
from atoll.splits import WHOLE, Share, Split
from atoll.workers import Module, ModuleKind, Version


def version(number: int) -> Version:
    module = Module("worker.js", ModuleKind.ESM, b"")
    return Version(f"version_{number:012d}", "worker_shop", "shop", "default", (module,), "worker.js")


V1, V2, V3 = version(1), version(2), version(3)


def split(*shares: tuple[Version, float]) -> Split:
    return Split([Share(each, round(percentage * 100)) for each, percentage in shares])


def head(*lines: str) -> bytes:
    return "\r\n".join(["GET / HTTP/1.1", "Host: shop.localhost", *lines, "", ""]).encode()


def key(text: object) -> bytes:
    return head(f"Cloudflare-Workers-Version-Key: {text}")


def override(text: str) -> bytes:
    return head(f"Cloudflare-Workers-Version-Overrides: {text}", f"Cloudflare-Workers-Version-Key: {KEY_OF_V1}")


HALF = split((V2, 50), (V1, 50))
KEY_OF_V1 = next(text for text in map(str, range(100)) if HALF.choose(key(text)) is V1)


def test_traffic_follows_the_percentages() -> None:
    seen = Counter(split((V3, 10), (V2, 30), (V1, 60)).choose(head()).id for _ in range(20_000))
    assert 1_600 < seen[V3.id] < 2_400 and 5_300 < seen[V2.id] < 6_700 and 11_200 < seen[V1.id] < 12_800
    assert split((V2, 0), (V1, 100)).choose(head()) is V1


def test_a_key_leads_to_the_same_version_every_time_and_keys_follow_the_percentages() -> None:
    chosen = {text: split((V2, 20), (V1, 80)).choose(key(f"user-{text}")) for text in range(5_000)}
    again = {text: split((V2, 20), (V1, 80)).choose(key(f"user-{text}")) for text in range(5_000)}
    assert chosen == again
    assert 800 < sum(each is V2 for each in chosen.values()) < 1_200


def test_a_key_with_the_new_version_keeps_it_while_its_percentage_grows() -> None:
    early = [text for text in range(2_000) if split((V2, 10), (V1, 90)).choose(key(text)) is V2]
    assert early and all(split((V2, 60), (V1, 40)).choose(key(text)) is V2 for text in early)


def test_keys_differ_by_case_and_by_worker() -> None:
    keys = [f"User{number}" for number in range(200)]
    assert any(HALF.choose(key(text)) is not HALF.choose(key(text.lower())) for text in keys)
    other = Version("version_x", "worker_other", "other", "default", V1.modules, "worker.js")
    others = Split([Share(other, 5000), Share(V1, 5000)])
    assert any((HALF.choose(key(text)) is V2) != (others.choose(key(text)) is other) for text in keys)


@pytest.mark.parametrize(
    "text",
    [
        f'shop="{V2.id}"',
        f'other="version_1", shop="{V2.id}"',
        f'  shop="{V2.id}" ,other="x"',
        f'shop="nonsense",shop="{V2.id}"',
    ],
)
def test_an_override_selects_a_version_of_the_deployment_and_beats_the_key(text: str) -> None:
    assert HALF.choose(override(text)) is V2
    assert split((V2, 0), (V1, 100)).choose(override(text)) is V2, "also one without traffic"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "shop",
        f"shop={V2.id}",
        f'shop="{V2.id}',
        f'shop="{V2.id}";',
        f'shop="{V2.id}",,',
        f'Shop="{V2.id}"',
        f'other="{V2.id}"',
        'shop="version_that_is_not_deployed"',
        f'shop="{V3.id}"',
        'shop=""',
        'shop="\\"' * 1_000,
    ],
)
def test_any_other_override_is_ignored_and_the_key_decides(text: str) -> None:
    assert HALF.choose(override(text)) is V1


@given(st.binary(max_size=300))
def test_any_head_leads_to_a_version(raw: bytes) -> None:
    assert HALF.choose(b"GET / HTTP/1.1\r\ncloudflare-workers-version-overrides:" + raw) in (V1, V2)
    assert HALF.choose(raw) in (V1, V2)


def test_the_router_chooses_for_every_way_to_a_worker_and_not_without_a_split() -> None:
    router = Router()
    router.put("shop", V1, ["shop.example/*", "custom.example", "*.wide.example/a/*"], split((V2, 50), (V1, 50)))
    hosts = [
        (b"shop.localhost", b"/"),
        (b"shop.example", b"/x"),
        (b"custom.example", b"/"),
        (b"b.wide.example", b"/a/"),
    ]
    pinned = head(f'Cloudflare-Workers-Version-Overrides: shop="{V2.id}"')
    for host, target in hosts:
        assert router.find(host, target, pinned) is V2
        assert {router.find(host, target) for _ in range(200)} == {V1, V2}
    router.put("shop", V1, ["shop.example/*"])
    assert {router.find(b"shop.localhost", b"/", pinned) for _ in range(50)} == {V1}
    assert router.find(b"shop.example", b"/", pinned) is V1


def test_shares_are_the_whole() -> None:
    with pytest.raises(AssertionError):
        Split([Share(V1, WHOLE - 1)])
