"""Builds the services of rounds and datasets of one server."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from equipoise_server.clock import Clock, Elapsed, seconds_since_boot, system_clock
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.budget_views import Budgets
from equipoise_server.rounds.clock_watch import ClockWatch, believed_absence
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.dataset_views import DatasetViews
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.grant_requests import GrantRequests
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.own_world import OwnWorld
from equipoise_server.rounds.round_views import RoundViews
from equipoise_server.rounds.runner import Runner
from equipoise_server.rounds.schedule import Schedule
from equipoise_server.rounds.seeds import Seeds
from equipoise_server.rounds.store.results import Runs
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.rounds.underway import Underway
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store
from equipoise_server.transparency.seed_encryption import SeedSource, system_seeds
from equipoise_server.transparency.sequencing import Sequencer
from equipoise_server.workers.watchdog import IDLE_SECONDS


@dataclass(frozen=True)
class RoundServices:
    """The services of datasets and rounds. Each caller is given only the services that it needs.

    `operations` change nothing while the clock is not trusted; `identity_operations` do, and date it by a time that
    has come for certain.
    """

    operations: Operations
    identity_operations: Operations
    context: Context
    datasets: Datasets
    dataset_views: DatasetViews
    opening: Opening
    lifecycle: Lifecycle
    runner: Runner
    views: RoundViews
    submissions: Submissions
    analyst_views: AnalystViews
    own_world: OwnWorld
    grant_requests: GrantRequests
    seeds: Seeds
    budgets: Budgets
    schedule: Schedule
    underway: Underway = field(default_factory=Underway)


def round_services(
    store: Store,
    data_directory: Path,
    storage_key: bytes,
    *,
    guard: Guard,
    sequencer: Sequencer,
    deployment: str,
    clock: Clock = system_clock,
    elapsed: Elapsed | None = None,
    seed_source: SeedSource = system_seeds,
    release_grid_seconds: int = 60,
    retention_days: int = 0,
    audit_window_days: int = 0,
    absence_days: int = 0,
    worker_idle_seconds: float = IDLE_SECONDS,
) -> RoundServices:
    """Build the services on one store. `lifecycle.recover` must be called first, and `lifecycle.close` at the end.

    Args:
        store: the store, which must stay open until after `lifecycle.close`.
        data_directory: the directory of the tables.
        storage_key: the key that encrypts seeds in the store.
        guard: the store's guard against older copies of the store.
        sequencer: the sequencer of the store's log.
        deployment: the deployment's name, which receipts contain.
        clock: tells the time; tests pass their own.
        elapsed: the seconds with which the clock is compared; by default the machine's, or those of a test's clock.
        seed_source: draws the seeds of rounds; tests pass their own.
        release_grid_seconds: the release grid of rounds whose terms name none, in seconds.
        retention_days: how many days results are kept after their release; 0: for ever.
        audit_window_days: how many days seeds are kept for auditors after a round's end; 0: for ever.
        absence_days: after how many days without a server the time must be confirmed, if results and seeds are
            kept for so long; 0: never.
        worker_idle_seconds: how long a worker may be waited for without using processor time.
    """
    signer = sequencer.signer
    absence = believed_absence(absence_days, retention_days, audit_window_days)
    watch = ClockWatch(clock, elapsed or seconds_since(clock), absence)
    operations = Operations(store, clock, lambda: guard.advance(store), watch.time)
    # A revocation cannot wait until somebody has looked at the clock. By a time to come it would hold up the log.
    identity_operations = Operations(store, clock, operations.remember, lambda at, _: watch.read(at).reached)
    datasets = Datasets(operations, data_directory)
    context = Context(store, datasets, signer, deployment, storage_key, watch, worker_idle_seconds)
    runner = Runner(Runs(store, clock), store.claims(), worker_idle_seconds)
    lifecycle = Lifecycle(operations, context, runner, release_grid_seconds)
    seeds = Seeds(operations, sequencer)
    retention, audit_window = timedelta(days=retention_days), timedelta(days=audit_window_days)
    return RoundServices(
        operations=operations,
        identity_operations=identity_operations,
        context=context,
        datasets=datasets,
        dataset_views=DatasetViews(store),
        opening=Opening(operations, context.tables, seed_source, storage_key, release_grid_seconds),
        lifecycle=lifecycle,
        runner=runner,
        views=RoundViews(store, runner),
        submissions=Submissions(operations, signer, deployment, watch),
        analyst_views=AnalystViews(store, watch, signer, deployment),
        own_world=OwnWorld(store, watch),
        grant_requests=GrantRequests(operations),
        seeds=seeds,
        budgets=Budgets(operations),
        schedule=Schedule(operations, lifecycle, seeds, sequencer, retention, audit_window, watch),
    )


def seconds_since(clock: Clock) -> Elapsed:
    """Return the seconds to compare a clock with: the machine's, or the clock's own where a test moves it."""
    return seconds_since_boot if clock is system_clock else lambda: clock().timestamp()
