"""From the server's records to protobuf messages. Nothing is decided here, and no time is looked at."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from equipoise.accounting import Cost
from equipoise.model.rounds import Ending, Progress, RoundState, SessionTerms, Share
from equipoise.v1 import types_pb2
from equipoise.wire.accounts import budget_to_message, cost_to_message
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.interface import Plan
from equipoise_server.rounds.records import RoundRecord, Terms

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


def analyst_round(record: RoundRecord, analyst: str, answered: int = 0) -> types_pb2.Round:
    """A round as one analyst sees it; `record` must already be the one made for analysts.

    `answered`: how many statements of its own in it, a session, it can read the answers of.
    """
    own = [_share(share) for share in record.terms.shares if share.analyst == analyst]
    message = _round(record)
    message.answered = answered
    message.share.CopyFrom(own[0] if own else types_pb2.Share(analyst=analyst))
    return message


def round_detail(record: RoundRecord, progress: Progress) -> types_pb2.RoundDetail:
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
        data_cost=cost_to_message(record.data_cost),
        analyst_cost=None if budget is None else cost_to_message(record.charged_analyst_cost),
        data_budget=_pair(record.data_cost, terms.data_budget.delta),
        analyst_budget=None if budget is None else _pair(record.charged_analyst_cost, budget.delta),
        promised_error=record.promised_error,
        uncertified_at_most=record.uncertified_at_most,
        seconds=record.seconds,
        memory_bytes=record.memory_bytes,
    )


def _round(record: RoundRecord) -> types_pb2.Round:
    return types_pb2.Round(
        id=record.id,
        dataset=record.terms.dataset,
        state=STATES[record.state],
        unit=UNITS[record.terms.unit],
        data_budget=budget_to_message(record.terms.data_budget),
        analyst_budget=None
        if record.terms.analyst_budget is None
        else budget_to_message(record.terms.analyst_budget),
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


def _pair(record: Cost, delta: float) -> types_pb2.Budget:
    return types_pb2.Budget(epsilon=epsilon_for(record, delta), delta=delta)


def _time(moment: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(moment)
    return message
