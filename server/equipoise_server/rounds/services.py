"""The parts of the rounds service of one server, put together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from equipoise_server.clock import Clock, Elapsed, seconds_since_boot, system_clock
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.budget_views import Budgets
from equipoise_server.rounds.clock_watch import ClockWatch
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.round_views import RoundViews
from equipoise_server.rounds.runner import Runner
from equipoise_server.rounds.schedule import Schedule
from equipoise_server.rounds.seeds import Seeds
from equipoise_server.rounds.store.results import Runs
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store
from equipoise_server.transparency.seed_encryption import SeedSource, system_seeds
from equipoise_server.transparency.sequencing import Sequencer


@dataclass(frozen=True)
class RoundServices:
    """What can be done with datasets and rounds. Whoever serves some of it is given the part that does it."""

    operations: Operations
    context: Context
    datasets: Datasets
    opening: Opening
    lifecycle: Lifecycle
    runner: Runner
    views: RoundViews
    submissions: Submissions
    analyst_views: AnalystViews
    seeds: Seeds
    budgets: Budgets
    schedule: Schedule


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
) -> RoundServices:
    """The services on one store; to be begun with `lifecycle.recover`, and ended with `lifecycle.close`.

    Args:
        store: open until after the end.
        data_directory: where the tables lie.
        storage_key: encrypts seeds in the store.
        guard: of the store, against older copies of it.
        sequencer: of the store's log.
        deployment: its name, which receipts say.
        clock: tells the time, for tests.
        elapsed: what the clock is compared with; by default the machine's seconds, or a test's clock itself.
        seed_source: draws the seeds of rounds, for tests.
        release_grid_seconds: of rounds whose terms say none.
        retention_days: how long results are kept after their release; 0: for ever.
        audit_window_days: how long seeds are kept for auditors after a round's end; 0: for ever.
        absence_days: after how long without a server the time must be confirmed; 0: never.
    """
    operations = Operations(store, clock, lambda: guard.advance(store))
    signer = sequencer.signer
    absence = timedelta(days=absence_days) if absence_days else None
    watch = ClockWatch(clock, elapsed or seconds_since(clock), absence)
    datasets = Datasets(operations, data_directory)
    context = Context(store, datasets, clock, signer, deployment, storage_key, watch)
    runner = Runner(Runs(store, clock), store.claims())
    lifecycle = Lifecycle(operations, context, runner, release_grid_seconds)
    seeds = Seeds(operations, sequencer)
    retention, audit_window = timedelta(days=retention_days), timedelta(days=audit_window_days)
    return RoundServices(
        operations=operations,
        context=context,
        datasets=datasets,
        opening=Opening(operations, seed_source, storage_key, release_grid_seconds),
        lifecycle=lifecycle,
        runner=runner,
        views=RoundViews(store, runner),
        submissions=Submissions(operations, signer, deployment),
        analyst_views=AnalystViews(store, clock, signer, deployment),
        seeds=seeds,
        budgets=Budgets(operations),
        schedule=Schedule(operations, lifecycle, seeds, sequencer, retention, audit_window, watch),
    )


def seconds_since(clock: Clock) -> Elapsed:
    """Seconds that pass beside a clock: the machine's, or the clock's own where a test moves it."""
    return seconds_since_boot if clock is system_clock else lambda: clock().timestamp()
