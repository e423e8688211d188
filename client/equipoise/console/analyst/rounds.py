"""What there is: the caller's rounds and sessions, and what may be asked in each."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from equipoise.accounting import in_rho
from equipoise.commands.columns import FACTS
from equipoise.commands.round_lists import OWN_GRANTS, OWN_ROUNDS, OWN_SESSIONS
from equipoise.console.asked import Asked
from equipoise.console.attributes import ATTRIBUTES
from equipoise.console.desk import Desk, stretch_of
from equipoise.console.jobs import Job
from equipoise.console.rendering import table_of
from equipoise.errors import WrongState
from equipoise.model.rounds import Round, RoundState
from equipoise.profile.kept_sql import kept_sql
from equipoise.profile.profile import read_file
from equipoise.profile.receipt_store import ReceiptStore, read_receipt
from equipoise.queries.schema import Attribute
from equipoise.queries.universe_size import size_in_words


def home(desk: Desk, asked: Asked) -> Response:
    """All of the caller's rounds, sessions and grants."""
    client = desk.analyst
    part, asking = stretch_of(client.rounds, asked), stretch_of(client.sessions, asked, "sessions")
    online = [each for each in asking.items if each.grant is None]
    granted = [(each, each.grant) for each in asking.items if each.grant is not None]
    return desk.show(
        "analyst/home.html",
        section="My rounds",
        part=part,
        asking=asking,
        rounds=table_of(OWN_ROUNDS, part.items, [_address(desk, each) for each in part.items]),
        sessions=table_of(OWN_SESSIONS, online, [_address(desk, each) for each in online]),
        grants=table_of(OWN_GRANTS, granted, [_address(desk, each) for each, _ in granted]),
    )


def show(desk: Desk, asked: Asked) -> Response:
    """One round or session: its terms, what may be asked, and what comes next."""
    shown = desk.analyst.round(asked.path["round_id"])
    return round_page(desk, shown, {})


def round_page(desk: Desk, shown: Round, more: Mapping[str, object], status: int = 200) -> Response:
    """Returns the page of a round.

    Args:
        desk: the user's.
        shown: the round.
        more: what came of what was asked: `sql` and `statements`, as they were typed; `checked`, what they would
            come to; `refusal`, why they were refused.
        status: of HTTP.
    """
    own = shown.terms.shares[0]
    registered = desk.analyst.dataset(shown.terms.dataset, shown.dataset_version)
    facts = [(title, fact(shown, own)) for title, fact in FACTS.items()]
    kept = ReceiptStore(desk.profile).receipt(shown.id)
    values: dict[str, object] = {
        "sql": own_sql(desk, shown.id),
        "statements": "",
        "checked": None,
        "error": "",
        "rho": "",
    }
    return desk.show(
        "analyst/round.html",
        status,
        section="My rounds",
        shown=shown,
        own=own,
        kind=kind_of(shown),
        is_open=shown.state is RoundState.OPEN,
        is_released=shown.state is RoundState.RELEASED,
        facts=[(title, str(value)) for title, value in facts if value is not None],
        grant=None if shown.grant is None else [in_rho(each) for each in (shown.grant.total, shown.grant.left)],
        receipt=None if kept is None else read_receipt(kept),
        schema=registered.schema,
        records=registered.records,
        example=_example(registered.schema.attributes, shown.terms.dataset),
        **{**values, **more},
    )


def table(desk: Desk, asked: Asked) -> Response:
    """The schema of the table that a round is about."""
    client = desk.analyst
    shown = client.round(asked.path["round_id"])
    registered = client.dataset(shown.terms.dataset, shown.dataset_version)
    return desk.show(
        "analyst/table.html",
        section="My rounds",
        shown=shown,
        registered=registered,
        size=size_in_words(registered.schema.universe_size),
        attributes=table_of(ATTRIBUTES, registered.schema.attributes),
    )


def wait(desk: Desk, asked: Asked) -> Response:
    """Waits for the end of a round, on a page of its own."""
    round_id = asked.path["round_id"]
    client = desk.analyst
    client.round(round_id)

    def work(job: Job) -> None:
        ended = client.wait(round_id, lambda each: job.tell(f"the round is {each.state}"))
        if ended.state is not RoundState.RELEASED:
            raise WrongState(f"the round was aborted: {ended.abort_reason}")
        job.verdict = "The results can be read."

    job = Job("Wait for the results", f"/rounds/{round_id}/results", "Read the results")
    return desk.start(job, work)


def own_sql(desk: Desk, round_id: str) -> str:
    """Returns the SQL that the profile keeps with the newest receipt of a round; empty where it keeps none.

    Args:
        desk: the user's.
        round_id: the round.
    """
    path = kept_sql(desk.profile, round_id)
    return "" if path is None else read_file(path).decode("utf-8", "replace")


def kind_of(shown: Round) -> str:
    """Returns what people call it: a round, a session or a grant."""
    if shown.grant is not None:
        return "grant"
    return "round" if shown.terms.session is None else "session"


def _address(desk: Desk, shown: Round) -> str:
    return f"{desk.base}/rounds/{shown.id}"


def _example(attributes: tuple[Attribute, ...], dataset: str) -> str:
    """A question that can be asked of this table, to begin with."""
    name = attributes[0].name
    quoted = name if name.isascii() and name.isidentifier() else '"' + name.replace('"', '""') + '"'
    table = dataset if dataset.isascii() and dataset.isidentifier() else '"' + dataset.replace('"', '""') + '"'
    return f"SELECT {quoted}, COUNT(*) FROM {table} GROUP BY {quoted}"
