"""Prices are taken as they are written, to the last unit, and relative errors are of a statement's widest count."""

from __future__ import annotations

import math

import pytest

from equipoise.queries.grant_price import AskedTable, GrantPrice, standard_error
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
RED, SMALL = attribute("colour") == "red", attribute("size") == "s"
TABLE = AskedTable(SCHEMA, 4000)


@pytest.mark.parametrize("tenths", range(1, 30))
def test_a_price_in_tenths_is_no_unit_less_than_it_says(tenths: int) -> None:
    """The number that a machine holds for 0.3 is less than that."""
    assert GrantPrice(rho=tenths / 10).units(RED, TABLE) == tenths * 10**11
    assert GrantPrice(epsilon=tenths / 10).units(RED, TABLE) == tenths**2 * 5 * 10**9


def test_a_typical_cell_is_of_the_count_that_most_cells_make() -> None:
    """Of red ones all four sizes count and of green ones one, of eight cells of 500 records each."""
    statement = Marginal(("colour",), where=RED | SMALL)
    units = GrantPrice(relative=0.05).units(statement, TABLE)
    expected = 0.05 * 4 * 500 / 1.959964
    assert standard_error(statement, 1, units) <= expected < standard_error(statement, 1, units - 1)
    assert math.isclose(standard_error(statement, 1, units), expected, rel_tol=1e-6)
