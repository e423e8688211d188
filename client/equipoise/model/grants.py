"""The terms of a grant: a session of one analyst, who pays for each statement out of a part of a budget."""

from __future__ import annotations

from datetime import datetime

from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import GRANT, STANDING_OPTION, SessionTerms, Share, Terms

# A grant costs the other analysts nothing. Terms must name a budget for them; this one holds nothing but that.
ANALYSTS = Budget(1e-9, 1e-9)
# The filter limits what is asked. These limits only bound what a store has to hold.
MAX_STATEMENTS = 1 << 20
MAX_QUERIES = 1 << 30


def grant_terms(
    dataset: str,
    analyst: str,
    budget: Budget,
    until: datetime | None,
    beta: float,
    accepted: tuple[Danger, ...] = (),
    measurement: str | None = None,
) -> Terms:
    """Return the terms of a grant.

    Args:
        dataset: the dataset's name.
        analyst: the analyst's name.
        budget: what all statements may cost the people in the table together.
        until: when the server closes it by itself, aware; None: an operator does.
        beta: the probability that any truth lies outside its interval.
        accepted: the dangers of the budget that the operator knows and wants.
        measurement: the round of the measurement that answers are combined with; None: of the newest one.
    """
    return Terms(
        dataset=dataset,
        shares=(Share(analyst, MAX_STATEMENTS, MAX_QUERIES),),
        data_budget=budget,
        analyst_budget=ANALYSTS,
        beta=beta,
        mechanism=GRANT,
        options={} if measurement is None else {STANDING_OPTION: measurement},
        close_time=until,
        session=SessionTerms(),
        accepted=accepted,
    )
