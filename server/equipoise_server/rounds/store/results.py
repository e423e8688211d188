"""What runs compute, kept in the store while they compute it, and seen by nobody before the release.

So neither the server nor its worker ever holds all the messages of a round, and a run that has been completed is
never computed again. Of a run that was cut off nothing is used: the next one begins anew, with the same seed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, exists, select, union

from equipoise.errors import DataLoss, WrongState
from equipoise.model.synopsis import Synopsis
from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise_server.clock import Clock
from equipoise_server.computation.streams import StreamDigest
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.operations import committing
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import (
    measurements,
    result_chunks,
    rounds,
    runs,
    stream_digests,
    synopses,
)
from equipoise_server.storage.tables.session import asked
from equipoise_server.storage.tables.transparency import records

ID_BYTES = 16


class RunDiscarded(Exception):
    """The run is gone: its round was aborted meanwhile, or another server's run of the round was released."""


@dataclass(frozen=True)
class Runs:
    """The stored results of runs. Synchronous and safe to use from several threads."""

    store: Store
    clock: Clock

    def begin(self, round_id: str) -> str:
        """Return the id of a fresh run; what unfinished runs of the round left behind is removed."""
        run_id = os.urandom(ID_BYTES).hex()
        with self.store.write() as connection:
            unfinished = (runs.c.round_id == round_id) & runs.c.complete_time.is_(None)
            _remove(connection, list(connection.execute(select(runs.c.id).where(unfinished)).scalars()))
            row = {"id": run_id, "round_id": round_id, "start_time": to_microseconds(self.clock())}
            connection.execute(runs.insert().values(peak_memory_bytes=0, **row))
        return run_id

    def keep(self, run_id: str, analyst: str, first_sequence: int, chunks: Sequence[bytes]) -> None:
        """Keep the next messages of one stream, exactly as they will be delivered. Raises `RunDiscarded`."""
        rows = [
            {"run_id": run_id, "analyst": analyst, "sequence": sequence, "chunk": chunk}
            for sequence, chunk in enumerate(chunks, start=first_sequence)
        ]
        with self.store.write() as connection:
            _require(connection, run_id)
            connection.execute(result_chunks.insert(), rows)
        reached(CrashPoint.RESULTS_PART_COMMITTED)

    def complete(
        self,
        run_id: str,
        synopsis: Synopsis,
        streams: Mapping[str, StreamDigest],
        peak_memory_bytes: int,
        measured: bytes = b"",
    ) -> None:
        """Keep the synopsis, the streams' digests and what was measured, and say that all messages are there.

        Raises `RunDiscarded`.
        """
        rows = [
            {
                "run_id": run_id,
                "analyst": analyst,
                "digest": stream.digest,
                "messages": stream.messages,
                "queries": stream.queries,
            }
            for analyst, stream in streams.items()
        ]
        with committing(self.store, "results") as connection:
            _require(connection, run_id)
            if rows:
                connection.execute(stream_digests.insert(), rows)
            connection.execute(synopses.insert().values(run_id=run_id, cells=synopsis.to_bytes()))
            if measured:
                connection.execute(measurements.insert().values(run_id=run_id, numbers=measured))
            values = {"complete_time": to_microseconds(self.clock()), "peak_memory_bytes": peak_memory_bytes}
            connection.execute(runs.update().where(runs.c.id == run_id).values(values))


def read_synopsis(connection: Connection, round_id: str) -> bytes:
    """Return the synopsis of a released round as it is stored; empty where the mechanism makes none.

    Raises `DataLoss` where it is not there.
    """
    query = select(synopses.c.cells).join(rounds, rounds.c.run_id == synopses.c.run_id)
    cells = connection.execute(query.where(rounds.c.id == round_id)).scalar_one_or_none()
    if cells is None:
        raise DataLoss("the round's synopsis is not in the store")
    return bytes(cells)


def read_measured(connection: Connection, round_id: str) -> bytes:
    """Return the numbers that a released measurement has measured; empty of any other round."""
    query = select(measurements.c.numbers).join(rounds, rounds.c.run_id == measurements.c.run_id)
    return bytes(connection.execute(query.where(rounds.c.id == round_id)).scalar_one_or_none() or b"")


def read_stream_digests(connection: Connection, round_id: str) -> dict[str, StreamDigest]:
    """Return the digest of every stream of a released round, by analyst."""
    query = select(stream_digests).join(rounds, rounds.c.run_id == stream_digests.c.run_id)
    digests = connection.execute(query.where(rounds.c.id == round_id))
    return {row.analyst: StreamDigest(row.digest, row.messages, row.queries) for row in digests}


def completed(connection: Connection, round_id: str) -> tuple[str, int] | None:
    """Return the round's completed run and the peak memory of its worker in bytes, or None."""
    row = connection.execute(
        select(runs.c.id, runs.c.peak_memory_bytes).where(
            runs.c.round_id == round_id, runs.c.complete_time.is_not(None)
        )
    ).first()
    return None if row is None else (row.id, row.peak_memory_bytes)


def completed_run(connection: Connection, round_id: str) -> tuple[str, int]:
    """Return the completed run as `completed` does. Raises `WrongState` without one."""
    run = completed(connection, round_id)
    if run is None:
        raise WrongState("the round has not been computed yet")
    return run


def discard(connection: Connection, round_id: str, but: str = "") -> None:
    """Remove what was computed for a round that will not be released; or all runs of one that is, but one.

    Two servers may have computed one round at the same time. A run that goes on finds that it is gone.

    Args:
        connection: in the transaction of the step.
        round_id: the round.
        but: the run that is kept; empty: none.
    """
    unwanted = (runs.c.round_id == round_id) & (runs.c.id != but)
    _remove(connection, list(connection.execute(select(runs.c.id).where(unwanted)).scalars()))


def kept_since_before(connection: Connection, time: datetime) -> list[str]:
    """Return the rounds whose results are still kept, and could be read before a time already.

    For an aborted session, results are the answers it had already given. What was measured for all later rounds is
    kept for ever.
    """
    stands = exists().where(measurements.c.run_id == rounds.c.run_id)
    old = rounds.c.run_id.is_not(None) & (rounds.c.release_time < to_microseconds(time)) & ~stands
    aborted = (
        (records.c.kind == Kind.ROUND_ABORTED.value)
        & (records.c.publish_time < to_microseconds(time))
        & exists().where(asked.c.round_id == records.c.round_id)
    )
    expired = union(select(rounds.c.id).where(old), select(records.c.round_id).where(aborted))
    return list(connection.execute(expired).scalars())


def has_results(connection: Connection, round_id: str) -> bool:
    """Return whether a released round's results are still there."""
    return connection.execute(select(rounds.c.run_id).where(rounds.c.id == round_id)).scalar_one() is not None


def expire(connection: Connection, round_id: str) -> None:
    """Remove the results of a round that has ended. What it was charged stays, of course."""
    query = select(rounds.c.run_id).where(rounds.c.id == round_id).with_for_update()
    run_id = connection.execute(query).scalar_one()
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(run_id=None))
    connection.execute(asked.delete().where(asked.c.round_id == round_id))
    if run_id is not None:
        _remove(connection, [run_id])


def _require(connection: Connection, run_id: str) -> None:
    """Lock the run against its removal until the transaction ends. Raises `RunDiscarded` if it is gone."""
    if connection.execute(select(runs.c.id).where(runs.c.id == run_id).with_for_update()).first() is None:
        raise RunDiscarded


def _remove(connection: Connection, run_ids: list[str]) -> None:
    for results in (result_chunks, stream_digests, synopses, measurements):
        connection.execute(results.delete().where(results.c.run_id.in_(run_ids)))
    connection.execute(runs.delete().where(runs.c.id.in_(run_ids)))
