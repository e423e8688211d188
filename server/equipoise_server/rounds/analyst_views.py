"""The analysts' views of rounds: the rounds themselves, their results, and the evidence that verifies the results.

Every answer depends only on the caller's own share, workload and requests, and on public facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import ColumnElement, select, true

from equipoise.errors import Unavailable, WrongState
from equipoise.model.rounds import RoundState
from equipoise_server.rounds.clock_watch import UNTRUSTED, ClockWatch
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.state_machine import shown_to_analysts, streams_open
from equipoise_server.rounds.store.committed_content import CheckedStreams, WorkloadCheck, workload_check
from equipoise_server.rounds.store.rounds import (
    check_token,
    newest_first,
    read_own_round,
    round_records,
    shared_version,
)
from equipoise_server.storage.paging import cut_page, page_limit
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import rounds, shares
from equipoise_server.transparency.admitted_losses import admitted_losses
from equipoise_server.transparency.evidence import evidence_of, workload_piece
from equipoise_server.transparency.signing import Signer


@dataclass(frozen=True)
class AnalystViews:
    """The analysts' views of the rounds of one store. What waits for its time waits for one that `watch` trusts."""

    store: Store
    watch: ClockWatch
    signer: Signer
    deployment: str
    streams: CheckedStreams = field(default_factory=CheckedStreams)

    def get(self, analyst: str, round_id: str) -> RoundRecord:
        """Return a round as the analyst may see it. Raises `NotFound` where the analyst has no share in it."""
        with self.store.read() as connection:
            record = read_own_round(connection, round_id, analyst)
            return _for_analysts(record, self.watch.read(connection).reached)

    def dataset(self, analyst: str, name: str, version: int = 0) -> DatasetRecord:
        """Return a version of a dataset, if a round is about it in which the analyst has a share; 0: the newest.

        Without its account, which has the name of another dataset, in which the analyst may have no share. Raises
        `NotFound`.
        """
        with self.store.read() as connection:
            return replace(shared_version(connection, name, version, analyst), account="")

    def page(
        self, analyst: str, page_size: int = 0, page_token: str = "", among: ColumnElement[bool] | None = None
    ) -> tuple[list[RoundRecord], str]:
        """Return a page of the rounds in which the analyst has a share, newest first.

        Args:
            analyst: the analyst's name.
            page_size: the number of rounds of a page; 0 stands for the default.
            page_token: the token that came with the page before; empty for the first page.
            among: a condition that rounds must meet; None for all rounds.

        Returns:
            The rounds, and the token of the next page, which is empty on the last page.
        """
        limit = page_limit(page_size)
        with self.store.read() as connection:
            check_token(connection, page_token, analyst)
            query = newest_first(page_token, limit + 1).where(
                rounds.c.id.in_(select(shares.c.round_id).where(shares.c.analyst == analyst)),
                true() if among is None else among,
            )
            reached = self.watch.read(connection).reached
            shown = [_for_analysts(record, reached) for record in round_records(connection, query, analyst)]
        return cut_page(shown, limit, lambda record: record.id)

    def results(self, analyst: str, round_id: str, after_sequence: int, limit: int) -> list[bytes]:
        """Return at most `limit` stored chunks after a sequence number; none at the end of the stream.

        Raises:
            NotFound: the analyst has no share, or submitted no workload and so has no stream.
            WrongState: the streams are not open yet, or are no longer kept.
            OutOfRange: `after_sequence` is beyond the end of the stream.
            Unavailable: the clock is not trusted now, so nobody can say whether the streams are open.
            DataLoss: the stored stream is not the one that was released.
        """
        released = select(rounds.c.run_id).where(rounds.c.id == round_id)
        with self.store.read() as connection:
            record = read_own_round(connection, round_id, analyst)
            reading = self.watch.read(connection)
            if not streams_open(record.state, record.release_time, reading.reached):
                if reading.problem is not None:
                    raise Unavailable(UNTRUSTED)  # whatever the state: whether a run has ended is not told yet
                raise WrongState(
                    "the round has no results that can be read now: they are not released yet, or there are none"
                )
            run_id = connection.execute(released).scalar_one()
            if run_id is None:
                raise WrongState("the round's results are no longer kept")
            return self.streams.page(connection, round_id, run_id, analyst, after_sequence, limit)

    def evidence(self, analyst: str, round_id: str, since_size: int) -> bytes | None:
        """Return the evidence with which the analyst can verify an ended round, as JSON.

        Args:
            analyst: the analyst's name.
            round_id: the round's id.
            since_size: the log size of a checkpoint that the analyst holds; 0 for none.

        Returns:
            The evidence; None while the log does not contain the end of the round yet.

        Raises:
            NotFound: the analyst has no share in the round.
            WrongState: the round was not aborted, and its results cannot be read yet.
            OutOfRange: no checkpoint of that size was ever shown.
        """
        self._check_ended(analyst, round_id)
        with self.store.read() as connection:
            proof = evidence_of(connection, self.signer, self.deployment, analyst, round_id, since_size)
        return None if proof is None else proof.to_bytes()

    def losses(self, analyst: str, round_id: str) -> bytes | None:
        """Return what the log admits to be lost, as JSON; None where no checkpoint is signed yet.

        Args:
            analyst: the analyst's name.
            round_id: a round in which it has a share.

        Raises:
            NotFound: the analyst has no share in the round.
            WrongState: the round has not ended.
        """
        self._check_ended(analyst, round_id)
        with self.store.read() as connection:
            shown = admitted_losses(connection, self.signer, self.deployment)
        return None if shown is None else shown.to_bytes()

    def submitted(self, analyst: str, round_id: str, first: int, length: int) -> bytes:
        """Return `length` bytes of the analyst's own workload from the byte `first` on.

        Fewer bytes are returned at the end of the workload, and none beyond it or where there is no workload.
        """
        with self.store.read() as connection:
            return workload_piece(connection, analyst, round_id, first, length)

    def workload_check(self, analyst: str, round_id: str) -> WorkloadCheck:
        """Return the check that all pieces of `submitted` together must pass. Raises `DataLoss`."""
        with self.store.read() as connection:
            return workload_check(connection, round_id, analyst)

    def _check_ended(self, analyst: str, round_id: str) -> None:
        """Analysts see RELEASED only from the release time on, so evidence opens when the streams do."""
        if not self.get(analyst, round_id).state.ended:
            raise WrongState("the round has not ended; it can be verified when it has")


def _for_analysts(record: RoundRecord, now: datetime) -> RoundRecord:
    state = shown_to_analysts(record.state, record.terms.close_time, record.release_time, now)
    return replace(record, state=state, release_time=record.release_time if state is RoundState.RELEASED else None)
