"""What a grant would give is what statements of that price are charged and told in it."""

from __future__ import annotations

import itertools
import math

import pytest

from equipoise.queries.grant_account import Wanted
from equipoise.queries.grant_costs import account_after, grant_costs
from equipoise.queries.grant_outlook import CELLS, combined_error, outlooks
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.wire.session_workload import wanted_of
from equipoise.wire.statements import statement_to_bytes

NUMBERS = tuple(map(str, range(CELLS)))
SCHEMA = Schema((Attribute("number", NUMBERS), Attribute("other", NUMBERS)))
BETA = 0.05


@pytest.mark.parametrize("persons", [1, 3])
@pytest.mark.parametrize("share", [0, 1])
def test_the_last_of_the_statements_that_share_a_grant_gets_what_was_said(persons: int, share: int) -> None:
    said = outlooks(10**10, persons, BETA)[share]
    one_number = [attribute("number") == each for each in NUMBERS]

    def last(kind: Statement) -> tuple[float, float | None]:
        # Conditions do not tell of one another.
        asked = [wanted(each, said.rho) for each in one_number[1 : said.statements]]
        told = grant_costs(account_after(asked), 0, [wanted(kind, said.rho)], persons, BETA).statements[0]
        assert told.cost == said.rho
        return told.standard_error, told.half_width

    assert last(one_number[0]) == pytest.approx((said.condition_error, said.condition_half_width))
    assert last(Marginal(("other",))) == pytest.approx((said.marginal_error, said.marginal_half_width))


def wanted(statement: Statement, rho: int) -> Wanted:
    return wanted_of(statement_to_bytes(statement, rho), SCHEMA)


def test_ten_times_as_many_statements_err_by_the_root_of_ten_more() -> None:
    found = outlooks(10**10, 1, BETA)
    assert [each.statements for each in found] == [1, 10, 100, 1000]
    assert found[0].condition_error == pytest.approx(math.sqrt(50))
    assert found[0].marginal_error == pytest.approx(10.0)
    assert all(
        later.condition_error == pytest.approx(math.sqrt(10) * earlier.condition_error)
        for earlier, later in itertools.pairwise(found)
    )


def test_what_a_grant_is_not_enough_for_is_left_out() -> None:
    assert [each.statements for each in outlooks(50, 1, BETA)] == [1, 10]
    assert outlooks(0, 1, BETA) == ()


def test_a_measurement_and_what_is_paid_tell_more_than_either() -> None:
    assert combined_error(30.0, 40.0) == pytest.approx(24.0)
    assert combined_error(0.0, 40.0) == 0.0
