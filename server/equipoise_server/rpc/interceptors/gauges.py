"""What metrics tell of a server besides its calls, looked up whenever a monitoring system asks.

Each class is a collector for `Metrics`. A store that cannot be read must not hide what the process itself knows, so
its gauges are then left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from equipoise.errors import EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise_server.clock import Clock
from equipoise_server.ledger.accounts import Account, account, data_account
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import datasets, rounds


class StoreGauges(Collector):
    """Rounds in each state, and the part of each dataset's budget that is left."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read the store once; retired datasets are left out, as no round is opened on them any more."""
        counts = select(rounds.c.state, func.count()).group_by(rounds.c.state)
        active = select(datasets.c.name).where(datasets.c.retire_time.is_(None)).order_by(datasets.c.name)
        try:
            with self._store.read() as connection:
                states = {str(state): int(count) for state, count in connection.execute(counts)}
                left = {
                    name: part_left(account(connection, data_account(name)))
                    for name in connection.execute(active).scalars()
                }
        except EquipoiseError:
            return
        yield _gauge(
            "equipoise_rounds", "Rounds in each state.", "state", {each: states.get(each, 0) for each in RoundState}
        )
        yield _gauge(
            "equipoise_data_budget_left",
            "The part of a dataset's budget that is neither spent nor reserved, from 1 to 0.",
            "dataset",
            left,
        )


class CertificateGauge(Collector):
    """How long each of the deployment's own certificates is still valid."""

    def __init__(self, ends: Mapping[str, datetime], clock: Clock) -> None:
        self._ends = ends
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the seconds until each ends; below 0 when it has ended."""
        now = self._clock()
        yield _gauge(
            "equipoise_certificate_seconds_left",
            "How long a certificate of the deployment is still valid.",
            "certificate",
            {name: (end - now).total_seconds() for name, end in self._ends.items()},
        )


class FailedRuns(Collector):
    """How many workers of this server have ended without answers."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the number since the server was started."""
        yield CounterMetricFamily(
            "equipoise_failed_runs", "Runs of rounds that ended without answers.", value=self._count()
        )


def part_left(shown: Account) -> float:
    """Return the part of an account's limits that is still free: the smallest of any amount that is limited."""
    amounts = zip(astuple(shown.committed), astuple(shown.limit), strict=True)
    return min((1 - committed / limit for committed, limit in amounts if limit), default=0.0)


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family
