"""Loads the table of a round or of a session, and refuses any table but the registered one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.schema import Schema
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.mapped_counts import map_counts
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.mechanisms.interface import PublicParameters

NOTHING_CHARGED = "the table is not read: nothing is charged for it"


class Countable(Protocol):
    """What counts are read from: a source, or counts that were read from one before."""

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:
        """Return the counts of the schema's possible records, as `Source.counts` does."""
        ...


@dataclass(frozen=True)
class ReadBefore:
    """Counts in a file in memory (`datasets.mapped_counts`), by its descriptor."""

    file: int

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:  # noqa: ARG002
        """Return the file's counts."""
        return map_counts(self.file)


@dataclass(frozen=True)
class LoadedData:
    """The registered table as counts, and its digest."""

    counts: Counts
    digest: bytes


@dataclass(frozen=True)
class NoData:
    """The table of a run that costs its people nothing, which must not read it: only its public sizes are known."""

    universe_size: int
    records: int

    def count(self, workload: CompiledWorkload) -> NDArray[np.int64]:  # noqa: ARG002
        raise ValueError(NOTHING_CHARGED)

    def marginals(self, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, NDArray[np.int64]]]:  # noqa: ARG002
        raise ValueError(NOTHING_CHARGED)

    def occupied(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        raise ValueError(NOTHING_CHARGED)

    def dense(self) -> NDArray[np.int64]:
        raise ValueError(NOTHING_CHARGED)


def data_for(
    plan: MechanismPlan,
    source: Countable,
    schema: Schema,
    setting: PublicParameters,
    registered: bytes,
    progress: OnRead = unseen,
) -> LoadedData:
    """Return the table that a plan is run on. Whatever costs the people in the table nothing is given no table.

    Raises as `load_data` does.
    """
    if plan.data_cost == Cost():
        return LoadedData(NoData(setting.universe_size, setting.records), registered)
    return load_data(source, schema, setting.records, registered, progress)


def load_data(
    source: Countable, schema: Schema, records: int, registered: bytes, progress: OnRead = unseen
) -> LoadedData:
    """Read a table and check that it is the registered one.

    Args:
        source: where the table is.
        schema: the table's attributes.
        records: the number of records at registration.
        registered: the table's digest at registration, 32 bytes.
        progress: told how far the reading is.

    Raises:
        InvalidArgument: a record does not fit the schema.
        DataLoss: the table is not the registered one.
    """
    counts = source.counts(schema, progress)
    if counts.records != records:
        raise DataLoss(f"the table has {counts.records} records, but had {records} when it was registered")
    digest = data_digest(counts)
    if digest != registered:
        raise DataLoss("the table's records are not those that were registered")
    return LoadedData(counts, digest)
