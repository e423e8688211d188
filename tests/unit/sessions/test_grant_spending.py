"""What an open grant has spent: statements that wait count ahead, in their order, until they are forgotten."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from harness.small_custodian import SCHEMA

from equipoise.errors import BudgetExhausted
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal, Statement
from equipoise.wire.session_workload import wanted_of
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.sessions.grant_spending import GrantSpending
from equipoise_server.sessions.pending_statements import PendingStatement

TOTAL, MOST = 10**10, 6 * 10**9
TABLE, RED, SMALL = Marginal(("colour", "size")), attribute("colour") == "red", attribute("size") == "s"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def wanted(statement: Statement, rho: int = MOST) -> Wanted:
    """A statement that may cost so much by itself; together two of them exceed the total."""
    return wanted_of(statement_to_bytes(statement, rho), SCHEMA)


def waits(asked: Wanted) -> PendingStatement:
    """A statement that was accepted."""
    return PendingStatement("ann", 0, 1, b"", 1, NOW, asked)


def test_what_waits_is_paid_for_ahead_and_once() -> None:
    spending = GrantSpending(GrantAccount(TOTAL))
    table = waits(wanted(TABLE))
    spending.check([], wanted(TABLE))
    with pytest.raises(BudgetExhausted, match=r"has rho 0\.004 left, and 0\.00525 is asked"):
        spending.check([table], wanted(RED))  # the table's cells tell an eighth of it
    spending.pay([table])
    assert spending.account is not None
    assert (table.cost, spending.account.filter.spent) == (MOST, MOST)
    spending.check([], wanted(RED, MOST // 8))
    assert spending.account.filter.spent == MOST


def test_a_statement_that_was_forgotten_is_not_paid_for() -> None:
    """Its stream ended before it was taken; what it would have cost is left."""
    spending = GrantSpending(GrantAccount(TOTAL))
    spending.check([], wanted(RED))
    spending.check([], wanted(SMALL))
    with pytest.raises(BudgetExhausted):
        spending.check([waits(wanted(SMALL))], wanted(RED))


def test_what_only_a_forgotten_statement_would_have_told_is_paid_for() -> None:
    """The whole table would have told every size for nothing; else more is let in than can be paid."""
    account = GrantAccount(TOTAL)
    spending = GrantSpending(account)
    waiting: list[PendingStatement] = []
    spending.check([], wanted(TABLE, TOTAL))
    for size in ("s", "m", "l", "xl"):
        asked = wanted(attribute("size") == size, TOTAL // 4)
        spending.check(waiting, asked)
        waiting.append(waits(asked))
    with pytest.raises(BudgetExhausted, match="has rho 0 left"):
        spending.check(waiting, wanted(RED, TOTAL // 8))
    spending.pay(waiting)
    assert [each.cost for each in waiting] == [TOTAL // 4] * 4
    assert account.filter.left == 0


def test_a_session_that_is_no_grant_pays_nothing() -> None:
    spending = GrantSpending()
    spending.check([], None)
    statement = PendingStatement("ann", 0, 1, b"", 1, NOW)
    spending.pay([statement])
    assert statement.cost == 0
