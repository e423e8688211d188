"""Grants: what analysts have asked for, a grant given or a request declined, and a grant ended."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from equipoise.clients.giving import Offer, Renewal
from equipoise.commands.dataset_columns import GRANT_REQUESTS
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, part_of
from equipoise.console.jobs import Job
from equipoise.console.operator.terms import (
    REFUSALS,
    Typed,
    form_page,
    read_accepted,
    read_budget,
    read_choice,
    read_time,
)
from equipoise.console.rendering import table_of
from equipoise.errors import EquipoiseError, NotFound
from equipoise.model.calendar import Period
from equipoise.model.own_world import GrantRequest, RequestState

BLANK: Mapping[str, str] = {
    "dataset": "",
    "analyst": "",
    "request": "",
    "data_epsilon": "1",
    "data_delta": "",
    "beta": "0.05",
    "until": "",
    "renew": "",
    "yearly_epsilon": "",
    "yearly_delta": "",
}
RENEWALS = (("", "not at all"), *((each.value, each.value) for each in Period))


def requests(desk: Desk, asked: Asked) -> Response:
    """Analysts' requests for grants: those that wait, or all."""
    every = asked.query.get("decided") == "yes"
    part = part_of(desk.operator.grant_requests(decided=every), asked, {"decided": "yes"} if every else {})
    return desk.show(
        "operator/requests.html",
        section="Requests",
        part=part,
        every=every,
        requests=table_of(
            GRANT_REQUESTS,
            part.items,
            [f"{desk.base}/requests/{each.analyst}/{each.number}" for each in part.items],
        ),
    )


def request(desk: Desk, asked: Asked) -> Response:
    """One request, which can be granted or declined while it waits."""
    return _request_page(desk, _find_request(desk, asked.path["analyst"], asked.path["number"]))


def decline(desk: Desk, asked: Asked) -> Response:
    """Declines a request, for good."""
    wanted = _find_request(desk, asked.path["analyst"], asked.path["number"])
    try:
        answer, request_id = asked.needed("answer"), asked.needed("request_id")
        desk.operator.decide_grant_request(wanted.analyst, wanted.number, answer=answer, request_id=request_id)
    except REFUSALS as refusal:
        return _request_page(desk, wanted, asked.text("answer"), refusal)
    return desk.go("/requests")


def blank(desk: Desk, asked: Asked) -> Response:
    """The empty form of a grant."""
    return _grant_page(desk, Typed.blank(BLANK, asked))


def give(desk: Desk, asked: Asked) -> Response:
    """Gives an analyst a part of a table's budget."""
    try:
        analyst, number = asked.needed("analyst"), asked.whole("request", 0)
        if number and (wanted := _find_request(desk, analyst, str(number))).state is RequestState.GRANTED:
            return desk.go(f"/rounds/{wanted.grant_id}")  # the form was sent twice
        offer = Offer(
            dataset=asked.needed("dataset"),
            analyst=analyst,
            budget=read_budget(asked, "data"),
            until=read_time(asked, "until"),
            beta=asked.number("beta", 0.05),
            accepted=read_accepted(asked),
            request=number or None,
            renewal=_renewal(asked),
        )
        given = offer.give(desk.operator, asked.needed("request_id"))
    except REFUSALS as refusal:
        return _grant_page(desk, Typed.of(BLANK, asked, refusal))
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


def _renewal(asked: Asked) -> Renewal | None:
    if not asked.text("renew"):
        return None
    return Renewal(read_choice(asked, "renew", Period), read_budget(asked, "yearly"))


def _find_request(desk: Desk, analyst: str, number: str) -> GrantRequest:
    for each in desk.operator.grant_requests(decided=True):
        if (each.analyst, str(each.number)) == (analyst, number):
            return each
    raise NotFound("there is no such request")


def _request_page(
    desk: Desk, wanted: GrantRequest, answer: str = "", refusal: EquipoiseError | None = None
) -> Response:
    return desk.show(
        "operator/request.html",
        200 if refusal is None else 400,
        section="Requests",
        wanted=wanted,
        facts=[(title, str(said)) for title, shown in GRANT_REQUESTS.items() if (said := shown(wanted))],
        waits=wanted.state is RequestState.WAITING,
        answer=answer,
        refusal=refusal,
    )


def _grant_page(desk: Desk, typed: Typed) -> Response:
    return form_page(desk, "operator/new_grant.html", "Sessions", typed, renewals=RENEWALS)
