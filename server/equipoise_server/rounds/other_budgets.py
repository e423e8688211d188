"""Finds the budgets that the records of a table have already under the name of another dataset.

Two datasets have the same table if their files are the same, have the same bytes, or have the same rows. Equal rows
show by the registered digest, if the schemas are equal: so a file that was moved, or stored in another format, is
recognised. The table of a dataset that a restored store has lost is unknown: its spending was written off under its
name alone, so any new table may be the lost one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, select

from equipoise.errors import InvalidArgument
from equipoise_server.datasets.source import Source, source_at
from equipoise_server.ledger.accounts import data_account
from equipoise_server.ledger.losses import of_lost_accounts
from equipoise_server.rounds.store.step_records import registered_digests
from equipoise_server.storage.tables.round import datasets

JOURNALED = (
    "with it (--new-budgets) the same records get budgets of their own, beside what is spent there, and that is "
    "journaled"
)


@dataclass(frozen=True)
class NewTable:
    """A table to be registered. `digest` commits to its rows; `directory` contains the sources of all datasets."""

    source: Source
    digest: bytes
    directory: Path
    _compared: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    def datasets(self, connection: Connection) -> list[str]:
        """Return the names of the datasets, also retired ones, that have this table. Raises `Unavailable`.

        Each source is compared once. A second call compares only the sources that were registered since the first.
        """
        query = select(datasets.c.name, datasets.c.source).order_by(datasets.c.name)
        digests = registered_digests(connection)
        return [
            row.name
            for row in connection.execute(query)
            if digests.get(row.name) == self.digest or self._has_bytes_of(row.source)
        ]

    def _has_bytes_of(self, source: str) -> bool:
        """Return whether another dataset's source is this one, or has the same bytes."""
        if source not in self._compared:
            self._compared[source] = self.source.same_table(source_at(self.directory / source))
        return self._compared[source]


def other_data_accounts(connection: Connection, name: str, table: NewTable, *, new_budgets: bool) -> list[str]:
    """Return the other data accounts that count, or may count, for the records of a table to be registered.

    Args:
        connection: the transaction in which to read.
        name: the name under which the table is to be registered.
        table: the table.
        new_budgets: whether the operator says that the records get new budgets beside those accounts.

    Raises:
        InvalidArgument: `new_budgets` is false, though there are such accounts, or true, though there are none.
        Unavailable: a source cannot be compared now.
    """
    known = table.datasets(connection)
    lost = sorted(account for account in of_lost_accounts(connection) if account.startswith(data_account("")))
    if data_account(name) in lost:
        lost = []  # under its old name a dataset that was lost begins with what was written off
    if known and not new_budgets:
        problem = f"must be set, as this is the table of the dataset {known[0]!r} already: {JOURNALED}"
        raise InvalidArgument("new_budgets", problem)
    if lost and not new_budgets:
        problem = (
            f"must be set, as this may be the table of the dataset {lost[0].removeprefix(data_account(''))!r}, "
            f"which a restored store has lost: register that one under its old name first, or {JOURNALED}"
        )
        raise InvalidArgument("new_budgets", problem)
    if new_budgets and not known and not lost:
        raise InvalidArgument("new_budgets", "must not be set: no other dataset has this table")
    return sorted({*(data_account(dataset) for dataset in known), *lost})
