"""Accepts the analysts' workloads, and lets analysts try, replace and withdraw them.

Every answer depends only on the caller's own share, workload and requests, and on public facts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from equipoise.errors import InvalidArgument, NotFound, Unavailable, WrongState
from equipoise.model.rounds import GRANT, MechanismPlan, RoundState
from equipoise.model.share_limits import check_allowance
from equipoise.model.submissions import DryRun, Receipt
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.records.merkle import HASH_BYTES
from equipoise.records.receipts import RECEIPT_TYPE, ReceiptPayload
from equipoise.records.record import SALT_BYTES, workload_commitment
from equipoise.wire.workloads import workload_from_bytes
from equipoise_server.mechanisms.registry import check_workload, session_mechanism
from equipoise_server.rounds.clock_watch import UNTRUSTED, ClockWatch
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import closed
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.rounds import read_own_round
from equipoise_server.rounds.store.step_records import recorded_promise
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import submissions
from equipoise_server.transparency.signing import Signer

CLOSED = "the round no longer accepts workloads"


@dataclass(frozen=True)
class Submissions:
    """The analysts' submissions to the rounds of one store."""

    operations: Operations
    signer: Signer
    deployment: str
    watch: ClockWatch

    def submit(
        self,
        analyst: str,
        round_id: str,
        request_id: str,
        workload: bytes,
        salt: bytes,
        questions: bytes | None = None,
    ) -> Receipt:
        """Accept a workload, or replace the analyst's earlier one, until the round is sealed.

        Args:
            analyst: the analyst's name.
            round_id: the round's id.
            request_id: makes the call safe to repeat.
            workload: the serialized workload.
            salt: 32 random bytes of the analyst, under which the workload is committed to. The salt is not compared
                when a request is repeated: a client that crashed has drawn another one, and gets the first receipt.
            questions: what commits under that salt to the questions that the workload was translated from, 32
                bytes, for the receipt. Nothing else is done with it, and it is not compared either.

        Returns:
            The receipt, with the salt in force.

        Raises:
            NotFound: the analyst has no share in the round.
            WrongState: the round is sealed, or is a session.
            InvalidArgument: a field of the workload is wrong, or the salt or `questions` has another length.
            BudgetExhausted: the workload exceeds the share.
            AlreadyExists: another request had the same id.
            Unavailable: the clock is not trusted now, so a receipt could have a wrong time.
        """
        digest = hashlib.sha256(workload).digest()
        request = make_request(f"analyst/{analyst}", request_id, "submit", round_id, digest)
        if (known := self.operations.answered(request, _receipt_from_json)) is not None:
            return known
        if len(salt) != SALT_BYTES:
            raise InvalidArgument("commitment_salt", f"must have {SALT_BYTES} random bytes")
        if questions is not None and len(questions) != HASH_BYTES:
            raise InvalidArgument("questions_commitment", f"must have {HASH_BYTES} bytes, or none")
        compiled, _ = self._checked(analyst, round_id, workload)
        commitment = workload_commitment(salt, workload)

        def work(connection: Connection, now: datetime) -> str:
            self._check_open(connection, read_own_round(connection, round_id, analyst, locked=True))
            statements, queries = compiled.statement_count, compiled.query_count
            about = (analyst, round_id, commitment, statements, queries)
            envelope = self._sign_receipt(connection, *about, now, questions)
            receipt = Receipt(round_id, digest, statements, queries, now, envelope, salt)
            _replace(connection, analyst, workload, receipt)
            return _receipt_to_json(receipt)

        return self.operations.accept(request, work, _receipt_from_json)

    def withdraw(self, analyst: str, round_id: str, request_id: str) -> bytes:
        """Withdraw the analyst's workload, and return a signed receipt of the withdrawal.

        Raises:
            NotFound: the analyst has no share in the round, or submitted no workload.
            WrongState: the round is sealed, or is a session.
            Unavailable: as `submit` raises.
        """

        def work(connection: Connection, now: datetime) -> str:
            self._check_open(connection, read_own_round(connection, round_id, analyst, locked=True))
            own = (submissions.c.round_id == round_id) & (submissions.c.analyst == analyst)
            if connection.execute(submissions.delete().where(own)).rowcount == 0:
                raise NotFound("you have submitted no workload to this round")
            return self._sign_receipt(connection, analyst, round_id, None, 0, 0, now, None).decode()

        request = make_request(f"analyst/{analyst}", request_id, "withdraw", round_id)
        return self.operations.accept(request, work, lambda _, kept: kept.encode())

    def dry_run(self, analyst: str, round_id: str, workload: bytes) -> DryRun:
        """Check a workload as `submit` does, or what a session would be asked, and store nothing. Raises alike."""
        compiled, plan = self._checked(analyst, round_id, workload, trial=True)
        return DryRun(
            compiled.statement_count,
            compiled.query_count,
            plan.max_half_width,
            plan.max_uncertified,
            compiled.l1_sensitivity,
            compiled.support,
            plan.expected_error,
        )

    def _checked(
        self, analyst: str, round_id: str, workload: bytes, *, trial: bool = False
    ) -> tuple[CompiledWorkload, MechanismPlan]:
        """Return the compiled workload and the round's plan. Raises as `submit` does if the round refuses it."""
        with self.operations.store.read() as connection:
            record = read_own_round(connection, round_id, analyst)
            self._check_open(connection, record, trial=trial)
            schema = dataset_of(connection, record).schema
        (share,) = record.terms.shares
        # Compiling is slow and needs no connection, so nobody waits for it.
        statements = workload_from_bytes(workload, share.statements)
        compiled = compile_workload(statements, schema)
        check_allowance(compiled, share)
        if record.terms.session is None:
            check_workload(record.plan, compiled)
        else:
            _check_asked(record.plan, statements, schema)
        return compiled, record.plan

    def _sign_receipt(
        self,
        connection: Connection,
        analyst: str,
        round_id: str,
        commitment: bytes | None,
        statements: int,
        queries: int,
        now: datetime,
        questions: bytes | None,
    ) -> bytes:
        """Return a signed receipt: from `now` on this workload, or none, is in force under the recorded terms."""
        payload = ReceiptPayload(
            self.deployment,
            round_id,
            analyst,
            commitment,
            statements,
            queries,
            to_microseconds(now),
            recorded_promise(connection, round_id),
            questions,
        )
        return self.signer.receipt(connection, RECEIPT_TYPE, payload.to_bytes())

    def _check_open(self, connection: Connection, record: RoundRecord, *, trial: bool = False) -> None:
        asking = trial and record.plan.mechanism != GRANT  # what a grant tells follows from each statement's price
        if record.terms.session is not None and not asking:
            raise WrongState("the round is a session, which takes statements one at a time, not workloads")
        reading = self.watch.read(connection)
        if reading.problem is not None:
            raise Unavailable(UNTRUSTED)
        # A workload after the closing time is late, even if the server has not sealed the round yet.
        if record.state is not RoundState.OPEN or closed(record.terms.close_time, reading.now):
            raise WrongState(CLOSED)


def _check_asked(plan: MechanismPlan, statements: Sequence[Statement], schema: Schema) -> None:
    """Raise `InvalidArgument`, naming the statement, for one that a session cannot answer."""
    mechanism = session_mechanism(plan.mechanism)
    for place, statement in enumerate(statements):
        try:
            mechanism.check_statement(plan, compile_workload((statement,), schema))
        except InvalidArgument as error:
            raise InvalidArgument(f"statements[{place}]", error.problem) from None


def _replace(connection: Connection, analyst: str, workload: bytes, receipt: Receipt) -> None:
    own = (submissions.c.round_id == receipt.round_id, submissions.c.analyst == analyst)
    connection.execute(submissions.delete().where(*own))
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


def _receipt_from_json(_: Connection, text: str) -> Receipt:
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
