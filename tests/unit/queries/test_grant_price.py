"""What a wanted standard error costs, and what a price buys."""

from __future__ import annotations

import math

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.grant_price import GrantPrice, paid, standard_error
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import CountDistinct, Marginal

RED, TABLE = attribute("colour") == "red", Marginal(("colour", "size"))


@pytest.mark.parametrize("persons", [1, 3])
@pytest.mark.parametrize("error", [0.5, 40, 1234.5])
def test_what_is_paid_is_the_least_that_buys_the_wanted_error(error: float, persons: int) -> None:
    for statement in (RED, TABLE):
        units = GrantPrice(error=error).units(statement, persons)
        assert standard_error(statement, persons, units) <= error
        assert units == 1 or standard_error(statement, persons, units - 1) > error
        assert paid(GrantPrice(error=error), persons, statement) == units


def test_a_table_costs_twice_a_condition_and_persons_their_square() -> None:
    price = GrantPrice(error=10)
    assert price.units(RED, 1) == 5 * 10**9
    assert price.units(TABLE, 1) == 10**10
    assert price.units(RED, 7) == 49 * price.units(RED, 1)


def test_a_rho_is_taken_as_it_is_written() -> None:
    assert GrantPrice(rho=0.001).units(RED, 1) == GrantPrice(rho=0.001).units(TABLE, 5) == 10**9
    assert GrantPrice(rho=1e-15).units(RED, 1) == 1


@pytest.mark.parametrize("given", [{}, {"rho": 1.0, "error": 1.0}])
def test_either_of_the_two_is_given(given: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument, match="either rho, in zCDP, or error"):
        GrantPrice(**given)


@pytest.mark.parametrize("number", [0, -1, math.inf, math.nan])
@pytest.mark.parametrize("name", ["rho", "error"])
def test_numbers_that_mean_nothing_are_refused(name: str, number: float) -> None:
    with pytest.raises(InvalidArgument, match=name):
        GrantPrice(**{name: number})


def test_a_statistic_has_no_price() -> None:
    with pytest.raises(InvalidArgument, match="is a statistic"):
        GrantPrice(error=1).units(CountDistinct(("size",)), 1)
