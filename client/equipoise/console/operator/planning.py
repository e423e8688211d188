"""A new round: what every mechanism would do, cost and promise, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from starlette.responses import Response

from equipoise.commands.planners import COLUMNS, explained, row_of
from equipoise.commands.terms_options import parse_options, parse_shares
from equipoise.console.asked import Asked
from equipoise.console.charts import planner_chart
from equipoise.console.desk import Desk
from equipoise.console.rendering import plain_table
from equipoise.errors import BudgetExhausted, InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget, Danger
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
DANGERS = (
    (Danger.EPSILON, "an epsilon above 10"),
    (Danger.DELTA, "a delta of 1 in as many as are protected, or more"),
    (Danger.NOISE, "answers that err by less than one person's records"),
    (Danger.PROMISE, "no interval that is narrower than everything"),
)
BLANK: Mapping[str, str] = {
    "dataset": "",
    "shares": "",
    "data_epsilon": "1",
    "data_delta": "1e-6",
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
    return _page(desk, {**BLANK, "dataset": asked.query.get("dataset", "")})


def plan(desk: Desk, asked: Asked) -> Response:
    """Compares the mechanisms, or opens the round that was planned."""
    typed = {name: asked.text(name).strip() for name in BLANK}
    try:
        terms = _terms(asked)
        if asked.text("do") == "open":
            opened = desk.operator.open(terms, asked.needed("request_id"))
            return desk.go(f"/rounds/{opened.round.id}")
        planned = desk.operator.plan(terms)
        return _page(desk, typed, planned=planned, terms=terms, accepted=asked.texts("accept"))
    except (InvalidArgument, BudgetExhausted, WrongState, NotFound) as refusal:
        return _page(desk, typed, 400, refusal=refusal, accepted=asked.texts("accept"))


def _terms(asked: Asked) -> Terms:
    close = asked.text("close").strip()
    return Terms(
        dataset=asked.needed("dataset"),
        shares=parse_shares(asked.text("shares").split()),
        data_budget=Budget(asked.number("data_epsilon"), asked.number("data_delta")),
        analyst_budget=Budget(asked.number("analyst_epsilon"), asked.number("analyst_delta")),
        unit=asked.needed("unit"),
        beta=asked.number("beta"),
        mechanism=asked.needed("mechanism"),
        options=parse_options(asked.text("options").strip()),
        close_time=_time(close) if close else None,
        accepted=read_accepted(asked),
    )


def read_accepted(asked: Asked) -> tuple[Danger, ...]:
    """Returns the dangers that the operator has said to know and want. Raises `InvalidArgument`.

    Args:
        asked: the form, with the field `accept`.
    """
    try:
        return tuple(Danger(each) for each in asked.texts("accept"))
    except ValueError:
        raise InvalidArgument("accept", f"must be of {', '.join(Danger)}") from None


def _time(text: str) -> datetime:
    """A time in UTC, as browsers write it."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        raise InvalidArgument("close", f"must be a time such as 2030-01-31T18:00, not {text!r}") from None


def _page(
    desk: Desk,
    typed: Mapping[str, str],
    status: int = 200,
    planned: PlanChoice | None = None,
    terms: Terms | None = None,
    refusal: Exception | None = None,
    accepted: Sequence[str] = (),
) -> Response:
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
    return desk.show(
        "operator/new_round.html",
        status,
        section="Rounds",
        typed=typed,
        datasets=[each.dataset.name for each in desk.operator.datasets() if each.state.value == "active"],
        mechanisms=MECHANISMS,
        dangers=DANGERS,
        accepted=accepted,
        planned=planned,
        chart=chart,
        table=table,
        notes=notes,
        refusal=refusal,
    )
