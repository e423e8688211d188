"""An analyst's checks of its grant: what was paid is within it, is what was charged, and buys the noise told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import some_answers
from harness.small_custodian import STATEMENTS, TIME, Told
from harness.verifying import log_of

from equipoise.accounting import Cost
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import GRANT
from equipoise.queries.fixed_point import ONE
from equipoise.queries.grant_price import standard_error
from equipoise.queries.statements import Statement
from equipoise.records.items import ReleaseItem
from equipoise.records.proven_round import ProvenRound, proven_round
from equipoise.results import Results
from equipoise.verification.conversion import epsilon_of
from equipoise.verification.grant_checks import check_noise, check_spending
from equipoise.wire.statements import statement_to_bytes

EACH = 10**9
CONDITIONS = STATEMENTS[1:]
SENT = [statement_to_bytes(each, EACH) for each in CONDITIONS]
DELTA = 1e-6
BUDGET = Budget(1.0, DELTA)


def grant(spent: int | None, budget: Budget = BUDGET, mechanism: str = GRANT) -> ProvenRound:
    """A released grant whose release says that so much was spent, in units of 10^-12 of rho."""
    proven = proven_round(Told().bundle(log_of()).evidence)
    shown = replace(proven.round, mechanism=mechanism, data_budget=budget, standing=None)
    return replace(proven, round=shown, release=ReleaseItem("aa", bytes(32), TIME, None, None, spent))


@pytest.mark.parametrize("spent", [2 * EACH - 1, 2 * EACH + 1, 0, None])
def test_a_release_charges_what_the_statements_come_to_to_the_unit(spent: int | None) -> None:
    assert check_spending(SENT, grant(2 * EACH)) == "; rho 0.002 was paid"
    with pytest.raises(VerificationFailed, match=r"for the statements, which come to rho 0\.002"):
        check_spending(SENT, grant(spent))


def test_a_grant_of_which_nothing_was_asked_is_charged_nothing() -> None:
    assert check_spending([], grant(0)) == "; rho 0 was paid"
    with pytest.raises(VerificationFailed, match="which come to rho 0"):
        check_spending([], grant(1))


def test_a_session_that_is_no_grant_says_nothing_of_spending() -> None:
    asked = [statement_to_bytes(each) for each in CONDITIONS]
    assert check_spending(asked, grant(None, mechanism="online")) == ""
    with pytest.raises(VerificationFailed, match="which come to nothing"):
        check_spending(asked, grant(0, mechanism="online"))


def test_an_aborted_grant_is_charged_whole_and_its_release_says_nothing() -> None:
    assert check_spending(SENT, replace(grant(1), release=None)) == "; rho 0.002 was paid"


@pytest.mark.parametrize(("part", "holds"), [(1.0, True), (0.999, False)])
def test_statements_cost_no_more_than_their_grant_by_a_thousandth(part: float, holds: bool) -> None:
    """The grant is of a thousandth less than its statements cost."""
    reached = epsilon_of(Cost(rho=2 * EACH), DELTA, None)
    proven = grant(2 * EACH, Budget(part * reached, DELTA))
    if holds:
        check_spending(SENT, proven)
    else:
        with pytest.raises(VerificationFailed, match="and the grant was of"):
            check_spending(SENT, proven)


def told(statement: Statement, times: float) -> Results:
    """An answer whose standard error is so many times what was paid for."""
    proven = grant(EACH)
    bought = standard_error(statement, proven.dataset.persons.records, EACH) / proven.round.records * ONE
    answers = some_answers(np.array([ONE // 2]), AnswerMethod.GAUSSIAN, ONE // 4)
    return Results("aa", replace(answers, standard_errors=np.array([int(times * bought)])))


@pytest.mark.parametrize(
    ("times", "holds"), [(0.5, True), (1.0, True), (1.001, False), (1.04, False), (0.0, False)]
)
def test_no_answer_is_told_with_a_thousandth_more_noise_than_was_paid_for(times: float, holds: bool) -> None:
    sent: Sequence[bytes] = SENT[:1]
    if holds:
        check_noise(sent, [1], told(CONDITIONS[0], times), grant(EACH))
    else:
        with pytest.raises(VerificationFailed, match="more noise than was paid for"):
            check_noise(sent, [1], told(CONDITIONS[0], times), grant(EACH))
