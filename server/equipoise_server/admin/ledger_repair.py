"""Checks the ledger of a state directory, and writes off losses while no server runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from equipoise_server.admin.state_directory import Deployment, open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import all_accounts
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.recovery import write_off_losses
from equipoise_server.rounds.store.committed_content import check_all
from equipoise_server.storage.failures import damage_as_data_loss
from equipoise_server.storage.store import Store
from equipoise_server.transparency.log import check_log
from equipoise_server.transparency.record_writer import check_records


@damage_as_data_loss()
def verify(state: Path, clock: Clock = system_clock) -> dict[str, Any]:
    """Checks guard, chain, accounts, records and log. Raises `DataLoss` if they disagree, and `InvalidArgument`."""
    deployment = open_deployment(state, clock())
    store = deployment.open_store()
    try:
        with store.read() as connection:
            deployment.guard.check(connection)
            check_accounts(connection)
            head, log = journal.head(connection), check_log(connection)
            report = {
                "entries": head.sequence,
                "accounts": len(all_accounts(connection)),
                "digest": head.digest.hex(),
                "records": check_records(connection),
                "sealed_rounds": check_all(connection),
                "log_size": log.size,
                "log_root": log.root.hex(),
            }
    finally:
        store.close()
    return report


def write_off_state(state: Path, clock: Clock = system_clock) -> dict[str, Any]:
    """Writes off what the store of `state` may have forgotten, and returns what was found and done.

    Raises `InvalidArgument` while a server runs on the directory, `DataLoss` for a journal or accounts that are
    damaged in themselves: these must be restored first.
    """
    with _exclusive_store(state, clock) as (deployment, store):
        with store.read() as connection:
            check_accounts(connection)
            check_log(connection)
        done = write_off_losses(store, deployment.guard, deployment.signer, clock())
    return {
        "finding": done.finding.value,
        "written_off": [{"account": lost.account, **asdict(lost.cost)} for lost in done.written_off],
        "aborted": done.aborted,
        "lost_records": done.lost_records,
        "new_key": None if done.new_key is None else deployment.signer.verifier(done.new_key).to_text(),
    }


@contextmanager
def _exclusive_store(state: Path, clock: Clock) -> Iterator[tuple[Deployment, Store]]:
    deployment = open_deployment(state, clock())
    with deployment.hold_exclusively():
        store = deployment.open_store()
        try:
            yield deployment, store
        finally:
            store.close()
