"""What becomes of a registered table: another version, other caps, retirement."""

from __future__ import annotations

from starlette.responses import Response

from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.operator.datasets import dataset_page, read_schema
from equipoise.console.operator.terms import read_accepted
from equipoise.errors import InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget

REFUSALS = (InvalidArgument, NotFound, WrongState)


def update(desk: Desk, asked: Asked) -> Response:
    """Registers a newer snapshot of the table, or the table under another schema."""
    name = asked.path["name"]
    typed = {"source": asked.text("source").strip(), "schema": asked.text("schema")}
    try:
        schema = asked.files.get("schema_file") or typed["schema"].strip().encode()
        read = read_schema(schema) if schema else None
        desk.operator.update_dataset(name, typed["source"], read, asked.needed("request_id"))
    except REFUSALS as refusal:
        return dataset_page(desk, name, 400, refusal, typed)
    return desk.go(f"/datasets/{name}")


def set_cap(desk: Desk, asked: Asked) -> Response:
    """Gives an account of the table another cap."""
    name = asked.path["name"]
    typed = {each: asked.text(each).strip() for each in ("account", "epsilon", "delta")}
    try:
        cap = Budget(asked.number("epsilon"), asked.number("delta"))
        accepted = read_accepted(asked)
        desk.operator.set_cap(asked.needed("account"), cap, asked.needed("request_id"), accepted)
    except REFUSALS as refusal:
        return dataset_page(desk, name, 400, refusal, typed, asked.texts("accept"))
    return desk.go(f"/datasets/{name}")


def retire(desk: Desk, asked: Asked) -> Response:
    """Retires a table, for good."""
    name = asked.path["name"]
    if asked.text("confirm") != name:
        raise InvalidArgument("confirm", f"must be {name!r}, the name of what is retired for good")
    desk.operator.retire_dataset(name, asked.needed("request_id"))
    return desk.go(f"/datasets/{name}")
