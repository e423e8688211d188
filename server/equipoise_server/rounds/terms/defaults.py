"""Fills in default terms and asks the mechanism for a plan. No I/O."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import MEASUREMENT, MechanismPlan, SessionTerms, Terms
from equipoise_server.mechanisms.interface import OnStep, unfollowed
from equipoise_server.mechanisms.planner import Comparison, without_choice
from equipoise_server.mechanisms.registry import PLANNERS, mechanism, session_mechanism
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.terms.checks import setting_of
from equipoise_server.rounds.terms.turns import check_turns


def with_defaults(terms: Terms, now: datetime) -> Terms:
    """Return a session's terms with its length, and with its closing time if the session answers by turns.

    A measurement, which waits for nobody, closes when it is opened.

    The closing time is a boundary between two turns from `now` on, so that the last statements have a whole turn to
    be answered.

    Raises:
        InvalidArgument: the terms have turns but the mechanism has none, or the other way round; the session would
            close before its first turn has ended or after its last one; or the terms have an analyst budget but the
            mechanism does not protect several analysts, or the other way round.
    """
    if terms.session is None:
        measures = terms.mechanism == MEASUREMENT and terms.close_time is None
        return replace(terms, close_time=now) if measures else terms
    slotted = session_mechanism(terms.mechanism).slotted
    length = terms.session.length or sum(share.statements for share in terms.shares)
    full = replace(terms, session=replace(terms.session, length=length))
    if not slotted:
        if terms.session.turn_seconds:
            raise InvalidArgument("session.turn_seconds", f"must be 0: {terms.mechanism} answers at once")
        if terms.analyst_budget is None or len(terms.shares) == 1:
            return full
        raise InvalidArgument(
            "analyst_budget", f"must not be set: {terms.mechanism} does not protect analysts from one another"
        )
    if not terms.session.turn_seconds:
        raise InvalidArgument("session.turn_seconds", f"must be at least 1: {terms.mechanism} answers by turns")
    if terms.analyst_budget is None:
        raise InvalidArgument("analyst_budget", f"must be set: {terms.mechanism} protects analysts")
    return replace(full, close_time=_last_boundary(full.session, terms.close_time, now))


def make_plan(terms: Terms, dataset: DatasetRecord) -> MechanismPlan:
    """Return the plan for the terms. Raises what `compare_plans` raises."""
    return compare_plans(terms, dataset).plan


def compare_plans(terms: Terms, dataset: DatasetRecord, report: OnStep = unfollowed) -> Comparison:
    """Return the plan for the terms, and what it was chosen from; of a mechanism that the terms name, nothing else.

    Args:
        terms: complete.
        dataset: which they are about.
        report: called with each mechanism's name before it is asked for its plan, where several are.

    Raises:
        InvalidArgument: the terms allow no plan, or the turns are too short for their statements.
        BudgetExhausted: no plan fits the budgets.
    """
    schema = dataset.schema
    setting = setting_of(terms, dataset.records, schema.universe_size, schema, dataset.persons.records)
    if terms.session is None and terms.mechanism in PLANNERS:
        return PLANNERS[terms.mechanism].compare(setting, report)
    named = mechanism if terms.session is None else session_mechanism
    comparison = without_choice(named(terms.mechanism), setting)
    if terms.session is not None and terms.session.turn_seconds:
        check_turns(terms.session, [share.statements for share in terms.shares], comparison.plan)
    return comparison


def _last_boundary(session: SessionTerms | None, wanted: datetime | None, now: datetime) -> datetime:
    assert session is not None
    turn = timedelta(seconds=session.turn_seconds)
    turns = session.length
    if wanted is not None:
        if wanted < now + turn:
            raise InvalidArgument("close_time", "is before the end of the session's first turn")
        turns = (wanted - now) // turn
        if turns > session.length:
            raise InvalidArgument("close_time", "is after the end of the session's last turn")
    try:
        return now + turns * turn
    except OverflowError:
        raise InvalidArgument("session.length", "makes the session end after the year 9999") from None
