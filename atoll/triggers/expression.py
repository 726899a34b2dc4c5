"""Cron expressions as Cloudflare counts them: five fields, UTC, weekdays from 1 = Sunday to 7 = Saturday.

    minute  hour  day of the month  month  day of the week
    0-59    0-23  1-31 L LW nW L-n  1-12   1-7 nL n#k            and everywhere: * a-b a,b */n a-b/n a/n

With both days restricted, either is enough. Written here because no library counts weekdays that way or knows `15W`;
tests compare it with cronsim where the two agree on the language. A form that Cloudflare reads in a surprising way
(a range that goes down, a `*` within a list) is refused with a text that says what to write.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct, field

MONTH_NAMES = "JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC"
WEEKDAY_NAMES = "SUN,MON,TUE,WED,THU,FRI,SAT"
MONTHS = {name: i + 1 for i, name in enumerate(MONTH_NAMES.split(","))}
WEEKDAYS = {name: i + 1 for i, name in enumerate(WEEKDAY_NAMES.split(","))}
HORIZON = 366 * 8 + 1  # days: two leap years apart, also around a century without one
ITEM = re.compile(r"(\*|[0-9A-Z]+)(?:-([0-9A-Z]+))?(?:/([0-9]+))?")

DayRule = Callable[[datetime.date], bool]


class BadCron(ValueError):
    """An expression that cannot be used; the text says why."""


class Field(Struct, frozen=True):
    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        value = self.names.get(text, int(text) if text.isdigit() and len(text) < 4 else -1)
        if not self.low <= value <= self.high:
            hint = " (1 is Sunday)" if self.names is WEEKDAYS else ""
            raise BadCron(f"the {self.name} `{text}` is not from {self.low} to {self.high}{hint}")
        return value

    def values(self, item: str) -> range:
        """What one item without day letters stands for."""
        match = ITEM.fullmatch(item)
        if match is None:
            raise BadCron(f"the {self.name} `{item}` is not understood")
        first, last, step = match.groups()
        if first == "*" and last is not None:
            raise BadCron(f"the {self.name} `{item}` is not understood")
        low = self.low if first == "*" else self.number(first)
        high = self.number(last) if last else self.high if first == "*" or step else low
        if high < low:
            raise BadCron(f"the {self.name} `{item}` goes down: write `{first}-{self.high},{self.low}-{last}`")
        by = int(step) if step else 1
        if not 1 <= by <= self.high - self.low:
            raise BadCron(f"the step of the {self.name} `{item}` is not from 1 to {self.high - self.low}")
        return range(low, high + 1, by)

    def parse(self, text: str, special: Callable[[str], DayRule | None] = lambda item: None) -> Days:
        """Values and, for days, rules."""
        values: set[int] = set()
        rules: list[DayRule] = []
        items = text.split(",")
        for item in items:
            if item.startswith("*") and len(items) > 1:
                raise BadCron(f"the {self.name} `{text}` has a `*` within a list: write the values it is to have")
            rule = special(item)
            if rule is not None:
                rules.append(rule)
            else:
                values.update(self.values(item))
        return Days(frozenset(values), tuple(rules), text == "*")


class Days(Struct, frozen=True):
    """A field: plain values, rules that need a date, and whether it says nothing at all."""

    values: frozenset[int]
    rules: tuple[DayRule, ...]
    is_any: bool


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of the month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
WEEKDAY = Field("day of the week", 1, 7, WEEKDAYS)


class Cron(Struct, frozen=True):
    """A parsed expression."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    months: frozenset[int]
    weekdays: Days

    def next_after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """The first minute after `moment` (UTC) that matches; None if there is none in years."""
        moment = moment.astimezone(datetime.UTC).replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
        day, hour, minute = moment.date(), moment.hour, moment.minute
        for _ in range(HORIZON):
            if day.month in self.months and self._has_day(day):
                for at_hour in self.hours:
                    for at_minute in self.minutes:
                        if (at_hour, at_minute) >= (hour, minute):
                            return datetime.datetime(
                                day.year, day.month, day.day, at_hour, at_minute, tzinfo=datetime.UTC
                            )
            day, hour, minute = day + datetime.timedelta(days=1), 0, 0
        return None

    def _has_day(self, day: datetime.date) -> bool:
        in_month = day.day in self.days.values or any(rule(day) for rule in self.days.rules)
        in_week = weekday(day) in self.weekdays.values or any(rule(day) for rule in self.weekdays.rules)
        if self.days.is_any or self.weekdays.is_any:
            return in_month and in_week
        return in_month or in_week


def weekday(day: datetime.date) -> int:
    """1 is Sunday."""
    return day.isoweekday() % 7 + 1


def last_day(day: datetime.date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> Cron:
    """BadCron if it is not one."""
    fields = text.upper().split()
    if len(fields) != 5:
        raise BadCron(
            f"`{text[:80]}` has {len(fields)} fields: a cron expression has five, minute hour day month weekday"
        )
    minute, hour, day, month, week = fields
    cron = Cron(
        text,
        tuple(sorted(MINUTE.parse(minute).values)),
        tuple(sorted(HOUR.parse(hour).values)),
        DAY.parse(day, _month_rule),
        MONTH.parse(month).values,
        WEEKDAY.parse(week, _week_rule),
    )
    if cron.next_after(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)) is None:
        raise BadCron(f"`{text[:80]}` never happens")
    return cron


def _month_rule(item: str) -> DayRule | None:
    """`L` the last day, `L-3` three before it, `LW` the last weekday, `15W` the weekday nearest to the 15th."""
    if match := re.fullmatch(r"L(?:-([0-9]{1,2}))?", item):
        back = int(match[1] or 0)
        if back > 30:
            raise BadCron(f"the day of the month `{item}` is before the first")
        return lambda day: day.day == last_day(day) - back
    if item == "LW":
        return lambda day: day == nearest_weekday(day.replace(day=last_day(day)))
    if match := re.fullmatch(r"([0-9]+)W", item):
        wanted = DAY.number(match[1])
        return lambda day: wanted <= last_day(day) and day == nearest_weekday(day.replace(day=wanted))
    return None


def nearest_weekday(day: datetime.date) -> datetime.date:
    """The day itself, or the Monday or Friday beside it, in the same month."""
    step = {6: -1, 7: 1}.get(day.isoweekday(), 0)
    moved = day + datetime.timedelta(days=step)
    if moved.month == day.month:
        return moved
    return day + datetime.timedelta(days=-2 if step > 0 else 2)


def _week_rule(item: str) -> DayRule | None:
    """`L` Saturday, `6L` the last Friday of the month, `6#2` the second Friday."""
    if item == "L":
        return lambda day: weekday(day) == 7
    if match := re.fullmatch(r"([0-9A-Z]+)L", item):
        wanted = WEEKDAY.number(match[1])
        return lambda day: weekday(day) == wanted and day.day > last_day(day) - 7
    if match := re.fullmatch(r"([0-9A-Z]+)#([0-9]+)", item):
        wanted, nth = WEEKDAY.number(match[1]), int(match[2])
        if not 1 <= nth <= 5:
            raise BadCron(f"the day of the week `{item}` has no such number: use 1 to 5")
        return lambda day: weekday(day) == wanted and (day.day - 1) // 7 + 1 == nth
    return None
