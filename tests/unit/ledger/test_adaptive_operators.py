"""Every course of events that the ledger admits, on tiny tables: no operator tells neighbours apart beyond a cap.

Tables have two records of one bit each. A round asks for a predicate by one of several finite mechanisms; the
operator sees each result before it chooses the next round, and stops when it likes. Its best strategy against a
pair of neighbours is found by going through all courses; nothing is rounded but by doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from harness.adversary import Rule, by_ledger, with_limits

from equipoise.accounting import DELTA_UNIT, ApproximateDpEvent, Cost, PrivacyEvent, PureDpEvent, ZcdpEvent
from equipoise_server.ledger.caps import Cap, at_order, limits

Table = tuple[int, int]
Law = dict[int, float]
PREDICATES: tuple[Callable[[Table], int], ...] = (
    lambda table: table[0],
    lambda table: table[1],
    lambda table: table[0] & table[1],
    lambda table: table[0] ^ table[1],
)
ROUNDING = 1e-9
CERTAIN = 50.0  # a loss that stands for an outcome which one of two tables cannot have


@dataclass(frozen=True)
class Finite:
    """A mechanism by its laws where a predicate is false and where it is true, and what it is charged."""

    part: PrivacyEvent
    laws: tuple[Law, Law]

    def moves(self) -> Iterator[list[tuple[float, float]]]:
        """Loss and chance of every outcome, for either truth against the other."""
        for law, other in (self.laws, self.laws[::-1]):
            yield [
                (math.log(chance / other[each]) if other.get(each) else CERTAIN, chance)
                for each, chance in law.items()
            ]


def response(epsilon: Fraction) -> Finite:
    """Randomised response."""
    right = 1 / (1 + math.exp(-float(epsilon)))
    return Finite(PureDpEvent("tests", epsilon), ({0: right, 1: 1 - right}, {1: right, 0: 1 - right}))


def leaking(epsilon: Fraction, delta: Fraction) -> Finite:
    """Randomised response that says the truth, and that it is the truth, with probability `delta`."""
    right, kept = 1 / (1 + math.exp(-float(epsilon))), 1 - float(delta)
    told = [{truth: kept * right, 1 - truth: kept * (1 - right), 2 + truth: float(delta)} for truth in (0, 1)]
    return Finite(ApproximateDpEvent("places", epsilon, delta), (told[0], told[1]))


def noisy(rho: Fraction) -> Finite:
    """Discrete Gaussian noise on one predicate, told within -1 and 2: `rho`-zCDP, as clamping is harmless."""
    laws = []
    for truth in (0, 1):
        weights = {value: math.exp(-float(rho) * (value - truth) ** 2) for value in range(-60, 61)}
        law: Law = dict.fromkeys(range(-1, 3), 0.0)
        for value, weight in weights.items():
            law[min(2, max(-1, value))] += weight / sum(weights.values())
        laws.append(law)
    return Finite(ZcdpEvent("answers", rho), (laws[0], laws[1]))


def most_delta(add: Rule, cap: Cap, differ: frozenset[int]) -> float:
    """The largest delta at the cap's epsilon by which two tables are told apart.

    `differ`: the truths, on the first table, of predicates that are otherwise on the second. No other tells any.
    """
    found: dict[tuple[Cost, int], float] = {}
    rule = cache(add)
    moves = [(each.part, list(each.moves())[truth]) for each in menu_under(cap) for truth in sorted(differ)]

    def best(total: Cost, loss: float) -> float:
        situation = total, round(loss / ROUNDING)
        if situation not in found:
            value = -math.expm1(min(0.0, cap.epsilon - loss))
            for part, outcomes in moves:
                grown = rule(total, part)
                if grown is not None:
                    going_on = sum(chance * best(grown, min(CERTAIN, loss + more)) for more, chance in outcomes)
                    value = max(value, going_on)
            found[situation] = value
        return found[situation]

    return best(Cost(), 0.0)


TABLES: list[Table] = [(first, second) for first in (0, 1) for second in (0, 1)]
NEIGHBOURS = [
    (table, other)
    for table, other in product(TABLES, repeat=2)
    if sum(a != b for a, b in zip(table, other, strict=True)) == 1
]
DIFFERING = sorted(
    {
        frozenset(predicate(table) for predicate in PREDICATES if predicate(table) != predicate(other))
        for table, other in NEIGHBOURS
    },
    key=sorted,
)
CAPS = [Cap(1.0, 0.1), Cap(2.0, 0.02), Cap(4.0, 0.01)]


def menu_under(cap: Cap) -> list[Finite]:
    """Of every kind of round some, several of which fit together."""
    each, delta = Fraction(cap.epsilon), Fraction(cap.delta)
    return [response(each / 4), response(each / 3), leaking(each / 4, delta / 4), noisy(each / 25)]


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", ["data/t", "analyst/t/analyst/ann"])
def test_the_best_strategy_stays_within_the_cap(name: str, cap: Cap) -> None:
    adding = at_order("cap", cap)
    found = [most_delta(by_ledger(name, adding), cap, differ) for differ in DIFFERING]
    assert len(found) == 3
    assert cap.delta / 5 < max(found) <= cap.delta


@pytest.mark.full
def test_faults_in_the_rule_are_caught() -> None:
    small, large = at_order("cap", CAPS[0]), at_order("cap", CAPS[1])
    without_delta = with_limits(small, replace(limits(small), delta=DELTA_UNIT))
    without_order = with_limits(large, limits(large), rho_by_itself=True)
    for rule, cap in ((without_delta, small), (without_order, large)):
        assert most_delta(with_limits(cap, limits(cap)), cap, DIFFERING[0]) <= cap.delta
        assert most_delta(rule, cap, DIFFERING[0]) > 1.5 * cap.delta
