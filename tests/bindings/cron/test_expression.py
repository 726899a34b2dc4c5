"""Cron expressions: Cloudflare's weekdays and letters, and the same times as cronsim where both support the form."""

from __future__ import annotations

import datetime
import random
import time

import pytest
from cronsim import CronSim

from atoll.bindings.cron.expression import BadCron, parse_cron

START = datetime.datetime(2026, 11, 16, 12, 30, 20, tzinfo=datetime.UTC)  # a Monday


def following(text: str, count: int = 1, start: datetime.datetime = START) -> list[str]:
    cron, found, at = parse_cron(text), [], start
    for _ in range(count):
        following = cron.next_after(at)
        assert following is not None
        found.append(f"{following:%Y-%m-%d %H:%M}")
        at = following
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", ["2026-11-16 12:31", "2026-11-16 12:32"]),
        ("*/30 * * * *", ["2026-11-16 13:00", "2026-11-16 13:30"]),
        ("30 12 * * *", ["2026-11-17 12:30", "2026-11-18 12:30"]),
        ("0 9 * * 1", ["2026-11-22 09:00", "2026-11-29 09:00"]),  # Sunday
        ("0 9 * * sun", ["2026-11-22 09:00", "2026-11-29 09:00"]),
        ("0 9 * * 2-6", ["2026-11-17 09:00", "2026-11-18 09:00"]),  # Monday to Friday
        ("0 0 L * *", ["2026-11-30 00:00", "2026-12-31 00:00"]),
        ("0 0 L-2 * *", ["2026-11-28 00:00", "2026-12-29 00:00"]),
        ("0 0 LW * *", ["2026-11-30 00:00", "2026-12-31 00:00"]),
        ("0 0 LW JAN *", ["2027-01-29 00:00", "2028-01-31 00:00"]),  # the 31st is a Sunday
        ("0 0 15W * *", ["2026-12-15 00:00", "2027-01-15 00:00"]),
        ("0 0 1W * *", ["2026-12-01 00:00", "2027-01-01 00:00"]),
        ("0 0 1W 8 *", ["2027-08-02 00:00", "2028-08-01 00:00"]),  # a Sunday: Monday after, not Friday before
        ("0 0 * * 6L", ["2026-11-27 00:00", "2026-12-25 00:00"]),  # the last Friday
        ("0 0 * * 6#2", ["2026-12-11 00:00", "2027-01-08 00:00"]),  # the second Friday
        ("0 0 * * L", ["2026-11-21 00:00", "2026-11-28 00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 1 * 2", ["2026-11-23 00:00", "2026-11-30 00:00"]),  # the first, or a Monday
        ("59 23 31 12 *", ["2026-12-31 23:59", "2027-12-31 23:59"]),
        ("5/20 0 * * *", ["2026-11-17 00:05", "2026-11-17 00:25"]),
    ],
)
def test_the_next_times_of(text: str, expected: list[str]) -> None:
    assert following(text, 2) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("* * * *", "has 4 fields"),
        ("60 * * * *", "minute `60`"),
        ("* 24 * * *", "hour `24`"),
        ("* * 0 * *", "day of the month `0`"),
        ("* * * 13 *", "month `13`"),
        ("* * * * 0", "1 is Sunday"),
        ("* * * * 8", "1 is Sunday"),
        ("*/60 * * * *", "step"),
        ("*/0 * * * *", "step"),
        ("* * * * SAT-SUN", "is descending"),
        ("10-5 * * * *", "is descending"),
        ("*,5 * * * *", "within a list"),
        ("a b c d e", "minute `A`"),
        ("0 0 31 2 *", "never happens"),
        ("@daily", "has 1 fields"),
        ("1.5 * * * *", "not understood"),
        ("* * * * 6#6", "no such number"),
        ("*-5 * * * *", "not understood"),
        ("0 0 ? * *", "not understood"),
    ],
)
def test_an_invalid_expression_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(BadCron) as caught:
        parse_cron(text)
    assert reason in str(caught.value)


def test_times_are_those_of_cronsim() -> None:
    chance = random.Random(7)
    for _ in range(300):
        minute = chance.choice(["*", "*/7", "3", "10-20", "1,2,50", "5-50/9"])
        hour = chance.choice(["*", "*/5", "0", "8-18", "1,23"])
        day = chance.choice(["*", "1", "28", "L", "10-12", "*/9", "1,15", "LW"])
        month = chance.choice(["*", "2", "1,6", "3-5", "*/4"])
        days = sorted(chance.sample(range(1, 8), chance.randint(1, 3)))
        week = chance.choice(["*", ",".join(map(str, days)), f"{days[0]}L", f"{days[0]}#2"])
        theirs = week
        if week[0] != "*":
            number, rest = int(week[0]), week[1:]
            theirs = f"{number - 1}{rest}" if rest[:1] in ("L", "#") else ",".join(str(d - 1) for d in days)
        text = f"{minute} {hour} {day} {month} {week}"
        if day.startswith("*/") and week != "*":
            continue  # cronsim, like Vixie cron, treats a stepped star as no restriction
        start = START + datetime.timedelta(minutes=chance.randrange(500_000))
        expected = [
            f"{time:%Y-%m-%d %H:%M}"
            for time, _ in zip(CronSim(f"{minute} {hour} {day} {month} {theirs}", start), range(3), strict=False)
        ]
        assert following(text, 3, start) == expected, text


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * L-30 2,4 *", "0 0 31W 2 *", "0 0 30,31 FEB *"]
)
def test_an_expression_that_never_happens_is_refused_quickly(text: str) -> None:
    began = time.process_time()
    with pytest.raises(BadCron, match="never happens"):
        parse_cron(text)
    assert time.process_time() - began < 0.02


def test_a_hundred_rare_expressions_take_a_few_milliseconds() -> None:
    odd = [f"{i % 60} {i // 60} 29 2 *" for i in range(60)] + [f"{i} 3 * 2 {i % 7 + 1}#5" for i in range(40)]
    crons = []
    for text in odd:
        try:
            crons.append(parse_cron(text))
        except BadCron:
            continue  # the next Februaries lack a fifth such weekday
    assert len(crons) > 60
    began = time.process_time()
    for cron in crons:
        cron.next_after(START)
        cron.last_until(START)
    assert time.process_time() - began < 0.02  # a slow search takes 0.06 and more


def test_the_last_time_until_a_moment_is_the_one_before_the_next() -> None:
    chance = random.Random(7)
    for text in ("*/7 3-9 * * *", "0 0 29 2 *", "5 4 LW * *", "* * 1 1 *", "0 12 15W,L 2,7 3#1", "59 23 31 12 *"):
        cron = parse_cron(text)
        for _ in range(50):
            moment = START + datetime.timedelta(minutes=chance.randrange(4_000_000), seconds=chance.randrange(60))
            last = cron.last_until(moment)
            assert last is not None and last <= moment
            following = cron.next_after(last)
            assert following is None or following > moment
            assert cron.next_after(last - datetime.timedelta(minutes=1)) == last
