"""The operators' views of datasets: how they stand, their versions, and what each round took of their budgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from equipoise.model.accounts import Account, AccountCharge
from equipoise.model.datasets import DatasetCharge, DatasetHistory, DatasetStanding, DatasetVersion
from equipoise.model.rounds import MEASUREMENT, RoundState
from equipoise_server.datasets.source import kind_of
from equipoise_server.ledger import charges
from equipoise_server.ledger.account_names import data_account, holder
from equipoise_server.ledger.accounts import Account as StoredAccount
from equipoise_server.ledger.accounts import account as read_account
from equipoise_server.ledger.accounts import all_of, free_part
from equipoise_server.rounds.account_room import round_charges
from equipoise_server.rounds.budget_views import shown_account
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.store.datasets import all_versions, dataset_record, read_dataset
from equipoise_server.rounds.store.rounds import check_token, newest_first, round_records
from equipoise_server.storage.paging import cut_page, page_limit
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import dataset_versions, datasets, rounds

_CHARGED = {"reserved": "reserved", "spent": "spent", "released": "given back"}


@dataclass(frozen=True)
class DatasetViews:
    """Views of the datasets of one store."""

    store: Store

    def page(self, page_size: int = 0, page_token: str = "") -> tuple[list[DatasetStanding], str]:
        """Return a page of the datasets in the order of their names, and the token of the next page."""
        limit = page_limit(page_size)
        others = dataset_versions.alias()
        newest = select(func.max(others.c.version)).where(others.c.dataset == datasets.c.name).scalar_subquery()
        query = all_versions().where(datasets.c.name > page_token, dataset_versions.c.version == newest)
        with self.store.read() as connection:
            rows = connection.execute(query.order_by(datasets.c.name).limit(limit + 1)).all()
            found, token = cut_page(rows, limit, lambda row: str(row.name))
            return [_standing(connection, dataset_record(row)) for row in found], token

    def history(self, name: str) -> DatasetHistory:
        """Return a dataset with all of its versions, the oldest first. Raises `NotFound`."""
        query = all_versions().where(datasets.c.name == name).order_by(dataset_versions.c.version)
        with self.store.read() as connection:
            standing = _standing(connection, read_dataset(connection, name))
            versions = [dataset_record(row) for row in connection.execute(query)]
        return DatasetHistory(standing, tuple(map(_version, versions)))

    def charges(self, name: str, page_size: int = 0, page_token: str = "") -> tuple[list[DatasetCharge], str]:
        """Return a page of what each round on any dataset of an account counts on it, the newest first.

        Raises `NotFound`, and `InvalidArgument` for a token that no page ended with.
        """
        limit = page_limit(page_size)
        with self.store.read() as connection:
            account = read_dataset(connection, name).account
            check_token(connection, page_token)
            of_account = rounds.c.dataset.in_(select(datasets.c.name).where(datasets.c.account == account))
            records = round_records(connection, newest_first(page_token, limit + 1).where(of_account))
            found, token = cut_page(records, limit, lambda record: record.id)
            return [_charge(connection, record) for record in found], token


def _standing(connection: Connection, dataset: DatasetRecord) -> DatasetStanding:
    data = shown_account(read_account(connection, data_account(dataset.account)))
    analysts = tuple(_scarcest(connection, dataset.account))
    return DatasetStanding(dataset, dataset.state, kind_of(dataset.source), data, analysts)


def _scarcest(connection: Connection, account: str) -> Iterator[Account]:
    """Yield, for each unit, the analyst's account of which least is left; the first by name among equals."""
    by_unit: dict[str, list[StoredAccount]] = {}
    for part in all_of(connection, account):
        if (held_by := holder(part.name)) is not None:
            by_unit.setdefault(held_by[0], []).append(part)
    for _, parts in sorted(by_unit.items()):
        yield shown_account(min(parts, key=free_part))


def _version(dataset: DatasetRecord) -> DatasetVersion:
    kind, names = kind_of(dataset.source), dataset.schema.names
    return DatasetVersion(dataset.version, kind, dataset.records, dataset.create_time, tuple(names))


def _charge(connection: Connection, record: RoundRecord) -> DatasetCharge:
    counted: tuple[AccountCharge, ...] = round_charges(connection, record)
    return DatasetCharge(
        round_id=record.id,
        dataset=record.terms.dataset,
        dataset_version=record.dataset_version,
        kind=_kind(record),
        mechanism=record.mechanism,
        state=record.state,
        charge=_state_of_charge(connection, record),
        data=counted[0],
        analyst=counted[1] if len(counted) > 1 else None,
    )


def _kind(record: RoundRecord) -> str:
    if record.mechanism == MEASUREMENT:
        return "measurement"
    return "round" if record.terms.session is None else "session"


def _state_of_charge(connection: Connection, record: RoundRecord) -> str:
    """Say what has become of a round's charges, all of which have the same state."""
    for charge in charges.of_round(connection, record.id):
        return _CHARGED[charge.state]
    return "not reserved yet" if record.state is RoundState.OPEN else "never reserved"
