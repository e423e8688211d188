"""A table, the terms of a round on it and its workloads, as messages of raw gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator

from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.v1 import (
    analyst_pb2,
    analyst_pb2_grpc,
    operator_pb2,
    types_pb2,
)
from equipoise.wire.workloads import schema_to_message
from harness.dangers import SMALL_TABLE_SENT
from harness.rounds_bench import SALT

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
COLOUR, SIZE = attribute("colour"), attribute("size")
WORKLOADS: dict[str, list[Statement]] = {
    "ann": [COLOUR == "red", Marginal(("colour", "size")), SIZE.isin(["s", "m"])],
    "bob": [Marginal(("size",)), (COLOUR == "red") | (SIZE == "xl")],
}


def registration() -> operator_pb2.RegisterDatasetRequest:
    cap = types_pb2.Budget(epsilon=20.0, delta=1e-3)
    return operator_pb2.RegisterDatasetRequest(
        name="shop",
        source="shop.csv",
        schema=schema_to_message(SCHEMA),
        data_cap=cap,
        analyst_cap=cap,
        request_id="register",
    )


def terms() -> types_pb2.RoundTerms:
    budget = types_pb2.Budget(epsilon=8.0, delta=1e-4)
    return types_pb2.RoundTerms(
        dataset="shop",
        unit=types_pb2.PROTECTION_UNIT_QUERY,
        data_budget=budget,
        analyst_budget=budget,
        beta=0.05,
        mechanism="equilibrium",
        options='{"prior": "none"}',  # the game as printed, which charges every analyst
        shares=[
            types_pb2.Share(analyst=name, statements=4, queries=12, sensitivity=4, support=4) for name in WORKLOADS
        ],
        accepted=SMALL_TABLE_SENT,
    )


async def uploaded(
    round_id: str, request_id: str, workload: bytes
) -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
    header = analyst_pb2.SubmitHeader(
        round_id=round_id, request_id=request_id, commitment_salt=SALT, workload_bytes=len(workload)
    )
    yield analyst_pb2.SubmitWorkloadRequest(header=header)
    for start in range(0, len(workload), 7):
        yield analyst_pb2.SubmitWorkloadRequest(piece=workload[start : start + 7])


async def chunks(stub: analyst_pb2_grpc.AnalystServiceAsyncStub, round_id: str, after: int = 0) -> list[bytes]:
    request = analyst_pb2.StreamResultsRequest(round_id=round_id, after_sequence=after)
    return [response.chunk async for response in stub.StreamResults(request)]
