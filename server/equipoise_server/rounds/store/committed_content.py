"""What the store holds of a round, compared with what was put on record of it, before anybody is given it.

Workloads, results and synopses are kept beside the records that commit to them. A store that was damaged or changed
must not make the server deliver another number than was released, or compute from another workload than was sealed.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from sqlalchemy import Connection, select

from equipoise.errors import NotFound, OutOfRange
from equipoise.model.rounds import GRANT
from equipoise.records.item_parts import RecordedStream
from equipoise.records.items import ReleaseItem, ResultItem, WorkloadItem
from equipoise.records.record import (
    Kind,
    stream_start,
    stream_step,
    synopsis_digest,
    workload_commitment,
    workload_prefix,
)
from equipoise_server.rounds.store.datasets import all_versions, dataset_of, dataset_record, read_dataset
from equipoise_server.rounds.store.opened_terms import check_life, check_opened, check_registered
from equipoise_server.rounds.store.paid_statements import reads_wanted
from equipoise_server.rounds.store.recorded_steps import check_digests, check_steps, check_submissions
from equipoise_server.rounds.store.results import read_measured, read_synopsis
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.store.stored_records import damaged, read_record
from equipoise_server.rounds.store.told_answers import check_answers
from equipoise_server.storage.tables.round import dataset_versions, datasets, result_chunks, rounds, submissions
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.record_writer import find_root

STREAMS_KNOWN = 64  # whose messages' digests are held in memory: 100 bytes or so for each message


class CheckedStreams:
    """Reads streams of results, of which each message is checked against the release. Safe to use from threads.

    A stream is read to its end before its first message is given, and what its messages chain to is held for the
    pages after it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chains: OrderedDict[tuple[str, str], list[bytes]] = OrderedDict()

    def page(
        self, connection: Connection, round_id: str, run_id: str, analyst: str, after: int, limit: int
    ) -> list[bytes]:
        """Return at most `limit` messages after a sequence number; none at the end of the stream.

        Raises:
            NotFound: The analyst has no stream.
            OutOfRange: The stream ends before.
            DataLoss: What is stored is not what was released.
        """
        with self._lock:
            chain = self._chains.get((run_id, analyst))
        if chain is None:
            chain = checked_chain(connection, round_id, run_id, analyst)
        if not 0 <= after < len(chain):
            raise OutOfRange(f"after_sequence: the stream ends at {len(chain) - 1}")
        own = (result_chunks.c.run_id == run_id, result_chunks.c.analyst == analyst)
        query = select(result_chunks.c.sequence, result_chunks.c.chunk).where(
            *own, result_chunks.c.sequence > after
        )
        rows = connection.execute(query.order_by(result_chunks.c.sequence).limit(limit)).all()
        digest = chain[after]
        for sequence, row in enumerate(rows, start=after + 1):
            digest = stream_step(digest, row.chunk)
            if row.sequence != sequence or sequence >= len(chain) or digest != chain[sequence]:
                damaged(round_id, "results")
        if len(rows) < min(limit, len(chain) - 1 - after):
            damaged(round_id, "results")
        with self._lock:
            self._chains[run_id, analyst] = chain
            self._chains.move_to_end((run_id, analyst))
            while len(self._chains) > STREAMS_KNOWN:
                self._chains.popitem(last=False)
        return [row.chunk for row in rows]


def checked_chain(connection: Connection, round_id: str, run_id: str, analyst: str) -> list[bytes]:
    """Return what each message of a stream chains to, the start first. Raises `NotFound`, `DataLoss`.

    Args:
        connection: to the store.
        round_id: the round or session.
        run_id: the run that is released.
        analyst: whose stream it is.

    Returns:
        The digests, 32 bytes each; one more than there are messages.

    Raises:
        NotFound: the analyst has no stream.
        DataLoss: what is stored is not what is on record.
    """
    own = (result_chunks.c.run_id == run_id, result_chunks.c.analyst == analyst)
    query = select(result_chunks.c.sequence, result_chunks.c.chunk).where(*own).order_by(result_chunks.c.sequence)
    chain = [stream_start(round_id)]
    for row in connection.execution_options(yield_per=64).execute(query):
        if row.sequence != len(chain):
            damaged(round_id, "results")
        chain.append(stream_step(chain[-1], row.chunk))
    released = _recorded_stream(connection, round_id, analyst)
    if released is None and len(chain) == 1:
        raise NotFound("there is no such stream")
    if released is None or (released.digest, released.messages) != (chain[-1], len(chain) - 1):
        damaged(round_id, "results")
    return chain


def check_synopsis(connection: Connection, round_id: str) -> None:
    """Raise `DataLoss` unless the stored synopsis of a released round is the one that was released."""
    cells = read_synopsis(connection, round_id)
    released = read_record(connection, Kind.ROUND_RELEASED, round_id).one(ReleaseItem).synopsis
    if (synopsis_digest(cells) if cells else None) != (released.digest if released else None):
        damaged(round_id, "synopsis")


def checked_measured(connection: Connection, round_id: str) -> bytes:
    """Return the numbers that a released measurement has measured; empty of any other round.

    Raises `DataLoss` unless they are those that were released.
    """
    numbers = read_measured(connection, round_id)
    released = read_record(connection, Kind.ROUND_RELEASED, round_id).one(ReleaseItem).measurement
    if (hashlib.sha256(numbers).digest() if numbers else None) != released:
        damaged(round_id, "numbers")
    return numbers


def check_workloads(connection: Connection, round_id: str) -> None:
    """Raise `DataLoss` unless the stored workloads of a sealed round are those that were sealed, all of them."""
    query = select(submissions.c.analyst, submissions.c.salt, submissions.c.workload)
    stored = {
        row.analyst: workload_commitment(row.salt, row.workload)
        for row in connection.execute(query.where(submissions.c.round_id == round_id))
    }
    sealed = [item for item in read_record(connection, Kind.ROUND_SEALED, round_id).each(WorkloadItem) if item]
    for item in sealed:
        if stored.pop(item.analyst, None) != item.commitment:
            damaged(round_id, "workloads")
    if stored:
        damaged(round_id, "workloads")


class WorkloadCheck:
    """Checks the stored workload of one analyst, which is read piece by piece.

    `committed`: the SHA-256 of `prefix` and all pieces; None where there must be no workload.
    """

    def __init__(self, round_id: str, prefix: bytes, committed: bytes | None) -> None:
        self._round_id, self._committed = round_id, committed
        self._hash = hashlib.sha256(prefix)
        self._any = False

    def take(self, piece: bytes) -> None:
        """Take the next piece of the workload."""
        self._hash.update(piece)
        self._any = True

    def end(self) -> None:
        """Raise `DataLoss` unless the pieces were the whole workload that is committed to."""
        if (self._hash.digest() if self._any else None) != self._committed:
            damaged(self._round_id, "workloads")


def workload_check(connection: Connection, round_id: str, analyst: str) -> WorkloadCheck:
    """Return the check of an analyst's stored workload: against the record of the sealing, once there is one.

    Before, there is no record of workloads, and the workload is compared with the digest that is kept beside it.

    Args:
        connection: to the store.
        round_id: the round or session.
        analyst: whose workload it is.

    Raises:
        DataLoss: The record of the sealing is damaged.
    """
    own = (submissions.c.round_id == round_id) & (submissions.c.analyst == analyst)
    row = connection.execute(select(submissions.c.salt, submissions.c.digest).where(own)).first()
    if find_root(connection, Kind.ROUND_SEALED, round_id=round_id) is None:
        return WorkloadCheck(round_id, b"", None if row is None else row.digest)
    items = read_record(connection, Kind.ROUND_SEALED, round_id).each(WorkloadItem)
    sealed = next((item.commitment for item in items if item is not None and item.analyst == analyst), None)
    return WorkloadCheck(round_id, b"" if row is None else workload_prefix(row.salt), sealed)


def check_all(connection: Connection) -> int:
    """Check what is stored of all datasets and rounds; returns how many rounds were sealed. Raises `DataLoss`."""
    for row in connection.execute(all_versions().order_by(datasets.c.name, dataset_versions.c.version)).all():
        check_registered(connection, dataset_record(row))
    for name in connection.execute(select(datasets.c.name).order_by(datasets.c.name)).scalars().all():
        check_life(connection, read_dataset(connection, name))
    for round_id in connection.execute(select(rounds.c.id).order_by(rounds.c.position)).scalars().all():
        record = read_round(connection, round_id)
        check_opened(connection, record)
        check_steps(connection, record)
        check_submissions(connection, record)
        is_grant = record.terms.mechanism == GRANT
        paid = reads_wanted(record, dataset_of(connection, record)) if is_grant else None
        check_answers(connection, round_id, is_session=record.terms.session is not None, paid=paid)
    sealed = select(records.c.round_id).where(records.c.kind == Kind.ROUND_SEALED.value).distinct()
    query = select(rounds.c.id, rounds.c.run_id).where(rounds.c.id.in_(sealed))
    found = connection.execute(query.order_by(rounds.c.position)).all()
    for row in found:
        check_workloads(connection, row.id)
        if row.run_id is None:
            continue
        check_digests(connection, row.id)
        check_synopsis(connection, row.id)
        checked_measured(connection, row.id)
        having = select(result_chunks.c.analyst).where(result_chunks.c.run_id == row.run_id).distinct()
        for item in read_record(connection, Kind.ROUND_RELEASED, row.id).each(ResultItem):
            if item is not None and item.stream is not None:
                checked_chain(connection, row.id, row.run_id, item.analyst)
        for analyst in connection.execute(having).scalars().all():
            checked_chain(connection, row.id, row.run_id, analyst)
    return len(found)


def _recorded_stream(connection: Connection, round_id: str, analyst: str) -> RecordedStream | None:
    for item in read_record(connection, Kind.ROUND_RELEASED, round_id).each(ResultItem):
        if item is not None and item.analyst == analyst:
            return item.stream
    return None
