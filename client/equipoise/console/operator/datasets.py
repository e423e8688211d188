"""Tables: what they hold, whose people, both budgets and what each round took of them."""

from __future__ import annotations

from itertools import islice

from starlette.responses import Response

from equipoise.commands.columns import shown_time
from equipoise.commands.dataset_columns import ACCOUNTS, CHARGES, DATASETS, VERSIONS
from equipoise.console.asked import Asked
from equipoise.console.attributes import ATTRIBUTES
from equipoise.console.charts import budget_bar
from equipoise.console.desk import Desk, scratch
from equipoise.console.rendering import table_of
from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.datasets import NEW_PEOPLE, same_people_as
from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.schema_file import read_schema_file

SHOWN_CHARGES = 200
CAPS = ("data_epsilon", "data_delta", "analyst_epsilon", "analyst_delta")
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
    operator, name = desk.operator, asked.path["name"]
    history = operator.dataset_history(name)
    charges = list(islice(operator.dataset_charges(name), SHOWN_CHARGES))
    standing, dataset = history.standing, history.standing.dataset
    ended = dataset.delete_time or dataset.retire_time
    return desk.show(
        "operator/dataset.html",
        section="Datasets",
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
    return _form(desk, {**dict.fromkeys(FIELDS, ""), "analyst_delta": "1e-6", "data_delta": "1e-6"})


def register(desk: Desk, asked: Asked) -> Response:
    """Registers a table."""
    typed = {name: asked.text(name) for name in FIELDS}
    try:
        people = asked.needed("people")
        new = people == NEW_PEOPLE
        person = asked.text("person").strip()
        mode = PersonMode.EVENTS if person else PersonMode.ROWS
        schema = asked.files.get("schema_file") or asked.needed("schema").encode()
        with scratch("schema.json") as path:
            path.write_bytes(schema)
            read = read_schema_file(path)
        name = asked.needed("name")
        desk.operator.register_dataset(
            name,
            asked.needed("source"),
            read,
            Budget(asked.number("data_epsilon"), asked.number("data_delta")) if new else None,
            Budget(asked.number("analyst_epsilon"), asked.number("analyst_delta")) if new else None,
            asked.needed("request_id"),
            people=NEW_PEOPLE if new else same_people_as(people.removeprefix("same:")),
            person=person,
            persons=Persons(mode, asked.whole("records", 1)),
        )
    except (InvalidArgument, AlreadyExists, WrongState) as refusal:
        return _form(desk, typed, 400, refusal)
    return desk.go(f"/datasets/{name}")


def retire(desk: Desk, asked: Asked) -> Response:
    """Retires a table, for good."""
    name = asked.path["name"]
    if asked.text("confirm") != name:
        raise InvalidArgument("confirm", f"must be {name!r}, the name of what is retired for good")
    desk.operator.retire_dataset(name, asked.needed("request_id"))
    return desk.go(f"/datasets/{name}")


def _form(desk: Desk, typed: dict[str, str], status: int = 200, refusal: Exception | None = None) -> Response:
    names = [each.dataset.name for each in desk.operator.datasets()]
    return desk.show(
        "operator/new_dataset.html", status, section="Datasets", typed=typed, names=names, refusal=refusal
    )
