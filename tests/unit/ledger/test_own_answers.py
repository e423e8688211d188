"""Where the worst round counts: what holds while nobody asks by its own answers, and how it fails where one does.

One record has two bits. In every round an analyst asks for the one or the other; it gets the bit, and all others
see by randomised response, at the cap's epsilon, which of them was asked for. Two worlds differ in the first
statement alone. Every view of the others is gone through (assumption 6 of `docs/privacy-filter.md`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest
from harness.adversary import by_ledger

from equipoise.accounting import ApproximateDpEvent, Cost
from equipoise_server.ledger.caps import Cap

View = tuple[int, ...]
Asking = Callable[[View, View], int]  # the next statement, by one's own answers and by what others have seen
RECORD = (1, 0)
FOLLOWING = 10  # rounds after the first; all views of the others are 2^11
CAP = Cap(1.0, 1e-6)


def by_own_answer(own: View, _: View) -> int:
    """Asks again for what was true."""
    return RECORD.index(own[-1])


def by_what_others_see(_: View, seen: View) -> int:
    """Asks for what others took the last statement for; whoever it is could have told the analyst to."""
    return seen[-1]


def always_the_same(_: View, __: View) -> int:
    """A plan that was made beforehand."""
    return 1


def law(first: int, asking: Asking, following: int) -> dict[View, float]:
    """The chance of all that others may see, given the first statement."""
    right = 1 / (1 + math.exp(-CAP.epsilon))
    found = {}
    for seen in product((0, 1), repeat=following + 1):
        asked, own, chance = first, View(), 1.0
        for place, told in enumerate(seen):
            asked = asked if place == 0 else asking(own, seen[:place])
            own += (RECORD[asked],)
            chance *= right if told == asked else 1 - right
        found[seen] = chance
    return found


def delta_at(epsilon: float, asking: Asking, following: int) -> float:
    """The smallest delta at which the others' views of both worlds are close."""
    one, other = (law(first, asking, following) for first in (0, 1))
    return sum(max(0.0, one[seen] - math.exp(epsilon) * other[seen]) for seen in one)


def test_the_ledger_admits_every_round() -> None:
    add, total = by_ledger("analyst/t/query/ann", CAP), Cost()
    part = ApproximateDpEvent("which statement", Fraction(CAP.epsilon), Fraction(0))
    for _ in range(FOLLOWING + 1):
        grown = add(total, part)
        assert grown is not None
        total = grown
    assert add(total, ApproximateDpEvent("more", Fraction(CAP.epsilon) * 2, Fraction(0))) is None


@pytest.mark.parametrize("asking", [by_what_others_see, always_the_same])
def test_a_statement_is_as_private_as_its_round_where_no_own_answer_decides(asking: Asking) -> None:
    assert delta_at(CAP.epsilon, asking, FOLLOWING) == pytest.approx(0, abs=1e-12)
    assert delta_at(CAP.epsilon * 0.9, asking, FOLLOWING) > 0.01


def test_without_that_the_cap_is_broken_however_many_rounds_are_within_it() -> None:
    found = [delta_at(CAP.epsilon, by_own_answer, following) for following in (0, 2, 6, FOLLOWING)]
    assert found[0] == pytest.approx(0, abs=1e-12)
    assert [round(each, 2) for each in found[1:]] == [0.34, 0.67, 0.82]


def test_statements_that_follow_one_s_own_answers_are_protected_as_a_group() -> None:
    """At as many times epsilon as there are statements, and at less not."""
    assert delta_at(3 * CAP.epsilon, by_own_answer, 2) == pytest.approx(0, abs=1e-12)
    assert delta_at(2.9 * CAP.epsilon, by_own_answer, 2) > 0.01
