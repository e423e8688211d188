"""From the server's records to protobuf messages. Nothing is decided here, and no time is looked at."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from equipoise.accounting import Cost
from equipoise.model.views import RecordOpening
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2, types_pb2
from equipoise.wire import workloads
from equipoise_server.conversion import epsilon_for
from equipoise_server.identity.names import Role
from equipoise_server.identity.registry import Identity
from equipoise_server.rounds.records import (
    AccountRecord,
    Budget,
    DatasetRecord,
    Ending,
    JournalEntry,
    Plan,
    ProgressRecord,
    ReceiptRecord,
    RoundRecord,
    SessionTerms,
    Share,
    Terms,
)
from equipoise_server.rounds.state_machine import RoundState

ROLES = {
    Role.ANALYST: types_pb2.ROLE_ANALYST,
    Role.OPERATOR: types_pb2.ROLE_OPERATOR,
    Role.AUDITOR: types_pb2.ROLE_AUDITOR,
}
STATES = {
    RoundState.OPEN: types_pb2.ROUND_STATE_OPEN,
    RoundState.SEALED: types_pb2.ROUND_STATE_SEALED,
    RoundState.RUNNING: types_pb2.ROUND_STATE_RUNNING,
    RoundState.RELEASED: types_pb2.ROUND_STATE_RELEASED,
    RoundState.ABORTED: types_pb2.ROUND_STATE_ABORTED,
}
UNITS = {
    "query": types_pb2.PROTECTION_UNIT_QUERY,
    "analyst": types_pb2.PROTECTION_UNIT_ANALYST,
}


ENDINGS = {
    Ending.HYPOTHESIS: types_pb2.SESSION_ENDING_HYPOTHESIS,
    Ending.STOP: types_pb2.SESSION_ENDING_STOP,
}


def dataset(record: DatasetRecord) -> types_pb2.Dataset:
    """A dataset without its source: where the file lies is the custodian's business."""
    return types_pb2.Dataset(
        name=record.name,
        schema=workloads.schema_to_message(record.schema),
        records=record.records,
        create_time=_time(record.create_time),
        retire_time=None if record.retire_time is None else _time(record.retire_time),
    )


def analyst(identity: Identity) -> operator_pb2.Analyst:
    """Who was admitted."""
    until = identity.certified_until
    return operator_pb2.Analyst(
        name=identity.name,
        create_time=_time(identity.created),
        certified_until_time=None if until is None else _time(until),
    )


def analyst_round(record: RoundRecord, analyst: str, answered: int = 0) -> types_pb2.Round:
    """A round as one analyst sees it; `record` must already be the one made for analysts.

    `answered`: how many statements of its own in it, a session, it can read the answers of.
    """
    own = [_share(share) for share in record.terms.shares if share.analyst == analyst]
    message = _round(record)
    message.answered = answered
    message.share.CopyFrom(own[0] if own else types_pb2.Share(analyst=analyst))
    return message


def round_detail(record: RoundRecord, progress: ProgressRecord) -> types_pb2.RoundDetail:
    """A round as operators and auditors see it."""
    return types_pb2.RoundDetail(
        round=_round(record),
        shares=[_share(share) for share in record.terms.shares],
        plan=plan(record.plan, record.terms),
        requested_mechanism=record.terms.mechanism,
        progress=types_pb2.Progress(
            phase=progress.phase,
            done=progress.done,
            total=progress.total,
            seconds_left=progress.seconds_left,
            complete=progress.complete,
            peak_memory_bytes=progress.peak_memory_bytes,
        ),
    )


def plan(record: Plan, terms: Terms) -> types_pb2.Plan:
    """A plan, with both costs also as pairs at the deltas that the terms give.

    Without what it costs the analysts where they are not protected.
    """
    budget = terms.analyst_budget
    return types_pb2.Plan(
        mechanism=record.mechanism,
        parameters=record.parameters,
        data_cost=_cost(record.data_cost),
        analyst_cost=None if budget is None else _cost(record.charged_analyst_cost),
        data_budget=_pair(record.data_cost, terms.data_budget.delta),
        analyst_budget=None if budget is None else _pair(record.charged_analyst_cost, budget.delta),
        promised_error=record.promised_error,
        uncertified_at_most=record.uncertified_at_most,
        seconds=record.seconds,
        memory_bytes=record.memory_bytes,
    )


def receipt(record: ReceiptRecord) -> analyst_pb2.Receipt:
    """What was accepted of an analyst."""
    return analyst_pb2.Receipt(
        round_id=record.round_id,
        workload_digest=record.workload_digest,
        statements=record.statements,
        queries=record.queries,
        accept_time=_time(record.accept_time),
        envelope=record.envelope,
        commitment_salt=record.salt,
    )


def account(record: AccountRecord) -> types_pb2.Account:
    """What stands on one account."""
    return types_pb2.Account(
        name=record.name,
        cap=_budget(record.cap),
        spent=_budget(record.spent),
        committed=_budget(record.committed),
        order=record.order,
        divergence=record.divergence,
        most_divergence=record.most_divergence,
    )


def journal_entry(record: JournalEntry) -> types_pb2.JournalEntry:
    """One line of the budget journal."""
    return types_pb2.JournalEntry(
        sequence=record.sequence,
        time=_time(record.time),
        action=record.action,
        account=record.account,
        round_id=record.round_id,
        cost=_cost(record.cost),
        events=record.events,
        digest=record.digest,
    )


def _round(record: RoundRecord) -> types_pb2.Round:
    return types_pb2.Round(
        id=record.id,
        dataset=record.terms.dataset,
        state=STATES[record.state],
        unit=UNITS[record.terms.unit],
        data_budget=_budget(record.terms.data_budget),
        analyst_budget=None if record.terms.analyst_budget is None else _budget(record.terms.analyst_budget),
        beta=record.terms.beta,
        mechanism=record.plan.mechanism,
        open_time=_time(record.open_time),
        release_time=None if record.release_time is None else _time(record.release_time),
        abort_reason=record.abort_reason,
        seed_commitment=record.seed_commitment,
        close_time=None if record.terms.close_time is None else _time(record.terms.close_time),
        release_grid_seconds=record.terms.release_grid_seconds,
        session=None if record.terms.session is None else _session(record.terms.session),
    )


def _session(record: SessionTerms) -> types_pb2.SessionTerms:
    return types_pb2.SessionTerms(
        length=record.length, turn_seconds=record.turn_seconds, ending=ENDINGS[record.ending]
    )


def _share(record: Share) -> types_pb2.Share:
    return types_pb2.Share(
        analyst=record.analyst,
        statements=record.statements,
        queries=record.queries,
        sensitivity=record.sensitivity,
        support=record.support,
    )


def _budget(record: Budget) -> types_pb2.Budget:
    return types_pb2.Budget(epsilon=record.epsilon, delta=record.delta)


def _cost(record: Cost) -> types_pb2.Cost:
    return types_pb2.Cost(rho=record.rho, epsilon=record.epsilon, delta=record.delta, divergence=record.divergence)


def _pair(record: Cost, delta: float) -> types_pb2.Budget:
    return types_pb2.Budget(epsilon=epsilon_for(record, delta), delta=delta)


def _time(moment: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def record_opening(record: RecordOpening) -> auditor_pb2.RecordOpening:
    """A record of the log with all its items."""
    items = [auditor_pb2.ItemOpening(content=item.content, salt=item.salt, hash=item.hash) for item in record.items]
    return auditor_pb2.RecordOpening(
        index=record.index, leaf=record.leaf, items=items, padding=list(record.padding)
    )
