"""Checks the parts of a session that other rounds lack: slots, answers before the release, and what a grant spent.

The stored message and receipt of each answer must agree with the release, which the replay computes again. The
slots must follow the plan: each is used once, within the session's length, by its own share. Where statements are
answered at once, none may be left out: whoever could choose a slot could choose the noise that is drawn in it. The
people in the table must be charged for all that the statements of a grant came to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, DataLoss, EquipoiseError, VerificationFailed
from equipoise.model.rounds import GRANT
from equipoise.profile.receipt_store import read_session_receipt
from equipoise.queries.grant_account import GrantAccount
from equipoise.queries.session_workload import SessionWorkload
from equipoise.records.promises import promise_of
from equipoise.records.receipts import SessionReceiptPayload, chain_start, chain_step
from equipoise.records.record import Kind
from equipoise.results import Results
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.session_workload import compile_asked
from equipoise_server.mechanisms.online.interface import check_asked
from equipoise_server.mechanisms.registry import session_mechanism
from equipoise_server.replay.answers import named
from equipoise_server.replay.differences import Difference, Differs, same
from equipoise_server.replay.stored import StoredRound
from equipoise_server.rounds.grant_ending import charge_of_spent
from equipoise_server.rounds.store.paid_statements import reads_wanted


def check_slots(stored: StoredRound) -> str:
    """Raise `Differs` unless the statements are within the plan, and each slot is used once, by its own share."""
    schema, mechanism = stored.dataset.schema, session_mechanism(stored.round.plan.mechanism)
    try:
        asked = {analyst: compile_asked(workload, schema) for analyst, workload in stored.workloads.items()}
        check_asked(mechanism, stored.setting, stored.round.plan, asked)
    except EquipoiseError as error:
        raise Differs(Difference(error.message)) from None
    except ValueError as error:
        raise Differs(Difference(str(error))) from None
    statements = sum(len(each.statements) for each in asked.values())
    if not mechanism.slotted:
        check_none_left_out(asked.values())
        return f"{statements:,} statements in as many slots, one after another"
    return f"{statements:,} statements, each in a slot of its own share, none taken twice"


def check_none_left_out(asked: Iterable[SessionWorkload]) -> None:
    """Raise `Differs` unless the slots are the first ones, each used: those that statements get as they arrive."""
    taken = sorted(slot for each in asked for slot in each.slots.tolist())
    for place, slot in enumerate(taken):
        same("the slot of the next statement, as answers are given at once", slot, place)


def check_live_answers(stored: StoredRound) -> str:
    """Raise `Differs` unless every answer was given, and its receipt signed, as released, and a grant is paid."""
    live, account = stored.live_answers, GrantAccount(stored.round.plan.data_cost.rho)
    same("analysts who were answered", ", ".join(sorted(live)), ", ".join(sorted(stored.workloads)))
    for analyst in live:
        try:
            _check_analyst(stored, analyst, account)
        except (BudgetExhausted, DataLoss, VerificationFailed) as error:
            raise Differs(Difference(error.message, analyst=analyst)) from None
    _check_spent(stored, account.filter.spent)
    return f"{sum(map(len, live.values())):,} answers were told, with receipts, as they were released"


def _check_spent(stored: StoredRound, spent: int) -> None:
    """Raise `Differs` unless a grant is charged, on record, what its statements came to, counted here again."""
    of_grant = stored.round.mechanism == GRANT
    same("what the grant's statements came to", stored.committed.release.spent, spent if of_grant else None)
    if not of_grant:
        return
    due = charge_of_spent(stored.round, spent)
    charged = {each.account: each.cost for each in stored.committed.spending.charges}
    cost = due.counted(stored.order_of(due.account))
    counted = charged.get(due.account, Cost())
    same("the charge for what the grant's statements came to", asdict(counted), asdict(cost))


def _check_analyst(stored: StoredRound, analyst: str, account: GrantAccount) -> None:
    rows, salt = stored.live_answers[analyst], stored.salts[analyst]
    statements, slots = asked_from_bytes(stored.workloads[analyst])
    same("answers that were told", len(rows), len(statements), analyst)
    results = Results.collect(stored.id, map(chunk_from_bytes, stored.messages(analyst)))
    assert salt is not None  # the workload opens its commitment under it
    deployment = read_session_receipt(rows[0].envelope).deployment
    chain, first = chain_start(deployment, stored.id, analyst, salt), 0
    of_grant, wanted = stored.round.mechanism == GRANT, reads_wanted(stored.round, stored.dataset)
    promise = promise_of(stored.committed.roots[Kind.ROUND_OPENED], stored.committed.round)
    for i, (row, statement, slot) in enumerate(zip(rows, statements, slots, strict=True), start=1):
        cost = account.pay(wanted(statement)) if of_grant else 0
        asked = {"sequence": i, "slot": slot, "statement": statement, "cost": cost}
        same(f"answer {i}", {name: getattr(row, name) for name in asked}, asked, analyst)
        chunk = answers_from_chunk(row.chunk)
        same(f"answer {i}: first_query", chunk.first_query, first, analyst)
        cells = slice(first, first := first + len(chunk.answers))
        released_answers = results.answers[cells]
        for (name, live), (_, released) in zip(named(chunk.answers), named(released_answers), strict=True):
            same(f"answer {i}: how many", len(live), len(released), analyst)
            for query in np.flatnonzero(live != released)[:1].tolist():
                place = Difference(
                    name, str(live[query]), str(released[query]), analyst, i, chunk.first_query + query
                )
                raise Differs(place)
        chain = chain_step(chain, i, slot, statement, chunk.answers)
        receipt = read_session_receipt(row.envelope)
        due = SessionReceiptPayload(deployment, stored.id, analyst, i, chain, receipt.time, promise)
        same(f"the receipt of answer {i}", asdict(receipt), asdict(due), analyst)
    same("the receipt with the workload", stored.receipts[analyst], rows[-1].envelope, analyst)
