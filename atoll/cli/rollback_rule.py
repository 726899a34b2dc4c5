"""--rollback-above and the options that go with it: the rollback rule of a deployment, for several commands."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import click

from atoll.cli.talk import fail, say, shown_time

PERCENTAGE = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)\s*%?")
DURATION = re.compile(r"([0-9]{1,9})\s*(s|m|h|d)?")
SECONDS = {None: 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def rollback_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets `rollback`, the field of the API, in place of the options; None without a rule."""

    @click.option(
        "--rollback-above",
        "above",
        metavar="PERCENT",
        help="Return to the earlier deployment if more of the new version's requests fail, such as 5%.",
    )
    @click.option(
        "--rollback-window", "window", metavar="TIME", help="Count the requests of this time.  [default: 60s]"
    )
    @click.option(
        "--rollback-min-requests",
        "requests",
        type=click.IntRange(1),
        metavar="N",
        help="Do nothing with fewer requests in that time.  [default: 20]",
    )
    @click.option(
        "--rollback-for",
        "watch",
        metavar="TIME",
        help="After this time the deployment counts as healthy and the rule ends.  [default: 10m]",
    )
    @functools.wraps(command)
    def with_rule(
        above: str | None, window: str | None, requests: int | None, watch: str | None, **rest: object
    ) -> Any:
        return command(rollback=_rule(above, window, requests, watch), **rest)

    return with_rule


def _rule(above: str | None, window: str | None, requests: int | None, watch: str | None) -> dict[str, Any] | None:
    if above is None:
        others = {"--rollback-window": window, "--rollback-min-requests": requests, "--rollback-for": watch}
        for option, given in others.items():
            if given is not None:
                fail(f"{option} needs --rollback-above", "add for example --rollback-above 5%")
        return None
    percentage = PERCENTAGE.fullmatch(above.strip())
    if percentage is None:
        fail(f"--rollback-above is {above!r}", "write a percentage like 5% or 0.5%")
    seconds = _seconds("--rollback-window", window)
    rule: dict[str, Any] = {"above": float(percentage[1])}
    found = {"window_seconds": seconds, "min_requests": requests, "watch_seconds": _seconds("--rollback-for", watch)}
    if seconds is not None and watch is None:
        found["watch_seconds"] = max(seconds, 600)  # the rule lasts at least as long as its window
    return rule | {name: value for name, value in found.items() if value is not None}


def _seconds(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = DURATION.fullmatch(text.strip())
    if found is None:
        fail(f"{option} is {text!r}", "write a time like 90s, 10m, 2h or 1d")
    return int(found[1]) * SECONDS[found[2]]


def say_rule(deployment: dict[str, Any]) -> None:
    """Say what the rule of a new deployment does."""
    rule = deployment["rollback"]
    if rule is not None:
        watched = " or ".join(map(str, rule["watches"]))
        say(
            f"until {shown_time(rule['ends_at'])} it returns to deployment {rule['returns_to']} if more than"
            f" {rule['above']:g}% of the requests to version {watched} fail, of at least {rule['min_requests']}"
            f" in {rule['window_seconds']} s"
        )


def shown_rule(deployment: dict[str, Any]) -> str:
    """The rule of a deployment in a table."""
    rule = deployment["rollback"]
    return f"above {rule['above']:g}%: {rule['state'].replace('_', ' ')}" if rule is not None else ""
