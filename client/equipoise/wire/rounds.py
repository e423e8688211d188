"""Rounds with their plans and their progress as messages, and back."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.plan_choices import Forecast, PlanCandidate, PlanChoice
from equipoise.model.rounds import Grant, Plan, Progress, Round, RoundDetail, RoundState
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.accounts import BUDGET, CHARGE, COST
from equipoise.wire.messages import Converted, MessageCodec
from equipoise.wire.persons import PERSONS
from equipoise.wire.scalars import Numbers, from_server
from equipoise.wire.terms import TERMS

STATES = Numbers(
    {
        RoundState.OPEN: types_pb2.ROUND_STATE_OPEN,
        RoundState.SEALED: types_pb2.ROUND_STATE_SEALED,
        RoundState.RUNNING: types_pb2.ROUND_STATE_RUNNING,
        RoundState.RELEASED: types_pb2.ROUND_STATE_RELEASED,
        RoundState.ABORTED: types_pb2.ROUND_STATE_ABORTED,
    }
)


PLAN = MessageCodec(
    types_pb2.Plan,
    Plan,
    data_cost=COST,
    analyst_cost=COST,
    data_budget=BUDGET,
    analyst_budget=BUDGET,
    charges=CHARGE,
)
_FORECAST = MessageCodec(types_pb2.Forecast, Forecast, data_budget=BUDGET, analyst_budget=BUDGET)
_CANDIDATE = MessageCodec(types_pb2.PlanCandidate, PlanCandidate, forecast=_FORECAST)
_CHOICE = MessageCodec(
    operator_pb2.PlanRoundResponse, PlanChoice, plan=PLAN, candidates=_CANDIDATE, persons=PERSONS
)
PROGRESS = MessageCodec(types_pb2.Progress, Progress)
_ROUND = MessageCodec(types_pb2.Round, Round, terms=TERMS, state=STATES, grant=MessageCodec(types_pb2.Grant, Grant))


def round_to_message(shown: Round) -> types_pb2.Round:
    """Write a round, with the shares that its terms name.

    Without the mechanism's options, which may be megabytes: a plan's parameters say what became of them.
    """
    return _ROUND.write(replace(shown, terms=replace(shown.terms, options={})))


ROUND_DETAIL = MessageCodec(
    types_pb2.RoundDetail, RoundDetail, round=Converted(round_to_message, _ROUND.read), plan=PLAN, progress=PROGRESS
)

round_from_message = from_server(_ROUND.read)
plan_choice_to_message, plan_choice_from_message = _CHOICE.write, from_server(_CHOICE.read)
round_detail_to_message, round_detail_from_message = ROUND_DETAIL.write, from_server(ROUND_DETAIL.read)
