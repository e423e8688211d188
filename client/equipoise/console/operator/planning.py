"""A new round: what every mechanism would do, cost and promise, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from equipoise.commands.planners import COLUMNS, explained, row_of
from equipoise.console.asked import Asked
from equipoise.console.charts import planner_chart
from equipoise.console.desk import Desk
from equipoise.console.operator.terms import REFUSALS, Typed, form_page, read_budget, read_terms
from equipoise.console.rendering import plain_table
from equipoise.model.plan_choices import PlanChoice
from equipoise.model.rounds import AUTO, AUTO_BY_PROMISE, Terms

MECHANISMS = (
    (AUTO, "auto: the smallest expected error"),
    (AUTO_BY_PROMISE, "auto: the smallest promise"),
    *(
        (name, name)
        for name in (
            "equilibrium",
            "gaussian",
            "histogram",
            "laplace",
            "multiplicative_weights",
            "pooled",
            "projection",
            "small_db",
            "standing",
        )
    ),
)
BLANK: Mapping[str, str] = {
    "dataset": "",
    "shares": "",
    "data_epsilon": "1",
    "data_delta": "",
    "analyst_epsilon": "1",
    "analyst_delta": "1e-6",
    "unit": "query",
    "beta": "0.05",
    "mechanism": AUTO,
    "options": "",
    "close": "",
}


def blank(desk: Desk, asked: Asked) -> Response:
    """The empty form."""
    return _page(desk, Typed.blank(BLANK, asked))


def plan(desk: Desk, asked: Asked) -> Response:
    """Compares the mechanisms, or opens the round that was planned."""
    try:
        terms = read_terms(asked, read_budget(asked, "analyst"))
        if asked.text("do") == "open":
            opened = desk.operator.open(terms, asked.needed("request_id"))
            return desk.go(f"/rounds/{opened.round.id}")
        return _page(desk, Typed.of(BLANK, asked), desk.operator.plan(terms), terms)
    except REFUSALS as refusal:
        return _page(desk, Typed.of(BLANK, asked, refusal))


def _page(desk: Desk, typed: Typed, planned: PlanChoice | None = None, terms: Terms | None = None) -> Response:
    chart = table = None
    notes: list[tuple[str, str]] = []
    if planned is not None and planned.candidates and terms is not None:
        queries = sum(share.queries for share in terms.shares)
        able = [each for each in planned.candidates if each.forecast is not None]
        rows = [row_of(each, queries) for each in able]
        chosen = [each.mechanism for each in able].index(planned.plan.mechanism)
        table = plain_table(COLUMNS, rows, marked=chosen)
        chart = planner_chart(planned.candidates, planned.plan.mechanism)
        notes = list(explained(planned.candidates))
    return form_page(
        desk,
        "operator/new_round.html",
        "Rounds",
        typed,
        mechanisms=MECHANISMS,
        planned=planned,
        chart=chart,
        table=table,
        notes=notes,
    )
