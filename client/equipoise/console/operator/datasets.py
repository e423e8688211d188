"""Tables: what they hold, whose people, both budgets and what each round took of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from starlette.responses import Response

from equipoise.commands.columns import shown_time
from equipoise.commands.dataset_columns import ACCOUNTS, CHARGES, DATASETS, VERSIONS
from equipoise.console.asked import Asked
from equipoise.console.attributes import ATTRIBUTES
from equipoise.console.charts import budget_bar
from equipoise.console.desk import Desk, scratch
from equipoise.console.operator.terms import DANGERS, read_accepted, read_budget
from equipoise.console.rendering import table_of
from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.accounts import Danger
from equipoise.model.datasets import NEW_PEOPLE, same_people_as
from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.schema import Schema
from equipoise.queries.schema_file import read_schema_file

SHOWN_CHARGES = 200
CAPS = ("data_epsilon", "data_delta", "analyst_epsilon", "analyst_delta")
DANGERS_OF_CAPS = [each for each in DANGERS if each[0] in (Danger.EPSILON, Danger.DELTA)]
FIELDS = ("name", "source", "schema", "people", *CAPS, "person", "records")


def home(desk: Desk, _: Asked) -> Response:
    """All tables, with both budgets as bars."""
    standings = list(desk.operator.datasets())
    return desk.show(
        "operator/datasets.html",
        section="Datasets",
        datasets=table_of(DATASETS, standings, [f"{desk.base}/datasets/{each.dataset.name}" for each in standings]),
        bars=[budget_bar(account) for each in standings for account in (each.data, *each.analysts)],
    )


def show(desk: Desk, asked: Asked) -> Response:
    """One table."""
    return dataset_page(desk, asked.path["name"])


def dataset_page(
    desk: Desk,
    name: str,
    status: int = 200,
    refusal: Exception | None = None,
    typed: Mapping[str, str] = MappingProxyType({}),
    accepted: Sequence[str] = (),
) -> Response:
    """Returns the page of a table.

    Args:
        desk: the operator's.
        name: of the table.
        status: of HTTP.
        refusal: why what was typed on it was refused.
        typed: what was typed.
        accepted: the dangers of a cap that were named.
    """
    operator = desk.operator
    history = operator.dataset_history(name)
    charges = list(islice(operator.dataset_charges(name), SHOWN_CHARGES))
    standing, dataset = history.standing, history.standing.dataset
    ended = dataset.delete_time or dataset.retire_time
    return desk.show(
        "operator/dataset.html",
        status,
        section="Datasets",
        refusal=refusal,
        typed={**dict.fromkeys(("source", "schema", "account", "epsilon", "delta"), ""), **typed},
        names=[each.name for each in (standing.data, *standing.analysts)],
        dangers=DANGERS_OF_CAPS,
        accepted=accepted,
        dataset=dataset,
        state=standing.state,
        since=shown_time(ended),
        attributes=table_of(ATTRIBUTES, dataset.schema.attributes),
        versions=table_of(VERSIONS, history.versions),
        accounts=table_of(ACCOUNTS, [standing.data, *standing.analysts]),
        charges=table_of(CHARGES, charges, [f"{desk.base}/rounds/{each.round_id}" for each in charges]),
        bars=[budget_bar(each, charges) for each in (standing.data, *standing.analysts)],
    )


def blank(desk: Desk, _: Asked) -> Response:
    """The empty form."""
    return _form(desk, {**dict.fromkeys(FIELDS, ""), "analyst_delta": "1e-6"})


def register(desk: Desk, asked: Asked) -> Response:
    """Registers a table."""
    typed = {name: asked.text(name) for name in FIELDS}
    try:
        people = asked.needed("people")
        new = people == NEW_PEOPLE
        person = asked.text("person").strip()
        mode = PersonMode.EVENTS if person else PersonMode.ROWS
        schema = asked.files.get("schema_file") or asked.needed("schema").encode()
        read = read_schema(schema)
        name = asked.needed("name")
        desk.operator.register_dataset(
            name,
            asked.needed("source"),
            read,
            read_budget(asked, "data") if new else None,
            read_budget(asked, "analyst") if new else None,
            asked.needed("request_id"),
            people=people,
            person=person,
            persons=Persons(mode, asked.whole("records", 1)),
            accepted=read_accepted(asked),
        )
    except (InvalidArgument, AlreadyExists, WrongState) as refusal:
        return _form(desk, typed, 400, refusal, asked.texts("accept"))
    return desk.go(f"/datasets/{name}")


def read_schema(content: bytes) -> Schema:
    """Returns the schema of a file that was sent. Raises `InvalidArgument`.

    Args:
        content: of the file.
    """
    with scratch("schema.json") as path:
        path.write_bytes(content)
        try:
            return read_schema_file(path)
        except InvalidArgument as error:
            if error.field != str(path):
                raise
            # Nobody has typed the path of the copy.
            raise InvalidArgument("schema", error.problem) from None


def _form(
    desk: Desk,
    typed: dict[str, str],
    status: int = 200,
    refusal: Exception | None = None,
    accepted: Sequence[str] = (),
) -> Response:
    return desk.show(
        "operator/new_dataset.html",
        status,
        section="Datasets",
        typed=typed,
        people=_answers([each.dataset.name for each in desk.operator.datasets()]),
        dangers=DANGERS_OF_CAPS,
        accepted=accepted,
        refusal=refusal,
    )


def _answers(tables: Sequence[str]) -> list[tuple[str, str]]:
    """Returns whose people a table may hold. Where there are tables, none of the answers stands there unasked."""
    unanswered = [("", "choose: it goes on record")] if tables else []
    same = [(same_people_as(name), f"those of {name}, on one account") for name in tables]
    return [*unanswered, (NEW_PEOPLE, "new people: nobody of a registered table"), *same]
