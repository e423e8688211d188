"""A dry run of a grant says what the grant's own account charges, and which order is cheaper."""

from __future__ import annotations

import pytest

from equipoise.queries.grant_account import Wanted
from equipoise.queries.grant_costs import account_after, grant_costs
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.wire.session_workload import wanted_of
from equipoise.wire.statements import statement_to_bytes

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
RED, SIZES, TABLE = attribute("colour") == "red", Marginal(("size",)), Marginal(("colour", "size"))
SMALL, BETA = 10**9, 0.05


def wanted(statement: Statement, rho: int = SMALL) -> Wanted:
    return wanted_of(statement_to_bytes(statement, rho), SCHEMA)


@pytest.mark.parametrize("before", [[], [RED], [TABLE, RED], [SIZES, SIZES]])
def test_a_dry_run_says_what_is_charged_and_changes_nothing(before: list[Statement]) -> None:
    account = account_after([wanted(each) for each in before])
    asked = [wanted(each, rho) for each, rho in ((TABLE, 2 * SMALL), (RED, SMALL), (SIZES, 3 * SMALL), (RED, 1))]
    found = grant_costs(account, 7 * SMALL, asked, 1, BETA)
    assert account.asked == len(before)
    assert [each.cost for each in found.statements] == [account.copy().pay(each) for each in asked[:1]] + [
        each.cost for each in found.statements[1:]
    ]
    charged = [account.pay(each) for each in asked]
    assert [each.cost for each in found.statements] == charged
    assert (found.at_most, found.left) == (sum(charged), 7 * SMALL)
    errors = [each.standard_error for each in found.statements]
    bought = [(10**12 * each.meaning.moved / (2 * each.rho)) ** 0.5 for each in asked]
    assert all(error <= most * (1 + 1e-9) for error, most in zip(errors, bought, strict=True))
    reaches = [each.half_width for each in found.statements]
    assert [each is None for each in reaches] == [each.meaning.key not in account.noises for each in asked]
    assert all(reach > error for reach, error in zip(reaches, errors, strict=True) if reach is not None)
    again = grant_costs(account, 7 * SMALL, asked, 1, BETA)
    assert (again.at_most, again.cheapest) == (0, 0)


def test_the_cheapest_order_is_found_and_costs_what_it_says() -> None:
    asked = [wanted(SIZES), wanted(RED), wanted(TABLE, 8 * SMALL)]
    found = grant_costs(account_after([]), 0, asked, 1, BETA)
    account = account_after([])
    assert sum(account.pay(asked[place]) for place in found.cheapest_order) == found.cheapest
    assert found.cheapest_order[0] == 2
    assert found.cheapest < found.at_most
