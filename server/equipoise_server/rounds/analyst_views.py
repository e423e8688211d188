"""What analysts see of their rounds: the rounds themselves, their results, and what they can verify them with.

Whatever is answered here depends on the caller's own share, workload and requests, and on public things.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlalchemy import ColumnElement, select, true

from equipoise.errors import WrongState
from equipoise.model.rounds import RoundState
from equipoise_server.clock import Clock
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import shown_to_analysts, streams_open
from equipoise_server.rounds.store.committed_content import CheckedStreams
from equipoise_server.rounds.store.rounds import (
    check_token,
    has_share,
    newest_first,
    read_own_round,
    round_records,
)
from equipoise_server.storage.paging import cut_page, page_limit
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import rounds, shares
from equipoise_server.transparency.evidence import evidence_of, workload_piece
from equipoise_server.transparency.signing import Signer


@dataclass(frozen=True)
class AnalystViews:
    """What analysts may read of the rounds of one store."""

    store: Store
    clock: Clock
    signer: Signer
    deployment: str
    streams: CheckedStreams = field(default_factory=CheckedStreams)

    def get(self, analyst: str, round_id: str) -> RoundRecord:
        """A round as the analyst may see it. Raises `NotFound` where it has no share."""
        with self.store.read() as connection:
            return self._shown(read_own_round(connection, round_id, analyst))

    def shares_in(self, analyst: str, dataset: str) -> bool:
        """Whether the analyst has a share in any round on a dataset."""
        with self.store.read() as connection:
            return has_share(connection, dataset, analyst)

    def page(
        self, analyst: str, page_size: int = 0, page_token: str = "", among: ColumnElement[bool] | None = None
    ) -> tuple[list[RoundRecord], str]:
        """The rounds in which the analyst has a share, newest first; of all rounds, or of some."""
        limit = page_limit(page_size)
        with self.store.read() as connection:
            check_token(connection, page_token, analyst)
            query = newest_first(page_token, limit + 1).where(
                rounds.c.id.in_(select(shares.c.round_id).where(shares.c.analyst == analyst)),
                true() if among is None else among,
            )
            records = round_records(connection, query, analyst)
        return cut_page(list(map(self._shown, records)), limit, lambda record: record.id)

    def results(self, analyst: str, round_id: str, after_sequence: int, limit: int) -> list[bytes]:
        """At most `limit` stored chunks after a sequence number; none at the end of the stream.

        Raises `NotFound` without a share, and where the analyst submitted nothing and so has no stream;
        `WrongState` before the streams open, or when they are no longer kept; `OutOfRange` beyond the end;
        `DataLoss` where the stored stream is not the one that was released.
        """
        released = select(rounds.c.run_id).where(rounds.c.id == round_id)
        with self.store.read() as connection:
            record = read_own_round(connection, round_id, analyst)
            if not streams_open(record.state, record.release_time, self.clock()):
                raise WrongState(
                    "the round has no results that can be read now: they are not released yet, or there are none"
                )
            run_id = connection.execute(released).scalar_one()
            if run_id is None:
                raise WrongState("the round's results are no longer kept")
            return self.streams.page(connection, round_id, run_id, analyst, after_sequence, limit)

    def evidence(self, analyst: str, round_id: str, since_size: int) -> bytes | None:
        """What the analyst can verify an ended round with, JSON; None while the log has not come to its end.

        `since_size`: of a checkpoint that the analyst holds, 0 for none. Raises `NotFound` without a share,
        `WrongState` before results can be read or the round was aborted, `OutOfRange` for a size never shown.
        """
        # RELEASED is shown to analysts from the release time on: evidence opens when the streams do.
        if not self.get(analyst, round_id).state.ended:
            raise WrongState("the round has not ended; it can be verified when it has")
        with self.store.read() as connection:
            proof = evidence_of(connection, self.signer, self.deployment, analyst, round_id, since_size)
        return None if proof is None else proof.to_bytes()

    def submitted(self, analyst: str, round_id: str, first: int, length: int) -> bytes:
        """Some bytes of the analyst's own workload; none beyond its end, and where there is none."""
        with self.store.read() as connection:
            return workload_piece(connection, analyst, round_id, first, length)

    def _shown(self, record: RoundRecord) -> RoundRecord:
        state = shown_to_analysts(record.state, record.terms.close_time, record.release_time, self.clock())
        return replace(
            record, state=state, release_time=record.release_time if state is RoundState.RELEASED else None
        )
