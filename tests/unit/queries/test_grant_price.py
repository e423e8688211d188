"""What a wanted standard error costs, and what a price buys."""

from __future__ import annotations

import math
from typing import Any

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.grant_price import AskedTable, GrantPrice, paid, shared_units, standard_error
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import CountDistinct, Marginal, Statement

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
RED, TABLE = attribute("colour") == "red", Marginal(("colour", "size"))


def of(persons: int = 1) -> AskedTable:
    return AskedTable(SCHEMA, 4000, persons)


@pytest.mark.parametrize("persons", [1, 3])
@pytest.mark.parametrize("error", [0.5, 40, 1234.5])
def test_what_is_paid_is_the_least_that_buys_the_wanted_error(error: float, persons: int) -> None:
    for statement in (RED, TABLE):
        units = GrantPrice(error=error).units(statement, of(persons))
        assert standard_error(statement, persons, units) <= error
        assert units == 1 or standard_error(statement, persons, units - 1) > error
        assert paid(GrantPrice(error=error), of(persons), statement) == units


def test_a_table_costs_twice_a_condition_and_persons_their_square() -> None:
    price = GrantPrice(error=10)
    assert price.units(RED, of()) == 5 * 10**9
    assert price.units(TABLE, of()) == 10**10
    assert price.units(RED, of(7)) == 49 * price.units(RED, of())


def test_a_rho_is_taken_as_it_is_written() -> None:
    assert GrantPrice(rho=0.001).units(RED, of()) == GrantPrice(rho=0.001).units(TABLE, of(5)) == 10**9
    assert GrantPrice(rho=1e-15).units(RED, of()) == 1


@pytest.mark.parametrize("given", [{}, {"rho": 1.0, "error": 1.0}])
def test_either_of_the_two_is_given(given: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument, match="rho, in zCDP, or epsilon"):
        GrantPrice(**given)


@pytest.mark.parametrize("number", [0, -1, math.inf, math.nan, True, "0.1"])
@pytest.mark.parametrize("name", ["rho", "error", "epsilon", "relative"])
def test_numbers_that_mean_nothing_are_refused(name: str, number: Any) -> None:
    with pytest.raises(InvalidArgument, match=name):
        GrantPrice(**{name: number})


def test_a_statistic_has_no_price() -> None:
    with pytest.raises(InvalidArgument, match="is a statistic"):
        GrantPrice(error=1).units(CountDistinct(("size",)), of())


def test_an_epsilon_costs_what_its_pure_answer_would() -> None:
    assert GrantPrice(epsilon=0.1).units(RED, of()) == GrantPrice(rho=0.005).units(RED, of())


def test_a_relative_error_is_of_a_cell_with_its_even_share_of_the_records() -> None:
    half = attribute("colour") == "red"
    wanted: dict[Statement, int] = {
        TABLE: 500,
        half: 2000,
        Marginal(("size",), where=half): 500,
        half & (attribute("size") != "s"): 1500,
    }
    for statement, typical in wanted.items():
        units = GrantPrice(relative=0.05).units(statement, of(3))
        assert standard_error(statement, 3, units) * 1.96 == pytest.approx(0.05 * typical, rel=1e-4)


def test_weights_share_a_rho_in_proportion_and_never_more_than_all_of_it() -> None:
    assert shared_units(0.004, [2, 1, 1]) == [2 * 10**9, 10**9, 10**9]
    assert sum(shared_units(0.001, [1, 1, 1])) <= 10**9
    for rho, weights in ((0.001, []), (0.001, [1, 0]), (0.001, [math.nan]), (None, [1])):
        with pytest.raises(InvalidArgument):
            shared_units(rho, weights)
