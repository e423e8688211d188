"""The checks of a grant: what was paid is within it, and buys the noise that answers are said to have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.accounting import Cost, in_rho
from equipoise.errors import VerificationFailed
from equipoise.model.rounds import GRANT
from equipoise.queries.fixed_point import ONE
from equipoise.queries.grant_account import GrantAccount
from equipoise.queries.grant_price import standard_error
from equipoise.records.proven_round import ProvenRound
from equipoise.residuals.told_counts import StandingNoise
from equipoise.results import Results
from equipoise.verification.conversion import TOLERANCE, epsilon_of
from equipoise.wire.session_workload import offer_of, wanted_of
from equipoise.wire.statements import sent_from_bytes

ROUNDED = 2  # units of an answer, in which a standard error is rounded up
UNLIMITED = (1 << 63) - 1


def check_spending(statements: Iterable[bytes], proven: ProvenRound) -> str:
    """Checks that what statements cost together is within the grant's budget.

    Args:
        statements: the exact bytes of each, in the order in which they were answered.
        proven: the round on record.

    Returns:
        What was spent, for people; nothing where the round is no grant.

    Raises:
        VerificationFailed: they cost more, or one of them does not say what it may cost, or says so in a session
            that is no grant; or the measurement that answers are combined with is not one of the dataset.
    """
    of_grant, account = proven.round.mechanism == GRANT, GrantAccount(UNLIMITED)
    sizes, persons = proven.schema.sizes, proven.dataset.persons.records
    standing = StandingNoise.of(proven.round.standing, sizes, persons, "the measurement that the round names")
    for i, statement in enumerate(statements):
        offer = offer_of(statement, f"statements[{i}]")
        if (offer.rho > 0) is not of_grant:
            raise VerificationFailed(
                f"statements[{i}]: what it may cost is missing, or given where nothing is paid"
            )
        if of_grant:
            account.pay(wanted_of(statement, proven.schema, f"statements[{i}]", standing))
    if not of_grant:
        return ""
    budget = proven.round.data_budget
    reached = epsilon_of(Cost(rho=account.filter.spent), budget.delta, None) if account.filter.spent else 0.0
    if reached > budget.epsilon * (1 + TOLERANCE):
        raise VerificationFailed(
            f"the statements cost epsilon {reached:.6g} at delta {budget.delta:g}, and the grant was of "
            f"{budget.epsilon:g}"
        )
    return f"; rho {in_rho(account.filter.spent)} was paid"


def check_noise(statements: Sequence[bytes], queries: Sequence[int], results: Results, proven: ProvenRound) -> None:
    """Checks that the standard error of each answer of a grant is no larger than what it was wanted to be.

    Args:
        statements: the exact bytes of each, in the order in which they were answered.
        queries: how many cells each has.
        results: the released answers.
        proven: the round on record.

    Raises:
        VerificationFailed: an answer is said to have more noise, or of unknown size.
    """
    if proven.round.mechanism != GRANT:
        return
    first = 0
    for i, (data, count) in enumerate(zip(statements, queries, strict=True)):
        sent = sent_from_bytes(data)
        bought = (
            standard_error(sent.statement, proven.dataset.persons.records, sent.rho) / proven.round.records * ONE
        )
        told = results.answers[first : first + count].standard_errors
        first += count
        if not ((told > 0) & (told <= bought * (1 + TOLERANCE) + ROUNDED)).all():
            raise VerificationFailed(f"statements[{i}]: its answers are said to have more noise than was paid for")
