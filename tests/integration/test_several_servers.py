"""Several server processes on one PostgreSQL: everyone serves, one runs a round, another takes over when it dies.

The servers share a state directory, as `docs/storage.md` describes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from grpc import aio
from harness.rounds_bench import write_table
from harness.server_process import SEED, Credentials, ServerProcess, make_state, running
from harness.server_rounds import SCHEMA, WORKLOADS, chunks, registration, terms, uploaded
from harness.stores import Cluster
from harness.waiting import eventually

from equipoise.queries.workload_compiler import compile_workload
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2, types_pb2
from equipoise.v1.operator_pb2_grpc import OperatorServiceStub
from equipoise.wire.results import results_to_chunks
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.computation.seed import bound_seed
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_at
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.terms.checks import setting_of

SECONDS = 120


@pytest.fixture
def state(tmp_path: Path, postgresql: Cluster) -> Iterator[Path]:
    url = postgresql.create()
    made = make_state(tmp_path / "state", store=url)
    write_table(made / "data")
    yield made
    postgresql.drop(url)


def expected_streams(state: Path, round_id: str) -> dict[str, list[bytes]]:
    """What an undisturbed run of the round gives: the mechanism called directly, with the same seed."""
    store = open_deployment(state, datetime.now(UTC)).open_store()
    with store.read() as connection:
        record = read_round(connection, round_id)
        check_accounts(connection)
    store.close()
    setting = setting_of(record.terms, record.records, record.universe_size, SCHEMA)
    data = source_at(state / "data" / "shop.csv").counts(SCHEMA)
    outcome = mechanism(record.plan.mechanism).run(
        setting,
        record.plan,
        data,
        {name: compile_workload(statements, SCHEMA) for name, statements in WORKLOADS.items()},
        bound_seed(
            SEED,
            None,
            data_digest(data),
            setting,
            record.plan,
            {name: workload_to_bytes(statements) for name, statements in WORKLOADS.items()},
        ),
        lambda *_: None,
    )
    return {name: list(results_to_chunks(round_id, answers)) for name, answers in outcome.answers.items()}


async def sealed(one: ServerProcess, two: ServerProcess, analysts: dict[str, Credentials]) -> str:
    """A round opened at one server, submitted to at both, and sealed at the other."""
    async with one.channel(one.operator()) as channel, two.channel(two.operator()) as other:
        operator = OperatorServiceStub(channel)
        await operator.RegisterDataset(registration())
        opened = await operator.OpenRound(operator_pb2.OpenRoundRequest(terms=terms(), request_id="open"))
        round_id = opened.detail.round.id
        for server, (name, statements) in zip((one, two), WORKLOADS.items(), strict=True):
            async with server.channel(analysts[name]) as own:
                stub = analyst_pb2_grpc.AnalystServiceStub(own)
                await stub.SubmitWorkload(uploaded(round_id, "s", workload_to_bytes(statements)))
        request = operator_pb2.SealRoundRequest(round_id=round_id, request_id="seal")
        await OperatorServiceStub(other).SealRound(request)
    return round_id


async def detail(channel: aio.Channel, round_id: str) -> types_pb2.RoundDetail:
    request = operator_pb2.GetRoundRequest(round_id=round_id)
    return (await OperatorServiceStub(channel).GetRound(request)).detail


async def test_a_round_whose_server_is_killed_is_finished_by_another(state: Path) -> None:
    with running(state) as two:
        with running(state) as one:
            analysts = {name: await one.admit(name) for name in WORKLOADS}
            round_id = await sealed(one, two, analysts)
            async with one.channel(one.operator()) as channel, two.channel(two.operator()) as other:
                run = operator_pb2.RunRoundRequest(round_id=round_id, request_id="run")
                await OperatorServiceStub(channel).RunRound(run)
                seen = (await detail(other, round_id)).progress
                assert f"run by another server, process {one.process.pid} on " in seen.phase
                one.process.kill()
                await asyncio.to_thread(one.process.wait, SECONDS)
        async with two.channel(two.operator()) as channel:

            async def complete() -> bool:
                seen = await detail(channel, round_id)
                assert seen.round.state == types_pb2.ROUND_STATE_RUNNING
                return seen.progress.complete

            await eventually(complete, SECONDS)
            # The operator's request again, after the crash, at a server that never had it.
            again = await OperatorServiceStub(channel).RunRound(run)
            assert again.detail.round.state == types_pb2.ROUND_STATE_RUNNING
            request = operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id="release")
            await OperatorServiceStub(channel).ReleaseRound(request)
        expected = await asyncio.to_thread(expected_streams, state, round_id)
        with running(state) as three:
            for server in (two, three):
                assert await streams(server, analysts, round_id) == expected


async def streams(server: ServerProcess, analysts: dict[str, Credentials], round_id: str) -> dict[str, list[bytes]]:
    """What the analysts read at a server, once their streams have opened."""
    found = {}
    for name, credentials in analysts.items():
        async with server.channel(credentials) as own:
            stub = analyst_pb2_grpc.AnalystServiceStub(own)
            watched = stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id))
            assert [seen.round.state async for seen in watched][-1] == types_pb2.ROUND_STATE_RELEASED
            found[name] = await chunks(stub, round_id)
    return found
