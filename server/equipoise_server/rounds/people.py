"""Decides which account pays for a table, the one of the people in it or a new one, and opens a new one.

Whoever registers a table says whose people it holds (`equipoise.model.datasets.read_people`). Nobody can check that
against the world, but an answer that the server knows to be wrong is refused. It recognises a table that a dataset
has already: their files are the same, have the same bytes, or have the same rows. Equal rows show by the registered
digest, if the schemas are equal: so a file that was moved, or stored in another format, is recognised. A table of a
dataset that a restored store has lost is unknown, so any new table may be that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, select

from equipoise.errors import InvalidArgument
from equipoise.model.datasets import ANSWERS, NEW_PEOPLE, read_people, same_people_as
from equipoise_server.datasets.source import Source, source_at
from equipoise_server.ledger import journal
from equipoise_server.ledger.account_names import data_account
from equipoise_server.ledger.accounts import open_account
from equipoise_server.ledger.caps import Cap, Composition
from equipoise_server.ledger.losses import of_lost_accounts, of_lost_datasets
from equipoise_server.ledger.write_offs import lost_orders
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.store.dataset_records import registered_tables
from equipoise_server.rounds.store.datasets import all_versions
from equipoise_server.storage.tables.round import datasets

JOURNALED = (
    "with new_budgets (--new-budgets) it gets budgets of its own, beside what is spent there, and that is journaled"
)


@dataclass(frozen=True)
class NewTable:
    """A table to be registered. `directory` contains the sources of all datasets.

    `digest`: commits to its rows (`datasets.digest`). `snapshot`: what its state is recognised by
    (`datasets.snapshot`). 32 bytes each.
    """

    source: Source
    digest: bytes
    snapshot: bytes
    directory: Path
    _compared: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    def datasets(self, connection: Connection) -> dict[str, str]:
        """Return the datasets that have, or had, this table, with their accounts. Raises `Unavailable`.

        Datasets that were retired or deleted count, and so do older versions. Each source is compared once; another
        call compares only the sources that were registered since.
        """
        known = registered_tables(connection)
        return {
            row.name: row.account
            for row in connection.execute(all_versions().order_by(datasets.c.name)).all()
            if any(self.digest == each.digest for each in known.get(row.name, ())) or self._has_bytes_of(row.source)
        }

    def _has_bytes_of(self, source: str) -> bool:
        """Return whether another dataset's source is this one, or has the same bytes."""
        if source not in self._compared:
            self._compared[source] = self.source.same_table(source_at(self.directory / source))
        return self._compared[source]


@dataclass(frozen=True)
class Payer:
    """Which account pays for a new dataset.

    `account`: its name; the dataset's own where the people are new. `people`: the answer, as it goes on record.
    `beside`: the other data accounts that count, or may count, for the same records.
    """

    account: str
    people: str
    beside: tuple[str, ...] = ()


def payer(connection: Connection, name: str, people: str, table: NewTable, *, new_budgets: bool) -> Payer:
    """Return the account that pays for a table to be registered.

    Args:
        connection: the transaction in which to read.
        name: the name under which the table is to be registered.
        people: "new", or "same-as:" and a dataset's name. Empty only for the first table of a server, whose people
            can be in no other.
        table: the table.
        new_budgets: whether the operator says that the records get new budgets, though they may have some.

    Raises:
        InvalidArgument: the answer is missing, names no dataset, or is known to be wrong; or `new_budgets` is set
            where nothing calls for it.
        Unavailable: a source cannot be compared now.
    """
    known = table.datasets(connection)
    named = _named_dataset(connection, people, known)
    lost = _lost(connection)
    if named is not None:
        return _shared(connection, named, known, lost.get(name), new_budgets=new_budgets)
    if name in lost:
        if lost[name] != name:
            raise InvalidArgument("people", _had_account(lost[name]))
        lost = {}  # under its old name a dataset that was lost begins with what was written off
    if known and not new_budgets:
        raise InvalidArgument("people", f"{_recognised(known)}; if it holds other people now, {JOURNALED}")
    if lost and not new_budgets:
        problem = (
            f"must be set, as this may be the table of the dataset {min(lost)!r}, which a restored store has lost: "
            f"register that one under its old name first, or {JOURNALED}"
        )
        raise InvalidArgument("new_budgets", problem)
    if new_budgets and not known and not lost:
        raise InvalidArgument("new_budgets", "must not be set: no other dataset has this table")
    beside = sorted({data_account(account) for account in (*known.values(), *lost.values())})
    return Payer(name, NEW_PEOPLE, tuple(beside))


def check_named(connection: Connection, people: str) -> None:
    """Check that the dataset whose people a table is said to hold is there, before the table is read.

    Args:
        connection: the transaction in which to read.
        people: as for `payer`.

    Raises:
        InvalidArgument: it is no answer, or names no dataset.
    """
    if people and (named := read_people(people)) is not None:
        _account_of(connection, named)


def check_same_people(connection: Connection, dataset: DatasetRecord, table: NewTable) -> None:
    """Check that a table may be another version of a dataset: no other people's account is known to count for it.

    Raises:
        InvalidArgument: the table is one of datasets that all have another account.
        Unavailable: a source cannot be compared now.
    """
    known = table.datasets(connection)
    if known and dataset.account not in known.values():
        first = min(known)
        problem = (
            f"is the table of the dataset {first!r} already, whose people have another account than those of "
            f"{dataset.name!r}"
        )
        raise InvalidArgument("source", problem)


def open_data_account(connection: Connection, paying: Payer, caps: tuple[Cap, Cap], now: datetime) -> None:
    """Open the data account of new people, with what was written off under its name.

    Args:
        connection: of the transaction that registers the dataset.
        paying: the account.
        caps: of the data account, and of each analyst's account that will be opened beside it.
        now: the time of the journal entry.

    Raises:
        InvalidArgument: losses under this name were counted at another order.
    """
    data_cap, analyst_cap = caps
    lost_of_data, lost_of_analysts = lost_orders(connection, paying.account)
    _check_lost("data_order", lost_of_data, data_cap)
    _check_lost("analyst_order", lost_of_analysts, analyst_cap)
    open_account(
        connection,
        now,
        data_account(paying.account),
        account=paying.account,
        composition=Composition.SEQUENTIAL,
        cap=data_cap,
        beside=paying.beside,
    )


def _lost(connection: Connection) -> dict[str, str]:
    """Return the accounts of the datasets that a restored store has lost, as far as they are known, by name."""
    prefix = data_account("")
    names = [each.removeprefix(prefix) for each in of_lost_accounts(connection) if each.startswith(prefix)]
    return {name: name for name in names} | of_lost_datasets(connection)


def _named_dataset(connection: Connection, people: str, known: dict[str, str]) -> str | None:
    """Return the dataset that the answer names; None for new people."""
    if people:
        return read_people(people)
    if known:
        raise InvalidArgument("people", _recognised(known))
    if journal.head(connection).sequence:
        raise InvalidArgument(
            "people", f"must say whose people the table holds: {ANSWERS}; same people share one account for ever"
        )
    return None


def _shared(
    connection: Connection, named: str, known: dict[str, str], had: str | None, *, new_budgets: bool
) -> Payer:
    """Return the account of the dataset that the answer names. `had`: the one that this dataset had and lost."""
    account = _account_of(connection, named)
    if had not in (None, account):
        raise InvalidArgument("people", _had_account(had))
    if known and account not in known.values():
        raise InvalidArgument("people", _recognised(known))
    if new_budgets:
        raise InvalidArgument("new_budgets", f"must not be set: the table is to have the account of {named!r}")
    return Payer(account, same_people_as(named))


def _account_of(connection: Connection, named: str) -> str:
    account: str | None = connection.execute(select(datasets.c.account).where(datasets.c.name == named)).scalar()
    if account is None:
        raise InvalidArgument("people", f"there is no dataset {named!r}")
    return account


def _had_account(account: str | None) -> str:
    return f"must be as before: a restored store has lost a dataset of this name, whose account is {account!r}"


def _recognised(known: dict[str, str]) -> str:
    first = min(known)
    return f"must be {same_people_as(first)!r}, as this is the table of the dataset {first!r} already"


def _check_lost(field: str, lost: set[float], cap: Cap) -> None:
    """Raise `InvalidArgument` where losses were written off at another order, at which alone they can count."""
    for order in sorted(lost - {cap.order}):
        raise InvalidArgument(
            field, f"must be {order!r}, the order at which losses under this name were written off"
        )
