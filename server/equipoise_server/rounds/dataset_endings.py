"""Retires datasets and deletes them. Neither can be taken back, and neither frees any budget.

A retired dataset takes no new rounds, sessions, measurements or versions. What was released stays readable.

Deleting a dataset makes the server forget what it holds of the table: the results and synopses of its rounds, the
answers of its sessions, the numbers of its measurements, and its seeds. The table itself is the custodian's and is
left alone.

What stays is what others hold the custodian to: the journal and all charges, every record, the receipts and the
workloads that they were signed for. The name stays, too, with the account and what the server recognises the table
by. So nobody begins with a fresh budget under the name of people whose budget was spent.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, or_, select

from equipoise.errors import WrongState
from equipoise.model.datasets import DatasetState
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.seeds import remove_seeds
from equipoise_server.rounds.store.dataset_records import dataset_deleted, dataset_retired
from equipoise_server.rounds.store.datasets import read_dataset
from equipoise_server.rounds.store.results import expire
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import datasets, rounds


def retire_dataset(operations: Operations, name: str, request_id: str, caller: str = "") -> DatasetRecord:
    """Allow no new rounds on a dataset and no new versions of it, for good; its open rounds continue.

    Raises `NotFound`, and `WrongState` where it is retired or deleted already.

    Args:
        operations: carries the step out.
        name: of the dataset.
        request_id: makes the call safe to repeat.
        caller: the operator's name.
    """

    def work(connection: Connection, now: datetime) -> str:
        dataset = read_dataset(connection, name)
        if dataset.state is not DatasetState.ACTIVE:
            raise WrongState(f"the dataset is already {dataset.state}")
        retired = datasets.update().where(datasets.c.name == name).values(retire_time=to_microseconds(now))
        connection.execute(retired)
        dataset_retired(connection, name, now)
        return name

    request = make_request(f"operator/{caller}", request_id, "retire_dataset", name)
    return operations.carry_out(request, work, _as_retired)


def delete_dataset(operations: Operations, name: str, request_id: str, caller: str = "") -> DatasetRecord:
    """Erase what the store holds of a dataset's table, and put that on record.

    Args:
        operations: carries the request out on the store.
        name: the dataset's name.
        request_id: makes the call safe to repeat.
        caller: the operator's name.

    Raises:
        NotFound: there is no such dataset.
        WrongState: it is deleted already, or a round on it has not ended, or its results are not open yet.
        Unavailable: the clock is not trusted. By a wrong one, results could seem to be out that are not.
    """

    def work(connection: Connection, now: datetime) -> str:
        if read_dataset(connection, name).state is DatasetState.DELETED:
            raise WrongState("the dataset is already deleted")
        unfinished = _unfinished(connection, name, now)
        if unfinished is not None:
            raise WrongState(
                f"the round {unfinished} is about it, and its results are not out: let it end, or abort it"
            )
        query = select(rounds.c.id).where(rounds.c.dataset == name).order_by(rounds.c.position)
        for round_id in connection.execute(query).scalars().all():
            expire(connection, round_id)
            remove_seeds(connection, round_id, now)
        deleted = datasets.update().where(datasets.c.name == name).values(delete_time=to_microseconds(now))
        connection.execute(deleted)
        dataset_deleted(connection, name, now)
        return name

    request = make_request(f"operator/{caller}", request_id, "delete_dataset", name)
    return operations.carry_out(request, work, read_dataset)


def _unfinished(connection: Connection, name: str, now: datetime) -> str | None:
    """Return the first round on a dataset that has not ended or whose results are not open yet."""
    ended = [state.value for state in RoundState if state.ended]
    open_yet = or_(rounds.c.state.not_in(ended), rounds.c.release_time > to_microseconds(now))
    query = select(rounds.c.id).where(rounds.c.dataset == name, open_yet).order_by(rounds.c.position)
    return connection.execute(query).scalars().first()


def _as_retired(connection: Connection, name: str) -> DatasetRecord:
    """Return the dataset as it was when it had just been retired. It has got no version since."""
    return replace(read_dataset(connection, name), delete_time=None)
