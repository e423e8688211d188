"""Checks that a custodian runs without a server: of a state directory, and of a table to be registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select

from equipoise.errors import InvalidArgument, WrongState
from equipoise.queries.schema_file import read_schema_file
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.source import source_at
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.round_job import check_seeds
from equipoise_server.rounds.store.committed_content import check_all
from equipoise_server.storage.failures import damage_as_data_loss
from equipoise_server.storage.references import check_references
from equipoise_server.storage.tables.identity import identities
from equipoise_server.storage.tables.round import datasets, rounds
from equipoise_server.transparency.identity_check import check_identities
from equipoise_server.transparency.identity_records import authority_is_recorded
from equipoise_server.transparency.keys import check_keys
from equipoise_server.transparency.log import check_log
from equipoise_server.transparency.record_writer import check_records
from equipoise_server.transparency.signing import Signer


@dataclass(frozen=True)
class TableCounts:
    """The exact, private counts of a table: `counts[attribute][category]` is a number of records."""

    universe_size: int
    records: int
    counts: Mapping[str, Mapping[str, int]]


@damage_as_data_loss()
def check_state(state: Path, clock: Clock = system_clock) -> dict[str, str | int]:
    """Reads everything that a server reads at its start, and the whole journal, and returns the facts found.

    Raises `InvalidArgument` naming the file, `WrongState` for an exchange of the authority that was cut off, and
    `DataLoss` for a damaged store, journal or log, an older copy, or certificates that are not those on record.
    """
    deployment = open_deployment(state, clock())
    store = deployment.open_store()
    try:
        with store.read() as connection:
            deployment.guard.check(connection)
            check_content(connection, deployment.signer, deployment.storage_key)
            if not authority_is_recorded(connection, deployment.authority):
                raise WrongState(
                    "the authority in ca is not the one on record: its exchange was cut off; complete it with: "
                    "equipoise-server ca rotate"
                )
            report = {
                table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
                for table in (identities, datasets, rounds)
            }
    finally:
        store.close()
    warnings = deployment.expiring(clock())
    return {
        "deployment": deployment.config.deployment,
        "listen": deployment.config.listen,
        "data_directory": str(deployment.config.data_path(deployment.state)),
        "server_certificate_until": deployment.server_certificate.not_valid_after_utc.isoformat(),
        "authority_until": deployment.authority.certificate.not_valid_after_utc.isoformat(),
        **report,
        **({"warning": "; ".join(warnings)} if warnings else {}),
    }


def check_content(connection: Connection, signer: Signer, storage_key: bytes) -> None:
    """Compare the store with its journal and its log, and the log with its signatures. Raises `DataLoss`."""
    check_references(connection)
    check_accounts(connection)
    check_log(connection)
    check_records(connection)
    check_keys(connection)
    check_all(connection)
    check_seeds(connection, storage_key)
    check_identities(connection)
    signer.check(connection)
    signer.check_checkpoints(connection)


def count_table(table: Path, schema_file: Path, progress: OnRead = unseen) -> TableCounts:
    """Reads a table as its registration would. Raises `InvalidArgument` with the counts of refused records."""
    schema = read_schema_file(schema_file)
    source = source_at(table)
    if not source.exists():
        raise InvalidArgument(str(table), "there is no such file")
    data = source.counts(schema, progress)
    tables = {
        axis: counts.tolist() for (axis,), counts in data.marginals((axis,) for axis in range(len(schema.sizes)))
    }
    counts = {
        attribute.name: dict(zip(attribute.categories, tables[axis], strict=True))
        for axis, attribute in enumerate(schema.attributes)
    }
    return TableCounts(schema.universe_size, data.records, counts)
