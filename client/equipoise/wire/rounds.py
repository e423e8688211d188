"""Rounds with their plans and their progress as messages, and back."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.rounds import Plan, Progress, Round, RoundDetail, RoundState
from equipoise.v1 import types_pb2
from equipoise.wire.accounts import (
    budget_from_message,
    budget_to_message,
    charge_from_message,
    charge_to_message,
    cost_from_message,
    cost_to_message,
)
from equipoise.wire.scalars import Numbers, from_server, time_from_message, time_to_message
from equipoise.wire.terms import terms_from_message, terms_to_message

STATES = Numbers(
    {
        RoundState.OPEN: types_pb2.ROUND_STATE_OPEN,
        RoundState.SEALED: types_pb2.ROUND_STATE_SEALED,
        RoundState.RUNNING: types_pb2.ROUND_STATE_RUNNING,
        RoundState.RELEASED: types_pb2.ROUND_STATE_RELEASED,
        RoundState.ABORTED: types_pb2.ROUND_STATE_ABORTED,
    }
)


def round_to_message(shown: Round) -> types_pb2.Round:
    """The message of a round, with the shares that its terms name.

    Without the mechanism's options, which may be megabytes: a plan's parameters say what became of them.
    """
    return types_pb2.Round(
        id=shown.id,
        terms=terms_to_message(replace(shown.terms, options={})),
        state=STATES.write(shown.state, "state"),
        mechanism=shown.mechanism,
        open_time=time_to_message(shown.open_time),
        release_time=None if shown.release_time is None else time_to_message(shown.release_time),
        abort_reason=shown.abort_reason,
        seed_commitment=shown.seed_commitment,
        answered=shown.answered,
    )


@from_server
def round_from_message(message: types_pb2.Round) -> Round:
    """A round. Raises `DataLoss`."""
    return Round(
        id=message.id,
        terms=terms_from_message(message.terms),
        state=STATES.read(message.state, "state"),
        mechanism=message.mechanism,
        open_time=time_from_message(message.open_time),
        release_time=time_from_message(message.release_time) if message.HasField("release_time") else None,
        abort_reason=message.abort_reason,
        seed_commitment=message.seed_commitment,
        answered=message.answered,
    )


def plan_to_message(plan: Plan) -> types_pb2.Plan:
    """The message of a plan."""
    return types_pb2.Plan(
        mechanism=plan.mechanism,
        parameters=plan.parameters,
        data_cost=cost_to_message(plan.data_cost),
        analyst_cost=None if plan.analyst_cost is None else cost_to_message(plan.analyst_cost),
        data_budget=budget_to_message(plan.data_budget),
        analyst_budget=None if plan.analyst_budget is None else budget_to_message(plan.analyst_budget),
        error_bound=plan.error_bound,
        max_uncertified=plan.max_uncertified,
        seconds=plan.seconds,
        memory_bytes=plan.memory_bytes,
        charges=[charge_to_message(charge) for charge in plan.charges],
    )


def plan_from_message(message: types_pb2.Plan) -> Plan:
    """A plan."""
    return Plan(
        mechanism=message.mechanism,
        parameters=message.parameters,
        data_cost=cost_from_message(message.data_cost),
        analyst_cost=cost_from_message(message.analyst_cost) if message.HasField("analyst_cost") else None,
        data_budget=budget_from_message(message.data_budget),
        analyst_budget=budget_from_message(message.analyst_budget) if message.HasField("analyst_budget") else None,
        error_bound=message.error_bound,
        max_uncertified=message.max_uncertified,
        seconds=message.seconds,
        memory_bytes=message.memory_bytes,
        charges=tuple(charge_from_message(charge) for charge in message.charges),
    )


def progress_to_message(progress: Progress) -> types_pb2.Progress:
    """The message of how far a run has come."""
    return types_pb2.Progress(
        phase=progress.phase,
        done=progress.done,
        total=progress.total,
        seconds_left=progress.seconds_left,
        complete=progress.complete,
        peak_memory_bytes=progress.peak_memory_bytes,
    )


def progress_from_message(message: types_pb2.Progress) -> Progress:
    """How far a run has come."""
    return Progress(
        phase=message.phase,
        done=message.done,
        total=message.total,
        seconds_left=message.seconds_left,
        complete=message.complete,
        peak_memory_bytes=message.peak_memory_bytes,
    )


def round_detail_to_message(detail: RoundDetail) -> types_pb2.RoundDetail:
    """The message of a round as operators and auditors see it."""
    return types_pb2.RoundDetail(
        round=round_to_message(detail.round),
        plan=plan_to_message(detail.plan),
        progress=progress_to_message(detail.progress),
    )


def round_detail_from_message(message: types_pb2.RoundDetail) -> RoundDetail:
    """A round as operators and auditors see it. Raises `DataLoss`."""
    return RoundDetail(
        round=round_from_message(message.round),
        plan=plan_from_message(message.plan),
        progress=progress_from_message(message.progress),
    )
