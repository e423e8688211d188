"""The analysts' side of a round: submitting, trying out, seeing the round, reading results.

Whatever is answered here depends on the caller's own share, workload and requests, and on public things.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import ColumnElement, Connection, func, select, true

from equipoise.errors import InvalidArgument, NotFound, OutOfRange, WrongState
from equipoise.model.rounds import RoundState, Share
from equipoise.model.share_limits import check_allowance
from equipoise.model.submissions import DryRun, Receipt
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.queries.workload_compiler import compile_workload
from equipoise.records.receipts import RECEIPT_TYPE, ReceiptPayload
from equipoise.records.record import SALT_BYTES, workload_commitment
from equipoise.wire.workloads import workload_from_bytes
from equipoise_server.clock import Clock
from equipoise_server.mechanisms.registry import check_workload
from equipoise_server.rounds.receipts import signed
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import closed, shown_to_analysts, streams_open
from equipoise_server.rounds.store.rounds import (
    NO_ROUND,
    check_token,
    newest_first,
    read_dataset,
    read_round,
    read_share,
    round_records,
)
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.idempotency import Request, first_answer, keep_answer, last_time, make_request
from equipoise_server.storage.paging import cut_page, page_limit
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables import result_chunks, rounds, shares, submissions
from equipoise_server.transparency.signing import Signer

log = structlog.get_logger(__name__)

CLOSED = "the round no longer accepts workloads"


@dataclass(frozen=True)
class Submissions:
    """What analysts may do in the rounds of one store."""

    store: Store
    clock: Clock
    signer: Signer
    deployment: str

    def submit(self, analyst: str, round_id: str, request_id: str, workload: bytes, salt: bytes) -> Receipt:
        """Accept or replace the analyst's workload.

        The salt is no part of the request: who sends it again after a crash has drawn another, and gets the receipt
        with the first one.
        """
        digest = hashlib.sha256(workload).digest()
        request = make_request(f"analyst/{analyst}", request_id, "submit", round_id, digest)
        with self.store.read() as connection:
            share, record = self._open_to(connection, analyst, round_id, request, locked=False)
            if isinstance(record, Receipt):
                return record
            schema = read_dataset(connection, record.terms.dataset).schema
        if len(salt) != SALT_BYTES:
            raise InvalidArgument("commitment_salt", f"must have {SALT_BYTES} random bytes")
        # Compiling takes long and needs no connection, so nobody else waits for it.
        compiled = compile_workload(workload_from_bytes(workload, share.statements), schema)
        check_allowance(compiled, share)
        check_workload(record.plan, compiled)
        commitment = workload_commitment(salt, workload)
        with self.store.write() as connection:
            _, record = self._open_to(connection, analyst, round_id, request, locked=True)
            if isinstance(record, Receipt):
                return record
            statements, queries = compiled.statement_count, compiled.query_count
            now = self._time_after_all(connection, request)
            envelope = self._signed(connection, analyst, round_id, commitment, statements, queries, now)
            receipt = Receipt(round_id, digest, statements, queries, now, envelope, salt)
            # A crash before the commit means: the earlier workload, if any, still stands, and the same
            # request will be carried out. After it: the same request gets this receipt.
            _replace(connection, analyst, workload, receipt)
            keep_answer(connection, request, _receipt_to_json(receipt), receipt.accept_time)
            reached(CrashPoint.SUBMIT_WRITTEN)
        reached(CrashPoint.SUBMIT_COMMITTED)
        return receipt

    def withdraw(self, analyst: str, round_id: str, request_id: str) -> bytes:
        """Take the analyst's workload back, while the round still accepts workloads; a signed receipt of that.

        Raises `NotFound` without a share or a workload, `WrongState` when sealed.
        """
        request = make_request(f"analyst/{analyst}", request_id, "withdraw", round_id)
        with self.store.write() as connection:
            read_share(connection, round_id, analyst)
            if (known := first_answer(connection, request)) is not None:
                return known.encode()
            self._check_open(read_round(connection, round_id, locked=True))
            mine = (submissions.c.round_id == round_id) & (submissions.c.analyst == analyst)
            if connection.execute(submissions.delete().where(mine)).rowcount == 0:
                raise NotFound("there is no workload of yours in this round")
            now = self._time_after_all(connection, request)
            envelope = self._signed(connection, analyst, round_id, None, 0, 0, now)
            keep_answer(connection, request, envelope.decode(), now)
            reached(CrashPoint.WITHDRAWAL_WRITTEN)
        reached(CrashPoint.WITHDRAWAL_COMMITTED)
        return envelope

    def dry_run(self, analyst: str, round_id: str, workload: bytes) -> DryRun:
        """Check a workload as `submit` does, and leave no trace."""
        with self.store.read() as connection:
            share = read_share(connection, round_id, analyst)
            record = read_round(connection, round_id)
            self._check_open(record)
            schema = read_dataset(connection, record.terms.dataset).schema
        compiled = compile_workload(workload_from_bytes(workload, share.statements), schema)
        check_allowance(compiled, share)
        plan = record.plan
        check_workload(plan, compiled)
        return DryRun(
            compiled.statement_count,
            compiled.query_count,
            plan.promised_error,
            plan.uncertified_at_most,
            compiled.l1_sensitivity,
            compiled.support,
        )

    def get(self, analyst: str, round_id: str) -> RoundRecord:
        """A round as the analyst may see it. Raises `NotFound` where it has no share."""
        with self.store.read() as connection:
            share = read_share(connection, round_id, analyst)
            return self._shown(read_round(connection, round_id), share)

    def page(
        self, analyst: str, page_size: int, page_token: str, among: ColumnElement[bool] | None = None
    ) -> tuple[list[RoundRecord], str]:
        """The rounds in which the analyst has a share, newest first; of all rounds, or of some."""
        limit = page_limit(page_size)
        with self.store.read() as connection:
            check_token(connection, page_token, analyst)
            query = newest_first(page_token, limit + 1).where(
                rounds.c.id.in_(select(shares.c.round_id).where(shares.c.analyst == analyst)),
                true() if among is None else among,
            )
            found = round_records(connection, query)
        visible = [self._shown(record, _own(record, analyst)) for record in found]
        return cut_page(visible, limit, lambda record: record.id)

    def results(self, analyst: str, round_id: str, after_sequence: int, limit: int) -> list[bytes]:
        """At most `limit` stored chunks after a sequence number; none at the end of the stream.

        Raises `NotFound` without a share, and where the analyst submitted nothing and so has no stream;
        `WrongState` before the streams open, or when they are no longer kept; `OutOfRange` beyond the end.
        """
        released = select(rounds.c.run_id).where(rounds.c.id == round_id)
        with self.store.read() as connection:
            read_share(connection, round_id, analyst)
            record = read_round(connection, round_id)
            if not streams_open(record.state, record.release_time, self.clock()):
                raise WrongState("the round's results cannot be read yet, or there are none")
            run_id = connection.execute(released).scalar_one()
            if run_id is None:
                raise WrongState("the round's results are no longer kept")
            mine = (result_chunks.c.run_id == run_id, result_chunks.c.analyst == analyst)
            last = connection.execute(select(func.max(result_chunks.c.sequence)).where(*mine)).scalar()
            if last is None:
                raise NotFound("there is no such stream")
            if not 0 <= after_sequence <= last:
                raise OutOfRange(f"after_sequence: the stream ends at {last}")
            query = select(result_chunks.c.chunk).where(*mine, result_chunks.c.sequence > after_sequence)
            found = connection.execute(query.order_by(result_chunks.c.sequence).limit(limit))
            return list(found.scalars())

    def _open_to(
        self, connection: Connection, analyst: str, round_id: str, request: Request, *, locked: bool
    ) -> tuple[Share, RoundRecord | Receipt]:
        """The round, if it takes workloads of the analyst; or the receipt this request got before."""
        share = read_share(connection, round_id, analyst)
        if (known := first_answer(connection, request)) is not None:
            return share, _receipt_from_json(known)
        record = read_round(connection, round_id, locked=locked)
        self._check_open(record)
        return share, record

    def _time_after_all(self, connection: Connection, request: Request) -> datetime:
        """Now, but after everything else that this analyst has asked for, also where the clock was set back.

        The newest receipt counts, so no two of one analyst's may have one time.
        """
        now, last = self.clock(), last_time(connection, request.caller)
        return now if last is None else max(now, last + timedelta(microseconds=1))

    def _signed(
        self,
        connection: Connection,
        analyst: str,
        round_id: str,
        commitment: bytes | None,
        statements: int,
        queries: int,
        now: datetime,
    ) -> bytes:
        """A receipt's envelope: that this workload, or none, is in force from now on."""
        payload = ReceiptPayload(
            self.deployment, round_id, analyst, commitment, statements, queries, to_microseconds(now)
        )
        return signed(self.signer, connection, RECEIPT_TYPE, payload.to_bytes())

    def _check_open(self, record: RoundRecord) -> None:
        if record.terms.session is not None:
            raise WrongState("the round is a session: it takes no workloads, but one statement at a time")
        # Late is late, also where the server has not come to sealing the round yet.
        if record.state is not RoundState.OPEN or closed(record.terms.close_time, self.clock()):
            raise WrongState(CLOSED)

    def _shown(self, record: RoundRecord, share: Share) -> RoundRecord:
        state = shown_to_analysts(record.state, record.terms.close_time, record.release_time, self.clock())
        return replace(
            record,
            terms=replace(record.terms, shares=(share,)),
            state=state,
            release_time=record.release_time if state is RoundState.RELEASED else None,
        )


def _own(record: RoundRecord, analyst: str) -> Share:
    for share in record.terms.shares:
        if share.analyst == analyst:
            return share
    raise NotFound(NO_ROUND)


def _replace(connection: Connection, analyst: str, workload: bytes, receipt: Receipt) -> None:
    mine = (submissions.c.round_id == receipt.round_id, submissions.c.analyst == analyst)
    connection.execute(submissions.delete().where(*mine))
    connection.execute(
        submissions.insert().values(
            round_id=receipt.round_id,
            analyst=analyst,
            workload=workload,
            digest=receipt.workload_digest,
            statements=receipt.statements,
            queries=receipt.queries,
            accept_time=to_microseconds(receipt.accept_time),
            salt=receipt.salt,
            receipt=receipt.envelope,
        )
    )


def _receipt_to_json(receipt: Receipt) -> str:
    fields = {
        "round": receipt.round_id,
        "digest": receipt.workload_digest.hex(),
        "statements": receipt.statements,
        "queries": receipt.queries,
        "time": to_microseconds(receipt.accept_time),
        "envelope": receipt.envelope.decode(),
        "salt": receipt.salt.hex(),
    }
    return json.dumps(fields, sort_keys=True)


def _receipt_from_json(text: str) -> Receipt:
    fields: dict[str, Any] = json.loads(text)
    return Receipt(
        fields["round"],
        bytes.fromhex(fields["digest"]),
        fields["statements"],
        fields["queries"],
        from_microseconds(fields["time"]),
        fields["envelope"].encode(),
        bytes.fromhex(fields["salt"]),
    )
