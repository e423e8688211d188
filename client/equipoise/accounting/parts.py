"""A charge in named parts, each with the guarantee that was proven for it, and their JSON.

An auditor reads from the journal what a round was charged for, part by part, and can add it up again with any
accountant: `equipoise_server.ledger.conversion.event_of` makes `dp_accounting` events of the same parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from equipoise.accounting.cost import DELTA_UNIT, RHO_UNIT, Cost, rounded_up
from equipoise.accounting.repair import pure_rho


@dataclass(frozen=True)
class Concentrated:
    """`times` mechanisms, each `rho`-zCDP (Bun & Steinke 2016)."""

    name: str
    rho: Fraction
    times: int = 1
    event: ClassVar[str] = "ZCDpEvent"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return self.times * self.rho, Fraction(0), Fraction(0)


@dataclass(frozen=True)
class Pure:
    """`times` mechanisms, each `epsilon`-DP.

    The charge is `epsilon^2 / 2` in zCDP each (Bun & Steinke 2016, Proposition 1.4). An accountant of privacy
    losses may do better from the epsilon: whatever such a mechanism releases about two neighbours can be made from
    one bit of randomised response that is right with probability `e^epsilon / (1 + e^epsilon)` (Kairouz, Oh &
    Viswanath 2015).
    """

    name: str
    epsilon: Fraction
    times: int = 1
    event: ClassVar[str] = "pure"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return pure_rho(self.epsilon, self.times), Fraction(0), Fraction(0)


@dataclass(frozen=True)
class Approximate:
    """An (`epsilon`, `delta`) pair, added by basic composition: `dp_accounting` has no event for it."""

    name: str
    epsilon: Fraction
    delta: Fraction
    event: ClassVar[str] = "pair"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return Fraction(0), self.epsilon, self.delta


Part = Concentrated | Pure | Approximate


def charge_of(parts: Iterable[Part]) -> Cost:
    """The sum of all parts, rounded up once to whole units.

    >>> charge_of([Pure("detection", Fraction(1, 10), 4), Concentrated("answers", Fraction(1, 100), 4)])
    Cost(rho=60000000000, epsilon=0, delta=0)
    """
    amounts = [part.amounts() for part in parts]
    rho, epsilon, delta = (sum((amount[place] for amount in amounts), Fraction(0)) for place in range(3))
    return Cost(rounded_up(rho, RHO_UNIT), rounded_up(epsilon, RHO_UNIT), rounded_up(delta, DELTA_UNIT))


def parts_to_json(mechanism: str, parts: Iterable[Part]) -> str:
    """Canonical JSON with the mechanism's name; fractions as `numerator/denominator`."""
    events = [{"event": part.event, **asdict(part)} for part in parts]
    fields = {"mechanism": mechanism, "events": events}
    return json.dumps(fields, default=_fraction, sort_keys=True, separators=(",", ":"))


def parts_from_json(text: str) -> tuple[Part, ...]:
    """The parts that `parts_to_json` wrote. Raises ValueError where the text is something else."""
    try:
        return tuple(_part(event) for event in json.loads(text)["events"])
    except (KeyError, TypeError) as problem:
        raise ValueError("events: not what a charge is made of") from problem


def _part(fields: dict[str, Any]) -> Part:
    name, event = str(fields["name"]), fields["event"]
    if event == Approximate.event:
        return Approximate(name, Fraction(fields["epsilon"]), Fraction(fields["delta"]))
    times = int(fields["times"])
    if times < 0:
        raise ValueError("events: a part cannot happen less than never")
    if event == Pure.event:
        return Pure(name, Fraction(fields["epsilon"]), times)
    if event == Concentrated.event:
        return Concentrated(name, Fraction(fields["rho"]), times)
    raise KeyError(event)


def _fraction(value: object) -> str:
    if not isinstance(value, Fraction):
        raise TypeError(f"{value!r} is no part of a charge")
    return f"{value.numerator}/{value.denominator}"
