"""The answers that the store keeps of a session, compared with the receipts that were signed for them.

They are on record only when the session is sealed. Until then what binds them is each analyst's chain, which every
receipt signs. (Whether a receipt's signature holds is for whoever gets it.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.errors import EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise.profile.receipt_store import read_session_receipt
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.records.promises import Promise
from equipoise.records.receipts import SessionReceiptPayload, chain_start, chain_step
from equipoise.wire.results import answers_from_chunk
from equipoise_server.ledger.caps import MAX_AMOUNT
from equipoise_server.rounds.store.step_records import recorded_promise
from equipoise_server.rounds.store.stored_records import damaged
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.session import asked, attached, sessions

ROWS_AT_ONCE = 32  # a row may hold a megabyte of cells


def check_answers(
    connection: Connection, round_id: str, *, is_session: bool, paid: Callable[[bytes], Wanted] | None = None
) -> None:
    """Raise `DataLoss` unless a session's stored answers are, in their order, those whose receipts were signed.

    While it is open none may be missing. A round that is no session must have none.

    Args:
        connection: to the store.
        round_id: the round or session.
        is_session: whether its terms say that it is a session.
        paid: of a grant, whose statements cost something, what reads what each is wanted for; None elsewhere.
    """
    query = select(sessions.c.answered, rounds.c.state).join(rounds, rounds.c.id == sessions.c.round_id)
    session = connection.execute(query.where(sessions.c.round_id == round_id)).first()
    if (session is not None) is not is_session:
        damaged(round_id, "answers")
    if session is None:
        return
    salts = select(attached.c.analyst, attached.c.salt).where(attached.c.round_id == round_id)
    chains = {analyst: _Chain(round_id, analyst, salt, paid) for analyst, salt in connection.execute(salts).all()}
    promise, count = recorded_promise(connection, round_id), 0
    rows = select(asked).where(asked.c.round_id == round_id).order_by(asked.c.analyst, asked.c.sequence)
    for row in connection.execution_options(yield_per=ROWS_AT_ONCE).execute(rows):
        try:
            whole = row.analyst in chains and chains[row.analyst].follows(row, promise)
        except (EquipoiseError, ValueError):
            whole = False
        if not whole:
            damaged(round_id, "answers")
        count += 1
    if count > session.answered or (session.state == RoundState.OPEN.value and count < session.answered):
        damaged(round_id, "answers")


class _Chain:
    """One analyst's answers so far: what they chain to, how many there are, their cells, and what they cost."""

    def __init__(self, round_id: str, analyst: str, salt: bytes, paid: Callable[[bytes], Wanted] | None) -> None:
        self._round_id, self._analyst, self._salt = round_id, analyst, salt
        self._chain, self._sequence, self._cells = b"", 0, 0
        self._paid, self._spent = paid, GrantAccount(MAX_AMOUNT)

    def follows(self, row: Row[Any], promise: Promise) -> bool:
        """Take the next answer; tell whether it and its receipt are those that follow."""
        receipt, chunk = read_session_receipt(row.envelope), answers_from_chunk(row.chunk)
        if not self._sequence:
            self._chain = chain_start(receipt.deployment, self._round_id, self._analyst, self._salt)
        self._sequence += 1
        self._chain = chain_step(self._chain, self._sequence, row.slot, row.statement, chunk.answers)
        numbers = (self._round_id, self._sequence, self._cells)
        self._cells += len(chunk.answers)
        wanted = SessionReceiptPayload(
            receipt.deployment,
            self._round_id,
            self._analyst,
            self._sequence,
            self._chain,
            row.due_time,
            promise,
        )
        cost = 0 if self._paid is None else self._spent.pay(self._paid(row.statement))
        return (row.sequence, row.chain, row.cost, receipt) == (self._sequence, self._chain, cost, wanted) and (
            chunk.round_id,
            chunk.sequence,
            chunk.first_query,
        ) == numbers
