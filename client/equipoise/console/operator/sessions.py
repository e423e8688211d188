"""Sessions: what there is, beside grants, and a new one planned and opened."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from equipoise.commands.columns import plan_facts
from equipoise.commands.round_lists import GRANTS, SESSIONS
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, stretch_of
from equipoise.console.operator.rounds import addresses
from equipoise.console.operator.terms import REFUSALS, Typed, form_page, read_budget, read_choice, read_terms
from equipoise.console.rendering import table_of
from equipoise.model.plan_choices import PlanChoice
from equipoise.model.rounds import GRANT, Ending, SessionTerms, Terms
from equipoise.queries.strict_json import parse_json

LOOKED_THROUGH = 100  # rounds, for those that are sessions
MECHANISMS = (
    ("online_private", "online_private: analysts protected, in turns"),
    ("online", "online: at once, analysts not protected"),
    ("low_sensitivity", "low_sensitivity: medians, too, in turns"),
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
    "data_delta": "",
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
    return _page(desk, Typed.blank(BLANK, asked))


def plan(desk: Desk, asked: Asked) -> Response:
    """Plans a session, or opens the one that was planned."""
    try:
        terms = _session_terms(asked)
        if asked.text("do") == "open":
            opened = desk.operator.open_session(terms, asked.needed("request_id"))
            return desk.go(f"/rounds/{opened.round.id}")
        return _page(desk, Typed.of(BLANK, asked), desk.operator.plan(terms), terms)
    except REFUSALS as refusal:
        return _page(desk, Typed.of(BLANK, asked, refusal))


def _session_terms(asked: Asked) -> Terms:
    ending = read_choice(asked, "ending", Ending)
    session = SessionTerms(asked.whole("length", 0), asked.whole("turn_seconds", 0), ending)
    protected = bool(asked.text("analyst_epsilon").strip())
    candidates = asked.text("candidates").strip()
    options = {"candidates": parse_json(candidates, "candidates")} if candidates else {}
    return read_terms(asked, read_budget(asked, "analyst") if protected else None, options, session)


def _page(desk: Desk, typed: Typed, planned: PlanChoice | None = None, terms: Terms | None = None) -> Response:
    facts: list[tuple[str, str]] = []
    if planned is not None and terms is not None:
        records = desk.operator.dataset_history(terms.dataset).standing.dataset.records
        facts = [(title, str(value)) for title, value in plan_facts(planned.plan, terms, records)]
    return form_page(
        desk,
        "operator/new_session.html",
        "Sessions",
        typed,
        mechanisms=MECHANISMS,
        endings=ENDINGS,
        planned=planned,
        facts=facts,
    )
