"""Claims on hosts: two claims conflict exactly if they share a host, in any order."""

from __future__ import annotations

import itertools
import random

import pytest

from atoll.claims import Claim, Claims, claim_of, read_claim, spelled, unit_of

BASE = "apps.example"
HOSTS = ["a.b", "x.a.b", "y.x.a.b", "b", "ab", "c.b", "example", "apps.example", "other.example"]
UNITS = ["shop.apps.example", "x.shop.apps.example", "y.x.shop.apps.example", "workshop.apps.example"]
EVERY_HOST = [*HOSTS, *UNITS, *(f"z.{host}" for host in HOSTS if host != BASE), "z", "free.apps.example"]


def hosts_in(claim: Claim) -> set[str]:
    """The hosts of a claim, by definition."""
    wildcard, host = claim
    below = {each for each in EVERY_HOST if each.endswith("." + host) or not host}
    found = {"": {host}, "*.": below, "*": below | {host}}[wildcard]
    if not unit_of(host, BASE):  # a wildcard over the base domain claims only the names without an owner
        found = {each for each in found if unit_of(each, BASE) in ("", "free")}
    return found


def every_claim() -> list[Claim]:
    kinds = itertools.product(("", "*.", "*"), [*HOSTS, *UNITS])
    return list(dict.fromkeys([*(claim_of(wildcard, host, BASE) for wildcard, host in kinds), ("*", "")]))


def test_claims_of_two_tenants_conflict_if_they_share_a_host() -> None:
    for one, two in itertools.product(every_claim(), repeat=2):
        claims = Claims(BASE)
        claims.put(one, "acme")
        assert claims.others(two, "globex") == bool(hosts_in(one) & hosts_in(two)), (one, two)
        assert not claims.others(two, "acme")
        claims.drop(one, "acme")
        assert not claims.others(two, "globex") and not claims.holders(one)


def test_the_index_of_claims_answers_like_a_scan_of_all_claims() -> None:
    rng = random.Random(16)
    claims, made = Claims(BASE), []
    for _ in range(3_000):
        if made and rng.random() < 0.45:
            claims.drop(*made.pop(rng.randrange(len(made))))
        else:
            made.append((rng.choice(every_claim()), rng.choice(["acme", "globex", "initech"])))
            claims.put(*made[-1])
        wanted, tenant = rng.choice(every_claim()), rng.choice(["acme", "globex", "nobody"])
        met = any(whose != tenant and hosts_in(each) & hosts_in(wanted) for each, whose in made)
        assert claims.others(wanted, tenant) == met


@pytest.mark.parametrize(
    ("host", "unit"),
    [
        ("shop.apps.example", "shop"),
        ("x.y.shop.apps.example", "shop"),
        ("apps.example", ""),
        ("example", ""),
        ("shopapps.example", ""),
        ("shop.apps.example.org", ""),
    ],
)
def test_below_the_base_domain_a_name_includes_all_its_subdomains(host: str, unit: str) -> None:
    assert unit_of(host, BASE) == unit


def test_a_claim_is_parsed_from_its_text() -> None:
    for claim in every_claim():
        assert read_claim(spelled(claim), BASE) == claim
    assert read_claim("Shop.Apps.Example.", BASE) == ("*", "shop.apps.example")
