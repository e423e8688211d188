"""What was written off of accounts."""

from __future__ import annotations

import json

from sqlalchemy import Connection

from equipoise.accounting import Cost
from equipoise_server.ledger import journal
from equipoise_server.ledger.account_names import analyst_account, data_account, holder


def written_off(connection: Connection, name: str) -> list[Cost]:
    """Return every write-off under an account's name, including those from before the account was opened."""
    return [cost for _, cost in write_offs_of(connection, name)]


def lost_orders(connection: Connection, account: str) -> tuple[set[float], set[float]]:
    """Return the Renyi orders of an account's write-offs: those of the data account, and those of analysts'."""
    data, analysts = set[float](), set[float]()
    for entry in journal.of_action(connection, "write-off"):
        order, held_by = json.loads(entry.events).get("order"), holder(entry.account)
        if order is not None and entry.account == data_account(account):
            data.add(order)
        elif order is not None and held_by and entry.account == analyst_account(account, *held_by):
            analysts.add(order)
    return data, analysts


def write_offs_of(connection: Connection, name: str) -> list[tuple[float | None, Cost]]:
    entries = journal.of_account(connection, name, 0, None)
    return [(json.loads(entry.events).get("order"), entry.cost) for entry in entries if entry.action == "write-off"]
