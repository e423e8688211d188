"""How precisely a statement is known where its counts differ in that: by the least precise of them, by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from equipoise.accounting import RHO_UNIT
from equipoise.queries.grant_account import Wanted
from equipoise.queries.grant_costs import account_after, grant_costs
from equipoise.queries.meanings import Meaning, meaning_of
from equipoise.queries.own_precision import MeasuredPrecision, OwnPrecision
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single

SCHEMA = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1"))))
A, B = attribute("a"), attribute("b")
UNEVEN = Marginal(("a",), where=(A == "0") | ((A == "1") & (B == "0")))  # of two cells, of one, and of none
BETA, BITS = 0.05, 8
TEN = RHO_UNIT // 200  # the precision of a count whose noise has a standard deviation of 10 records
MEASURED = MeasuredPrecision((Fraction(9 * TEN), Fraction(TEN), Fraction(4 * TEN)), BITS)


def meaning(statement: Statement) -> Meaning:
    return meaning_of(compile_single(statement, SCHEMA), repr(statement).encode())


def test_a_statement_is_known_as_precisely_as_its_least_precise_count() -> None:
    """Both tables move by 2 in squares. Cells have the precision 5; a count of a has 5 / 2 by them, and 500 alone.

    The count of two cells has 1005 / 2. The count of one is half the sum of these two, and half their difference,
    whose precision is 5 / 2: the variance is (2 / 1005 + 2 / 5) / 4 = 101 / 1005. The empty count is known.
    """
    known = OwnPrecision()
    known.learn(meaning(Marginal(("a", "b"))), 10)
    known.learn(meaning(Marginal(("a",))), 1000)
    assert known.known(meaning(Marginal(("a",)))) == Fraction(1005, 2)
    assert known.known(meaning(UNEVEN)) == Fraction(1005, 101)


def reach(bits: int, noises: int) -> float:
    """How many standard deviations an answer by so many noises, each as it was first drawn, may err by."""
    chance = BETA / 10 / 2**bits
    return math.sqrt(17 / 16 * (-2 * math.log(chance) + noises * math.log(17)))


def test_what_a_measurement_tells_is_as_wrong_as_its_least_precise_count() -> None:
    """For nothing, as it is wanted no better: the count with the precision of 10 records is the worst."""
    (told,) = grant_costs(account_after([]), 0, [Wanted(meaning(UNEVEN), 1, MEASURED)], 1, BETA).statements
    assert told.cost == 0
    assert told.measured == pytest.approx(10)
    assert told.standard_error == pytest.approx(10)
    assert told.half_width == pytest.approx(10 * reach(BITS + 2, 1), rel=1e-5)


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 100)])
def test_the_narrower_of_two_ways_makes_the_interval(share: Fraction) -> None:
    """Noise is bought besides, as precise as the worst measured count or a hundredth of it.

    The answer's interval follows from that noise alone, or from it and the measurement: for the first meaning of
    a grant four fifths of a fifth of beta are for that noise, for three counts and on two sides.
    """
    asked = meaning(UNEVEN)
    price = int(asked.moved * TEN * (1 + share))
    (told,) = grant_costs(account_after([]), 0, [Wanted(asked, price, MEASURED)], 1, BETA).statements
    assert told.cost == asked.moved * TEN * share
    assert told.standard_error == pytest.approx(10 / math.sqrt(1 + share))
    alone = -NormalDist().inv_cdf(BETA / 5 * 0.8 / (2 * 3)) * 10 / math.sqrt(share)
    joined = reach(BITS + 2, 2) * 10 / math.sqrt(1 + share)
    assert (alone < joined) is (share == 1)
    assert told.half_width == pytest.approx(min(alone, joined), rel=1e-5)
