"""The rounds of `joint_rounds` through a real server: certificates, submissions, worker processes, streams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import numpy as np
from harness.dangers import ANY_BUDGET_SENT
from harness.noninterference.conducts import upload
from harness.noninterference.wire_view import raw_call
from harness.noninterference.worlds import SCRIPT, admitted, fresh, set_clock, wait_until_computed
from harness.server_process import make_state, running
from statistical.joint_rounds import CAP, Integers, JointRound, Streams

from equipoise.model.accounts import Budget
from equipoise.v1 import analyst_pb2, operator_pb2, operator_pb2_grpc, types_pb2
from equipoise.wire.workloads import schema_to_message

AT_ONCE = 4  # workers
SETTINGS = ("streams_per_second = 1000",)  # everything is read in one go at the end


@dataclass(frozen=True)
class Served:
    """What one round delivered, made from this seed."""

    round_id: str
    seed: bytes
    streams: Streams
    synopsis: Integers


def served(place: Path, lived: Sequence[tuple[JointRound, int]]) -> list[Served]:
    """Each case's round with either of ann's workloads, in order; every one on a dataset of its own."""
    state = make_state(place, SETTINGS)
    now = datetime.now(UTC)
    set_clock(state, now)
    for number, (case, _) in enumerate(lived):
        (state / "data" / f"{number}.csv").write_text(case.table)
    with running(state, (0).to_bytes(32, "big"), SCRIPT.format(fault="pass")) as server, ExitStack() as stack:
        channel = stack.enter_context(server.blocking_channel(server.operator()))
        operator = operator_pb2_grpc.OperatorServiceStub(channel)
        analysts: dict[str, grpc.Channel] = {
            name: stack.enter_context(server.blocking_channel(admitted(operator, name)))
            for name in sorted({name for case, _ in lived for name in case.analysts})
        }
        tables = [case.table for case, _ in lived]
        opened = [
            begun(operator, analysts, number, case, side, again=case.table in tables[:number])
            for number, (case, side) in enumerate(lived)
        ]
        for first in range(0, len(opened), AT_ONCE):
            some = opened[first : first + AT_ONCE]
            for round_id in some:
                operator.RunRound(operator_pb2.RunRoundRequest(round_id=round_id, request_id=fresh()))
            for round_id in some:
                wait_until_computed(operator, round_id)
                operator.ReleaseRound(operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id=fresh()))
        set_clock(state, now + timedelta(seconds=60))
        return [
            Served(
                round_id,
                number.to_bytes(32, "big"),
                {name: streamed(analysts[name], round_id) for name in case.workloads(side)},
                synopsis(analysts["ann"], round_id),
            )
            for number, (round_id, (case, side)) in enumerate(zip(opened, lived, strict=True))
        ]


def begun(
    operator: operator_pb2_grpc.OperatorServiceStub,
    analysts: dict[str, grpc.Channel],
    number: int,
    case: JointRound,
    side: int,
    *,
    again: bool,
) -> str:
    """The id of a new round that is sealed, on a new dataset; `again` where its table is another's already."""
    dataset, cap, terms = f"joint-{number}", budget(CAP), case.terms
    assert terms.analyst_budget is not None
    operator.RegisterDataset(
        operator_pb2.RegisterDatasetRequest(
            name=dataset,
            source=f"{number}.csv",
            schema=schema_to_message(case.schema),
            data_cap=cap,
            analyst_cap=cap,
            request_id=fresh(),
            people="new",
            new_budgets=again,
            accepted=ANY_BUDGET_SENT,
        )
    )
    wanted = types_pb2.RoundTerms(
        dataset=dataset,
        unit=types_pb2.ProtectionUnit.Value(f"PROTECTION_UNIT_{terms.unit.upper()}"),
        data_budget=budget(terms.data_budget),
        analyst_budget=budget(terms.analyst_budget),
        beta=terms.beta,
        mechanism=terms.mechanism,
        shares=[
            types_pb2.Share(analyst=share.analyst, statements=share.statements, queries=share.queries)
            for share in terms.shares
        ],
        options=json.dumps(dict(terms.options)),
        accepted=ANY_BUDGET_SENT,
    )
    request = operator_pb2.OpenRoundRequest(terms=wanted, request_id=fresh())
    round_id: str = operator.OpenRound(request).detail.round.id
    for name, workload in case.workloads(side).items():
        list(raw_call(analysts[name], "SubmitWorkload", upload(round_id, "only", workload)))
    operator.SealRound(operator_pb2.SealRoundRequest(round_id=round_id, request_id=fresh()))
    return round_id


def streamed(channel: grpc.Channel, round_id: str) -> list[bytes]:
    """The messages of one analyst's stream."""
    request = analyst_pb2.StreamResultsRequest(round_id=round_id)
    call = raw_call(channel, "StreamResults", [request])
    return [analyst_pb2.StreamResultsResponse.FromString(response).chunk for response in call]


def synopsis(channel: grpc.Channel, round_id: str) -> Integers:
    """The synopsis's records: there is one attribute, so categories are cells."""
    request = analyst_pb2.DownloadSynopsisRequest(round_id=round_id)
    call = raw_call(channel, "DownloadSynopsis", [request])
    parts = [analyst_pb2.DownloadSynopsisResponse.FromString(response).cells for response in call]
    return np.array([cell for part in parts for cell in part], dtype=np.int64)


def budget(pair: Budget) -> types_pb2.Budget:
    """The message of a pair."""
    return types_pb2.Budget(epsilon=pair.epsilon, delta=pair.delta)
