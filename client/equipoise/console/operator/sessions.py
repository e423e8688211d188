"""Sessions and grants: what there is, a new session planned and opened, a grant given and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from equipoise.commands.columns import GRANTS, SESSIONS, plan_facts
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, stretch_of
from equipoise.console.jobs import Job
from equipoise.console.operator.rounds import addresses
from equipoise.console.operator.terms import (
    DANGERS,
    active_datasets,
    read_accepted,
    read_budget,
    read_terms,
    read_time,
)
from equipoise.console.rendering import table_of
from equipoise.errors import BudgetExhausted, InvalidArgument, NotFound, WrongState
from equipoise.model.plan_choices import PlanChoice
from equipoise.model.rounds import GRANT, Ending, SessionTerms, Terms
from equipoise.queries.strict_json import parse_json

LOOKED_THROUGH = 100  # rounds, for those that are sessions
MECHANISMS = (
    ("online_private", "online_private: analysts are protected from one another; answers come each turn"),
    ("online", "online: answers come at once; analysts are not protected from one another"),
    ("low_sensitivity", "low_sensitivity: medians, variances and the like, too; answers come each turn"),
)
ENDINGS = (
    (Ending.HYPOTHESIS, "answered without an interval"),
    (Ending.STOP, "refused"),
)
BLANK: Mapping[str, str] = {
    "dataset": "",
    "shares": "",
    "mechanism": "online_private",
    "unit": "query",
    "data_epsilon": "1",
    "data_delta": "1e-6",
    "analyst_epsilon": "",
    "analyst_delta": "1e-6",
    "length": "",
    "turn_seconds": "",
    "ending": Ending.HYPOTHESIS.value,
    "beta": "0.05",
    "options": "",
    "candidates": "",
    "close": "",
}
BLANK_GRANT: Mapping[str, str] = {
    "dataset": "",
    "analyst": "",
    "data_epsilon": "1",
    "data_delta": "1e-6",
    "beta": "0.05",
    "until": "",
}
REFUSALS = (InvalidArgument, BudgetExhausted, WrongState, NotFound)


def home(desk: Desk, asked: Asked) -> Response:
    """Sessions and grants among the newest rounds, and then among older ones."""
    part = stretch_of(desk.operator.rounds, asked, rows=LOOKED_THROUGH)
    online = [each for each in part.items if each.round.terms.session is not None and each.round.mechanism != GRANT]
    granted = [each for each in part.items if each.round.mechanism == GRANT]
    return desk.show(
        "operator/sessions.html",
        section="Sessions",
        sessions=table_of(SESSIONS, online, addresses(desk, online)),
        grants=table_of(GRANTS, granted, addresses(desk, granted)),
        part=part,
    )


def blank(desk: Desk, asked: Asked) -> Response:
    """The empty form of a session."""
    return _session_page(desk, {**BLANK, "dataset": asked.query.get("dataset", "")})


def plan(desk: Desk, asked: Asked) -> Response:
    """Plans a session, or opens the one that was planned."""
    typed = {name: asked.text(name).strip() for name in BLANK}
    accepted = asked.texts("accept")
    try:
        terms = _session_terms(asked)
        if asked.text("do") == "open":
            opened = desk.operator.open_session(terms, asked.needed("request_id"))
            return desk.go(f"/rounds/{opened.round.id}")
        planned = desk.operator.plan(terms)
        return _session_page(desk, typed, planned=planned, terms=terms, accepted=accepted)
    except REFUSALS as refusal:
        return _session_page(desk, typed, 400, refusal=refusal, accepted=accepted)


def blank_grant(desk: Desk, asked: Asked) -> Response:
    """The empty form of a grant."""
    return _grant_page(desk, {**BLANK_GRANT, "dataset": asked.query.get("dataset", "")})


def give(desk: Desk, asked: Asked) -> Response:
    """Gives an analyst a part of a table's budget."""
    typed = {name: asked.text(name).strip() for name in BLANK_GRANT}
    try:
        given = desk.operator.give_grant(
            asked.needed("dataset"),
            asked.needed("analyst"),
            read_budget(asked, "data"),
            until=read_time(asked, "until"),
            beta=asked.number("beta", 0.05),
            accepted=read_accepted(asked),
            request_id=asked.needed("request_id"),
        )
    except REFUSALS as refusal:
        return _grant_page(desk, typed, 400, refusal, asked.texts("accept"))
    return desk.go(f"/rounds/{given.round.id}")


def end(desk: Desk, asked: Asked) -> Response:
    """Ends a grant: its answers are computed once more and released, and only what was spent counts."""
    grant_id = asked.path["round_id"]
    desk.operator.round(grant_id)

    def work(job: Job) -> None:
        job.tell("the grant is closed, and its answers are computed once more")
        desk.operator.end_grant(grant_id)
        job.verdict = "The grant has ended. What it did not spend is counted no more."

    return desk.start(Job("End the grant", f"/rounds/{grant_id}", "Back to the grant"), work)


def _session_terms(asked: Asked) -> Terms:
    try:
        ending = Ending(asked.text("ending"))
    except ValueError:
        raise InvalidArgument("ending", f"must be of {', '.join(Ending)}") from None
    session = SessionTerms(asked.whole("length", 0), asked.whole("turn_seconds", 0), ending)
    protected = bool(asked.text("analyst_epsilon").strip())
    candidates = asked.text("candidates").strip()
    options = {"candidates": parse_json(candidates, "candidates")} if candidates else {}
    return read_terms(asked, read_budget(asked, "analyst") if protected else None, options, session)


def _session_page(
    desk: Desk,
    typed: Mapping[str, str],
    status: int = 200,
    planned: PlanChoice | None = None,
    terms: Terms | None = None,
    refusal: Exception | None = None,
    accepted: Sequence[str] = (),
) -> Response:
    facts: list[tuple[str, str]] = []
    if planned is not None and terms is not None:
        records = desk.operator.dataset_history(terms.dataset).standing.dataset.records
        facts = [(title, str(value)) for title, value in plan_facts(planned.plan, terms, records)]
    return desk.show(
        "operator/new_session.html",
        status,
        section="Sessions",
        typed=typed,
        datasets=active_datasets(desk),
        mechanisms=MECHANISMS,
        endings=ENDINGS,
        dangers=DANGERS,
        accepted=accepted,
        planned=planned,
        facts=facts,
        refusal=refusal,
    )


def _grant_page(
    desk: Desk,
    typed: Mapping[str, str],
    status: int = 200,
    refusal: Exception | None = None,
    accepted: Sequence[str] = (),
) -> Response:
    return desk.show(
        "operator/new_grant.html",
        status,
        section="Sessions",
        typed=typed,
        datasets=active_datasets(desk),
        dangers=DANGERS,
        accepted=accepted,
        refusal=refusal,
    )
