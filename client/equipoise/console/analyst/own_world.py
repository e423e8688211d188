"""The caller's own world: what it may ask about, what its grants have cost, and its requests for more."""

from __future__ import annotations

from starlette.responses import Response

from equipoise.commands.dataset_columns import MEASURED, OWN_DATASETS, OWN_REQUESTS, SPENT
from equipoise.commands.round_lists import OWN_GRANTS
from equipoise.console.asked import Asked
from equipoise.console.attributes import ATTRIBUTES
from equipoise.console.charts import grant_bar
from equipoise.console.desk import Desk, part_of
from equipoise.console.rendering import table_of
from equipoise.errors import InvalidArgument, NotFound, WrongState
from equipoise.queries.universe_size import size_in_words

BLANK = {"dataset": "", "reason": "", "epsilon": ""}


def datasets(desk: Desk, _: Asked) -> Response:
    """The datasets of the caller's rounds, sessions and grants."""
    found = list(desk.analyst.datasets())
    links = [f"{desk.base}/datasets/{each.dataset.name}" for each in found]
    return desk.show("analyst/datasets.html", section="Datasets", datasets=table_of(OWN_DATASETS, found, links))


def dataset(desk: Desk, asked: Asked) -> Response:
    """One of them: where it can be asked about now, what it holds, and what is measured of it."""
    name = asked.path["name"]
    own = next((each for each in desk.analyst.datasets() if each.dataset.name == name), None)
    if own is None:
        raise NotFound("none of your rounds, sessions and grants is about such a dataset")
    return desk.show(
        "analyst/dataset.html",
        section="Datasets",
        registered=own.dataset,
        open_now=[
            (kind, each)
            for kind, ids in (
                ("round", own.open_rounds),
                ("session", own.open_sessions),
                ("grant", own.open_grants),
            )
            for each in ids
        ],
        size=size_in_words(own.dataset.schema.universe_size),
        attributes=table_of(ATTRIBUTES, own.dataset.schema.attributes),
        measured=table_of(MEASURED, own.measured),
    )


def grants(desk: Desk, asked: Asked) -> Response:
    """The open grants with what is left of them, and the requests for more."""
    return _grants_page(desk, asked, {**BLANK, "dataset": asked.query.get("dataset", "")})


def request(desk: Desk, asked: Asked) -> Response:
    """Asks the operators for a grant."""
    typed = {name: asked.text(name).strip() for name in BLANK}
    try:
        desk.analyst.request_grant(
            asked.needed("dataset"),
            asked.needed("reason"),
            epsilon=asked.number("epsilon", 0.0),
            request_id=asked.needed("request_id"),
        )
    except (InvalidArgument, WrongState) as refusal:
        return _grants_page(desk, asked, typed, refusal)
    return desk.go("/grants")


def spending(desk: Desk, asked: Asked) -> Response:
    """The cost of each of the caller's statements in one grant, which may have ended."""
    client = desk.analyst
    shown = client.round(asked.path["round_id"])
    if shown.grant is None:
        raise NotFound("there is no such grant")
    part = part_of(client.spending(shown.id), asked)
    return desk.show(
        "analyst/spending.html",
        section="Grants",
        shown=shown,
        bar=grant_bar(shown.terms.dataset, shown.grant),
        part=part,
        spent=table_of(SPENT, part.items),
    )


def _grants_page(desk: Desk, asked: Asked, typed: dict[str, str], refusal: Exception | None = None) -> Response:
    client = desk.analyst
    given = [(each, each.grant) for each in client.grants() if each.grant is not None]
    part = part_of(client.grant_requests(), asked)
    return desk.show(
        "analyst/grants.html",
        200 if refusal is None else 400,
        section="Grants",
        grants=table_of(OWN_GRANTS, given, [f"{desk.base}/rounds/{each.id}" for each, _ in given]),
        bars=[grant_bar(each.terms.dataset, grant) for each, grant in given],
        part=part,
        requests=table_of(OWN_REQUESTS, part.items),
        typed=typed,
        refusal=refusal,
    )
