"""Charts as the templates draw them: places in percent of the width, so that they are sharp at every width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.accounting import in_rho
from equipoise.model.accounts import Account
from equipoise.model.datasets import DatasetCharge
from equipoise.model.plan_choices import PlanCandidate
from equipoise.model.rounds import Grant

MAX_TICKS = 6
DECADES = 9  # that a chart of errors spans at most


@dataclass(frozen=True)
class Span:
    """A part of the width, in percent."""

    start: float
    width: float

    @property
    def end(self) -> float:
        """Where it ends."""
        return self.start + self.width


@dataclass(frozen=True)
class Bar:
    """One bar of a chart: what it is called and says, where it lies, and its interval, if it has one."""

    label: str
    text: str
    span: Span
    interval: Span | None = None


@dataclass(frozen=True)
class Tick:
    """A line of the scale."""

    place: float
    label: str


@dataclass(frozen=True)
class Bars:
    """A chart of bars with intervals, on one scale."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]


def interval_bars(
    labels: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> Bars:
    """Returns a chart with a bar for each value, from 0, and its interval.

    Args:
        labels: what each bar is called.
        values: the values; one that is no number has no bar.
        lows: the lower ends of their intervals; NaN where there is none.
        highs: the upper ends.
    """
    finite = [each for column in (values, lows, highs) for each in column if math.isfinite(each)]
    ticks = _ticks(min([0.0, *finite]), max([0.0, *finite]))
    low, high = ticks[0], ticks[-1]

    def place(number: float) -> float:
        return round(100 * (number - low) / (high - low), 3)

    def span(one: float, other: float) -> Span:
        start, end = sorted((place(one), place(other)))
        return Span(start, round(end - start, 3))

    bars = []
    for label, value, least, most in zip(labels, values, lows, highs, strict=True):
        drawn = span(0.0, value) if math.isfinite(value) else Span(place(0.0), 0.0)
        certain = math.isfinite(least) and math.isfinite(most)
        text = _short(value) if math.isfinite(value) else "no number"
        text += f" ({_short(least)} to {_short(most)})" if certain else ""
        bars.append(Bar(label, text, drawn, span(least, most) if certain else None))
    return Bars(tuple(bars), tuple(Tick(place(each), f"{each:,.12g}") for each in ticks))


def _short(number: float) -> str:
    """Three digits, as the table has all."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers that enclose both."""
    if not high > low:
        return [low, low + 1.0]
    rough = (high - low) / (MAX_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    # Counted, not added up: 0.30000000000000004 is no label.
    return [float(f"{each * step:.12g}") for each in range(first, last + 1)]


@dataclass(frozen=True)
class Reach:
    """What one mechanism would do: its expected error and the half-width that it promises, on a scale of tens."""

    mechanism: str
    expected: float
    promised: float | None  # None: it promises no interval
    expected_text: str
    promised_text: str
    chosen: bool


@dataclass(frozen=True)
class Errors:
    """The planner's chart."""

    reaches: tuple[Reach, ...]
    ticks: tuple[Tick, ...]


def planner_chart(candidates: Sequence[PlanCandidate], chosen: str) -> Errors:
    """Returns the chart of what mechanisms expect and promise, the smallest expected error first.

    Args:
        candidates: what was compared; those that cannot serve are left out.
        chosen: the mechanism that was chosen.
    """
    able = [(each.mechanism, each.forecast) for each in candidates if each.forecast is not None]
    able.sort(key=lambda each: each[1].expected_error)
    numbers = [one for _, each in able for one in (each.expected_error, each.max_half_width) if 0 < one <= 1]
    last = math.ceil(math.log10(max(numbers, default=1.0)) - 1e-9)
    first = max(math.floor(math.log10(min(numbers, default=0.1)) + 1e-9), last - DECADES)
    first = min(first, last - 1)

    def place(number: float) -> float:
        at = math.log10(number) if number > 0 else first
        return round(100 * min(1.0, max(0.0, (at - first) / (last - first))), 3)

    reaches = tuple(
        Reach(
            name,
            place(each.expected_error),
            place(each.max_half_width) if each.max_half_width < 1 else None,
            f"{each.expected_error:.2g}",
            f"{each.max_half_width:.2g}" if each.max_half_width < 1 else "no interval",
            name == chosen,
        )
        for name, each in able
    )
    ticks = tuple(Tick(place(10.0**each), f"{10.0**each:g}") for each in range(first, last + 1))
    return Errors(reaches, ticks)


@dataclass(frozen=True)
class Spent:
    """What of an account one round has taken, and where it lies in the account's bar."""

    round_id: str
    span: Span
    state: str


@dataclass(frozen=True)
class BudgetBar:
    """An account as a bar: what each round takes, and what is left."""

    account: str
    counted: str
    left: str
    parts: tuple[Spent, ...]
    used: float  # percent


def budget_bar(account: Account, charges: Sequence[DatasetCharge] = ()) -> BudgetBar:
    """Returns the bar of an account, in what it counts: the larger part of its two limits.

    Args:
        account: the account.
        charges: what rounds take of it, the newest first; parts of rounds that are not known are drawn as one.
    """
    used = 100 * _used(account)
    parts: list[Spent] = []
    start = 0.0
    for charge in reversed(charges):
        own = charge.data if charge.data.account == account.name else charge.analyst
        if own is None or charge.charge not in ("reserved", "spent") or account.order is None:
            continue
        width = 100 * _part(own.divergence, own.delta, account)
        parts.append(Spent(charge.round_id, Span(round(start, 3), round(width, 3)), charge.charge))
        start += width
    if used - start > 0.05:
        parts.append(Spent("", Span(round(start, 3), round(used - start, 3)), "spent"))
    return BudgetBar(account.name, account.in_words, account.left_in_words, tuple(parts), round(used, 1))


def grant_bar(dataset: str, grant: Grant) -> BudgetBar:
    """Returns the bar of a grant: what its statements have cost of it together.

    Args:
        dataset: what it is about.
        grant: what it allows, and what was spent.
    """
    used = 100 * grant.spent / grant.total if grant.total else 0.0
    parts = (Spent("", Span(0.0, round(used, 3)), "spent"),) if used else ()
    return BudgetBar(dataset, "zCDP", f"rho {in_rho(grant.left)} of {in_rho(grant.total)}", parts, round(used, 1))


def _used(account: Account) -> float:
    if account.order is None:
        return min(1.0, account.committed.epsilon / account.cap.epsilon) if account.cap.epsilon else 0.0
    return _part(account.divergence, account.delta, account)


def _part(divergence: float, delta: float, account: Account) -> float:
    parts = [
        amount / limit
        for amount, limit in ((divergence, account.max_divergence), (delta, account.max_delta))
        if limit > 0
    ]
    return min(1.0, max(parts, default=0.0))
