"""The checks of a grant: what was paid is within it, and buys the noise that answers are said to have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, Cost, in_rho
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
VARIANCE_BITS = 20  # variances of noise are rounded up to units of 2^-20


def check_spending(statements: Iterable[bytes], proven: ProvenRound) -> str:
    """Checks that what statements cost together is within the grant's budget, and all that was charged for it.

    Args:
        statements: the exact bytes of each, in the order in which they were answered.
        proven: the round on record.

    Returns:
        What was spent, for people; nothing where the round is no grant.

    Raises:
        VerificationFailed: they cost more, or one of them does not say what it may cost, or says so in a session
            that is no grant; or the measurement that answers are combined with is not one of the dataset; or the
            people in the table were charged another sum at the release.
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
    spent = account.filter.spent
    if proven.release is not None:
        _check_charged(proven.release.spent, spent if of_grant else None)
    if not of_grant:
        return ""
    budget = proven.round.data_budget
    reached = epsilon_of(Cost(rho=spent), budget.delta, None) if spent else 0.0
    if reached > budget.epsilon * (1 + TOLERANCE):
        raise VerificationFailed(
            f"the statements cost epsilon {reached:.6g} at delta {budget.delta:g}, and the grant was of "
            f"{budget.epsilon:g}"
        )
    return f"; rho {in_rho(spent)} was paid"


def _check_charged(charged: int | None, paid: int | None) -> None:
    """Checks what the release says that the table was charged; None where nothing is paid by statement."""
    if charged != paid:
        said, came = ("nothing" if each is None else f"rho {in_rho(each)}" for each in (charged, paid))
        raise VerificationFailed(f"the release charges {said} for the statements, which come to {came}")


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
    sent, persons, first = [sent_from_bytes(each) for each in statements], proven.dataset.persons.records, 0
    most = rounding_of((each.rho for each in sent), persons) * (1 + TOLERANCE)
    for i, (each, count) in enumerate(zip(sent, queries, strict=True)):
        bought = standard_error(each.statement, persons, each.rho) / proven.round.records * ONE
        told = results.answers[first : first + count].standard_errors
        first += count
        if not ((told > 0) & (told <= bought * most + ROUNDED)).all():
            raise VerificationFailed(f"statements[{i}]: its answers are said to have more noise than was paid for")


def rounding_of(rhos: Iterable[int], person_records: int) -> float:
    """Returns by what factor rounding can make standard errors of a grant larger than what was paid for buys.

    The variance of noise for a condition, of persons with one record, is rounded up to a whole number of units of
    2^-20. That is the more of it the smaller it is; no noise is paid more for than the dearest statement is wanted
    for. Every later answer may be combined with that noise.

    Args:
        rhos: what each statement is wanted for, in units of 10^-12 of rho.
        person_records: how many records each person has, M.
    """
    most = Fraction(2 * max(rhos, default=0), RHO_UNIT * person_records**2 << VARIANCE_BITS)
    return math.sqrt(1 + most)
