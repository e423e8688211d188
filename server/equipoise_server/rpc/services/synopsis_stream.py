"""Streams the synopsis of a released round: a differentially private output, the same for all of its analysts.

The mechanism and the plan determine whether a round has a synopsis and how many records the synopsis has; both are
public. The round's charges cover the content.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import func, select

from equipoise.errors import DataLoss, OutOfRange, WrongState
from equipoise.model.rounds import RoundState
from equipoise.model.synopsis import Synopsis, SynopsisPart, record_bytes
from equipoise.v1 import analyst_pb2
from equipoise.wire.synopsis import synopsis_part_to_message
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.store.committed_content import check_synopsis
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import rounds, synopses

RECORDS_A_MESSAGE = 4096
RECORDS_AT_ONCE = 16 * RECORDS_A_MESSAGE  # read from the store together, 256 KiB


@dataclass(frozen=True)
class Synopses:
    """The synopses of the released rounds of one store."""

    views: AnalystViews
    store: Store

    def pages(
        self, analyst: str, round_id: str, after_records: int
    ) -> Iterator[analyst_pb2.DownloadSynopsisResponse]:
        """Yield the synopsis's records after the first `after_records`, at most 4,096 a page.

        At most 65,536 records are held in memory.

        Raises:
            NotFound: the analyst has no share in the round.
            WrongState: the round's results cannot be read now, or its mechanism makes no synopsis.
            OutOfRange: `after_records` is beyond the end.
            DataLoss: the stored synopsis is not the one that was released.
        """
        record = self.views.get(analyst, round_id)
        # Analysts see RELEASED only from the release time on, so the synopsis opens when the streams do.
        if record.state is not RoundState.RELEASED:
            raise WrongState(
                "the round has no synopsis that can be read now: it is not released yet, or there is none"
            )
        stored_bytes = self._length(round_id)
        with self.store.read() as connection:
            # The records are of the version that the round was about, whichever came after it.
            sizes = dataset_of(connection, record).schema.sizes
            check_synopsis(connection, round_id)
        each = record_bytes(sizes)
        total = stored_bytes // each
        if not total:
            problem = f"the mechanism {record.plan.mechanism} makes none; equilibrium, pooled and standing make one"
            raise WrongState(f"the round has no synopsis: {problem}")
        if not 0 <= after_records <= total:
            raise OutOfRange(f"after_records: the synopsis ends at {total}")
        for first in range(after_records, total, RECORDS_AT_ONCE):
            # Nothing stays open between parts, so a reader that stops reading costs the memory of one part only.
            read = min(RECORDS_AT_ONCE, total - first)
            synopsis = Synopsis.from_bytes(self._stored(round_id, first, read, each), sizes)
            for start in range(0, read, RECORDS_A_MESSAGE):
                yield synopsis_part_to_message(SynopsisPart(synopsis.part(start, start + RECORDS_A_MESSAGE), total))

    def _length(self, round_id: str) -> int:
        with self.store.read() as connection:
            run_id = connection.execute(select(rounds.c.run_id).where(rounds.c.id == round_id)).scalar_one()
            if run_id is None:
                raise WrongState("the round's results are no longer kept")
            query = select(func.length(synopses.c.cells)).where(synopses.c.run_id == run_id)
            stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            raise DataLoss("the round's synopsis is not in the store")
        return int(stored)

    def _stored(self, round_id: str, first: int, count: int, each: int) -> bytes:
        some = func.substr(synopses.c.cells, 1 + each * first, each * count)
        query = select(some).join(rounds, rounds.c.run_id == synopses.c.run_id).where(rounds.c.id == round_id)
        with self.store.read() as connection:
            stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            raise WrongState("the round's results are no longer kept")
        return bytes(stored)
