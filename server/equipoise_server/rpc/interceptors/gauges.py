"""Collectors of a server's metrics besides its calls, which read their values whenever a monitoring system asks.

If the store cannot be read, only the store's gauges are left out, so that the other metrics remain visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from equipoise.errors import EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise_server.clock import Clock
from equipoise_server.ledger.account_names import data_account
from equipoise_server.ledger.accounts import account, free_part
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import datasets, rounds


class StoreGauges(Collector):
    """The gauges of the store: rounds in each state, and the smallest remaining part of any data account."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read the store once. Accounts whose datasets are all retired or deleted are left out."""
        counts = select(rounds.c.state, func.count()).group_by(rounds.c.state)
        ends = datasets.c.retire_time, datasets.c.delete_time
        active = select(datasets.c.account).where(*(end.is_(None) for end in ends)).distinct()
        try:
            with self._store.read() as connection:
                states = {str(state): int(count) for state, count in connection.execute(counts)}
                names = connection.execute(active).scalars().all()
                left = [free_part(account(connection, data_account(name))) for name in names]
        except EquipoiseError:
            return
        yield _gauge(
            "equipoise_rounds", "Rounds in each state.", "state", {each: states.get(each, 0) for each in RoundState}
        )
        if left:
            yield GaugeMetricFamily(
                "equipoise_data_budget_left",
                "The part that is free of the data account of which least is left, from 1 to 0.",
                value=min(left),
            )


class CertificateGauge(Collector):
    """The gauge of the remaining validity of the deployment's own certificates."""

    def __init__(self, ends: Callable[[], Mapping[str, datetime]], clock: Clock) -> None:
        self._ends = ends
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the seconds until each certificate expires; below 0 for an expired one."""
        now = self._clock()
        yield _gauge(
            "equipoise_certificate_seconds_left",
            "How long a certificate of the deployment is still valid.",
            "certificate",
            {name: (end - now).total_seconds() for name, end in self._ends().items()},
        )


class FailedRuns(Collector):
    """The counter of this server's workers that ended without answers."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the number since the server was started."""
        yield CounterMetricFamily(
            "equipoise_failed_runs", "Runs of rounds that ended without answers.", value=self._count()
        )


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family
