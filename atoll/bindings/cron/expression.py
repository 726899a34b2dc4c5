"""Cron expressions as Cloudflare counts them: five fields, UTC, weekdays from 1 = Sunday to 7 = Saturday.

    minute  hour  day of the month  month  day of the week
    0-59    0-23  1-31 L LW nW L-n  1-12   1-7 nL n#k            and everywhere: * a-b a,b */n a-b/n a/n

If both day fields are restricted, one match is enough. This parser exists because no library counts weekdays that way
or knows `15W`; tests compare it with cronsim where both agree on the language. Matching days are computed once for each
of the 28 kinds of months, so a rare expression (a fifth Monday in February) takes as little time as any other. A form
that Cloudflare reads in a surprising way (a descending range, a `*` within a list) is rejected with a text that says
what to write.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct, field

MONTH_NAMES = "JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC"
WEEKDAY_NAMES = "SUN,MON,TUE,WED,THU,FRI,SAT"
MONTHS = {name: i + 1 for i, name in enumerate(MONTH_NAMES.split(","))}
WEEKDAYS = {name: i + 1 for i, name in enumerate(WEEKDAY_NAMES.split(","))}
HORIZON = 12 * 8 + 1  # months: two leap years apart, also around a century without one
ITEM = re.compile(r"(\*|[0-9A-Z]+)(?:-([0-9A-Z]+))?(?:/([0-9]+))?")


class Month(NamedTuple):
    """The kind of a month: its length and first weekday. There are 28 kinds."""

    starts: int  # the weekday of its first day; 1 is Sunday
    length: int

    def weekday(self, day: int) -> int:
        return (self.starts + day - 2) % 7 + 1

    def first(self, weekday: int) -> int:
        """The first day with this weekday."""
        return (weekday - self.starts) % 7 + 1

    def nearest_weekday(self, day: int) -> int:
        """The day itself, or the Monday or Friday next to it, in the same month."""
        if self.weekday(day) == 7:
            return day - 1 if day > 1 else day + 2
        if self.weekday(day) == 1:
            return day + 1 if day < self.length else day - 2
        return day


DayRule = Callable[[Month], Iterable[int]]


class BadCron(ValueError):
    """An invalid expression; the text says why."""


class CronField(Struct, frozen=True):
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
        """The values of one item without day letters."""
        match = ITEM.fullmatch(item)
        if match is None:
            raise BadCron(f"the {self.name} `{item}` is not understood")
        first, last, step = match.groups()
        if first == "*" and last is not None:
            raise BadCron(f"the {self.name} `{item}` is not understood")
        low = self.low if first == "*" else self.number(first)
        high = self.number(last) if last else self.high if first == "*" or step else low
        if high < low:
            raise BadCron(f"the {self.name} `{item}` is descending: write `{first}-{self.high},{self.low}-{last}`")
        by = int(step) if step else 1
        if not 1 <= by <= self.high - self.low:
            raise BadCron(f"the step of the {self.name} `{item}` is not from 1 to {self.high - self.low}")
        return range(low, high + 1, by)

    def parse(self, text: str, special: Callable[[str], DayRule | None] = lambda item: None) -> Days:
        """Values and, for days, rules."""
        values: set[int] = set()
        rules: list[DayRule] = []
        items = list(dict.fromkeys(text.split(",")))
        for item in items:
            if item.startswith("*") and "," in text:
                raise BadCron(f"the {self.name} `{text}` has a `*` within a list: write the values it is to have")
            rule = special(item)
            if rule is not None:
                rules.append(rule)
            else:
                values.update(self.values(item))
        return Days(frozenset(values), tuple(rules), text == "*")


class Days(Struct, frozen=True):
    """A field: plain values, rules that need a month, and whether it is unrestricted."""

    values: frozenset[int]
    rules: tuple[DayRule, ...]
    is_any: bool

    def of(self, month: Month) -> set[int]:
        """The days of a month by rules alone."""
        return {day for rule in self.rules for day in rule(month) if 1 <= day <= month.length}


MINUTE = CronField("minute", 0, 59)
HOUR = CronField("hour", 0, 23)
DAY = CronField("day of the month", 1, 31)
MONTH = CronField("month", 1, 12, MONTHS)
WEEKDAY = CronField("day of the week", 1, 7, WEEKDAYS)


class Cron(Struct, frozen=True):
    """A parsed expression."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    months: frozenset[int]
    weekdays: Days
    known: dict[Month, tuple[int, ...]]  # the days of each of the 28 kinds of months, computed on first use

    def next_after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """The first minute after `moment` (UTC) that matches; None if there is none in years."""
        moment = moment.astimezone(datetime.UTC).replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
        time = self._time_from(moment.hour, moment.minute)
        today, year, month = (moment.day if time is not None else moment.day + 1), moment.year, moment.month
        for _ in range(HORIZON):
            if month in self.months:
                for day in self._days(year, month):
                    if day >= today:
                        is_today = time is not None and (year, month, day) == (moment.year, moment.month, moment.day)
                        hour, minute = time if time is not None and is_today else (self.hours[0], self.minutes[0])
                        return datetime.datetime(year, month, day, hour, minute, tzinfo=datetime.UTC)
            today, year, month = 1, year + month // 12, month % 12 + 1
        return None

    def last_until(self, moment: datetime.datetime) -> datetime.datetime | None:
        """The last minute not after `moment` (UTC) that matches; None if there was none in years."""
        moment = moment.astimezone(datetime.UTC)
        time = self._time_until(moment.hour, moment.minute)
        today, year, month = (moment.day if time is not None else moment.day - 1), moment.year, moment.month
        for _ in range(HORIZON):
            if month in self.months:
                for day in reversed(self._days(year, month)):
                    if day <= today:
                        is_today = time is not None and (year, month, day) == (moment.year, moment.month, moment.day)
                        hour, minute = time if time is not None and is_today else (self.hours[-1], self.minutes[-1])
                        return datetime.datetime(year, month, day, hour, minute, tzinfo=datetime.UTC)
            today, year, month = 31, year - (month == 1), (month - 2) % 12 + 1
        return None

    def _time_from(self, hour: int, minute: int) -> tuple[int, int] | None:
        """The first matching time of a day at or after this one."""
        for at_hour in self.hours:
            if at_hour > hour:
                return at_hour, self.minutes[0]
            if at_hour == hour and self.minutes[-1] >= minute:
                return at_hour, next(at for at in self.minutes if at >= minute)
        return None

    def _time_until(self, hour: int, minute: int) -> tuple[int, int] | None:
        """The last matching time of a day at or before this one."""
        for at_hour in reversed(self.hours):
            if at_hour < hour:
                return at_hour, self.minutes[-1]
            if at_hour == hour and self.minutes[0] <= minute:
                return at_hour, next(at for at in reversed(self.minutes) if at <= minute)
        return None

    def _days(self, year: int, month: int) -> tuple[int, ...]:
        first, length = calendar.monthrange(year, month)
        kind = Month((first + 1) % 7 + 1, length)
        days = self.known.get(kind)
        if days is None:
            days = self.known[kind] = self._look(kind)
        return days

    def _look(self, month: Month) -> tuple[int, ...]:
        in_month, in_week = self.days.of(month), self.weekdays.of(month)
        for day in range(1, month.length + 1):
            if day in self.days.values:
                in_month.add(day)
            if month.weekday(day) in self.weekdays.values:
                in_week.add(day)
        is_both = self.days.is_any or self.weekdays.is_any
        return tuple(sorted(in_month & in_week if is_both else in_month | in_week))


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> Cron:
    """Parse an expression. BadCron if it is invalid."""
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
        {},
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
        return lambda month: (month.length - back,)
    if item == "LW":
        return lambda month: (month.nearest_weekday(month.length),)
    if match := re.fullmatch(r"([0-9]+)W", item):
        wanted = DAY.number(match[1])
        return lambda month: (month.nearest_weekday(wanted),) if wanted <= month.length else ()
    return None


def _week_rule(item: str) -> DayRule | None:
    """`L` Saturday, `6L` the last Friday of the month, `6#2` the second Friday."""
    if item == "L":
        return lambda month: range(month.first(7), month.length + 1, 7)
    if match := re.fullmatch(r"([0-9A-Z]+)L", item):
        wanted = WEEKDAY.number(match[1])
        return lambda month: range(month.first(wanted), month.length + 1, 7)[-1:]
    if match := re.fullmatch(r"([0-9A-Z]+)#([0-9]+)", item):
        wanted, nth = WEEKDAY.number(match[1]), int(match[2])
        if not 1 <= nth <= 5:
            raise BadCron(f"the day of the week `{item}` has no such number: use 1 to 5")
        return lambda month: (month.first(wanted) + 7 * (nth - 1),)
    return None
