"""One whole round through a real server, call by call, as raw gRPC sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from grpc import aio
from harness.server_process import Credentials, ServerProcess, make_state, refusal_of, running
from harness.server_rounds import WORKLOADS, chunks, registration, terms, uploaded

from equipoise.queries.statements import Marginal
from equipoise.v1 import (
    analyst_pb2,
    analyst_pb2_grpc,
    auditor_pb2,
    auditor_pb2_grpc,
    operator_pb2,
    operator_pb2_grpc,
    types_pb2,
)
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes

SECONDS = 300


@pytest.fixture
def state(tmp_path: Path, store_url: str) -> Path:
    made = make_state(tmp_path / "state", store=store_url)
    rows = [f"{('red', 'green')[row % 3 % 2]},{('s', 'm', 'l', 'xl')[row * row % 7 % 4]}" for row in range(400)]
    (made / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    return made


@pytest.fixture
def server(state: Path) -> Iterator[ServerProcess]:
    with running(state) as started:
        yield started


async def dry_run(round_id: str, workload: bytes) -> AsyncIterator[analyst_pb2.DryRunWorkloadRequest]:
    header = analyst_pb2.SubmitHeader(round_id=round_id, workload_bytes=len(workload))
    yield analyst_pb2.DryRunWorkloadRequest(header=header)
    yield analyst_pb2.DryRunWorkloadRequest(piece=workload)


@dataclass(frozen=True)
class People:
    """Everyone who talks to the server; eve has no share in the round."""

    operator: operator_pb2_grpc.OperatorServiceAsyncStub
    auditor: auditor_pb2_grpc.AuditorServiceAsyncStub
    analysts: dict[str, analyst_pb2_grpc.AnalystServiceAsyncStub]
    eve: analyst_pb2_grpc.AnalystServiceAsyncStub


async def test_a_round_from_registration_to_results(server: ServerProcess) -> None:
    async with AsyncExitStack() as stack:

        async def channel(credentials: Credentials) -> aio.Channel:
            return await stack.enter_async_context(server.channel(credentials))

        analysts = {
            name: analyst_pb2_grpc.AnalystServiceStub(await channel(await server.admit(name)))
            for name in (*WORKLOADS, "eve")
        }
        people = People(
            operator_pb2_grpc.OperatorServiceStub(await channel(server.operator())),
            auditor_pb2_grpc.AuditorServiceStub(await channel(server.auditor())),
            {name: analysts[name] for name in WORKLOADS},
            analysts["eve"],
        )
        round_id = await registered_and_opened(people)
        await submitted(people, round_id)
        watching = asyncio.create_task(states_seen(people.analysts["bob"], round_id))
        await asyncio.sleep(0.5)
        await computed_and_released(people, round_id)
        assert await asyncio.wait_for(watching, SECONDS) == [
            types_pb2.ROUND_STATE_OPEN,
            types_pb2.ROUND_STATE_SEALED,
            types_pb2.ROUND_STATE_RELEASED,
        ]
        await delivered(people, round_id)
        await synopsis_shared(people, round_id)
        await accounted(people, round_id)


async def registered_and_opened(people: People) -> str:
    operator, ann = people.operator, people.analysts["ann"]
    dataset = (await operator.RegisterDataset(registration())).dataset
    assert dataset.records == 400
    assert (await operator.RegisterDataset(registration())).dataset == dataset
    (listed,) = (await operator.ListDatasets(operator_pb2.ListDatasetsRequest())).datasets
    assert (listed.dataset, listed.state, listed.data.name) == (dataset, "active", "data/shop")
    plan = (await operator.PlanRound(operator_pb2.PlanRoundRequest(terms=terms()))).plan
    assert 0 < plan.data_budget.epsilon <= 8.0
    request = operator_pb2.OpenRoundRequest(terms=terms(), request_id="open")
    too_sensitive = terms()
    too_sensitive.shares[1].sensitivity = 9
    refused = await refusal_of(operator.PlanRound(operator_pb2.PlanRoundRequest(terms=too_sensitive)))
    assert (refused.status, "terms.shares[1].sensitivity" in refused.message) == ("INVALID_ARGUMENT", True)
    opened = (await operator.OpenRound(request)).detail
    assert [(share.sensitivity, share.support) for share in opened.round.terms.shares] == [(4, 4), (4, 4)]
    assert (opened.round.state, opened.plan) == (types_pb2.ROUND_STATE_OPEN, plan)
    asked = analyst_pb2.GetAnalystRoundRequest(round_id=opened.round.id)
    seen = (await ann.GetAnalystRound(asked)).round
    (own,) = seen.terms.shares
    assert (own.analyst, b"bob" in seen.SerializeToString()) == ("ann", False)
    assert (own.sensitivity, own.support) == (4, 4)
    wanted = analyst_pb2.GetDatasetRequest(name="shop")
    assert dataset.account == "shop"
    dataset.ClearField("account")
    assert (await ann.GetDataset(wanted)).dataset == dataset
    # Without a share there is no such round and no such dataset.
    assert (await refusal_of(people.eve.GetAnalystRound(asked))).status == "NOT_FOUND"
    assert (await refusal_of(people.eve.GetDataset(wanted))).status == "NOT_FOUND"
    assert not (await people.eve.ListAnalystRounds(analyst_pb2.ListAnalystRoundsRequest())).rounds
    return opened.round.id


async def submitted(people: People, round_id: str) -> None:
    for name, statements in WORKLOADS.items():
        workload, stub = workload_to_bytes(statements), people.analysts[name]
        tried = await stub.DryRunWorkload(dry_run(round_id, workload))
        receipt = (await stub.SubmitWorkload(uploaded(round_id, "s1", workload))).receipt
        assert (await stub.SubmitWorkload(uploaded(round_id, "s1", workload))).receipt == receipt
        assert (tried.statements, tried.queries) == (receipt.statements, receipt.queries)
        assert tried.max_half_width > 0
        assert (tried.sensitivity, tried.support) == {"ann": (4, 4), "bob": (3, 3)}[name]
    ann = people.analysts["ann"]
    tables = workload_to_bytes([Marginal(("colour",))] * 3)  # fewer statements and queries than allowed
    for call in (
        ann.DryRunWorkload(dry_run(round_id, tables)),
        ann.SubmitWorkload(uploaded(round_id, "s4", tables)),
    ):
        refused = await refusal_of(call)
        assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", "BUDGET")
        assert "sensitivity of 6, your share allows 4" in refused.message
    broken = ann.SubmitWorkload(uploaded(round_id, "s2", b"\xff"))
    assert (await refusal_of(broken)).status == "INVALID_ARGUMENT"
    early = ann.StreamResults(analyst_pb2.StreamResultsRequest(round_id=round_id))
    assert (await refusal_of(early)).reason == "STATE"
    synopsis = ann.DownloadSynopsis(analyst_pb2.DownloadSynopsisRequest(round_id=round_id))
    assert (await refusal_of(synopsis)).reason == "STATE"


async def states_seen(stub: analyst_pb2_grpc.AnalystServiceAsyncStub, round_id: str) -> list[int]:
    call = stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id))
    return [response.round.state async for response in call]


async def computed_and_released(people: People, round_id: str) -> None:
    operator = people.operator
    await operator.SealRound(operator_pb2.SealRoundRequest(round_id=round_id, request_id="seal"))
    workload = workload_to_bytes(WORKLOADS["ann"])
    late = people.analysts["ann"].SubmitWorkload(uploaded(round_id, "s3", workload))
    assert (await refusal_of(late)).status == "FAILED_PRECONDITION"
    await operator.RunRound(operator_pb2.RunRoundRequest(round_id=round_id, request_id="run"))
    details = operator.WatchRound(operator_pb2.WatchRoundRequest(round_id=round_id), timeout=SECONDS)
    async for response in details:
        if response.detail.progress.complete:
            break
    details.cancel()
    request = operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id="release")
    released = (await operator.ReleaseRound(request)).detail
    assert released.round.state == types_pb2.ROUND_STATE_RELEASED
    assert released.progress.peak_memory_bytes > 0


async def delivered(people: People, round_id: str) -> None:
    for name, stub in people.analysts.items():
        stream = await chunks(stub, round_id)
        columns = [chunk_from_bytes(chunk) for chunk in stream]
        assert [column.sequence for column in columns] == list(range(1, len(stream) + 1))
        assert columns[-1].last
        assert sum(len(column.answers) for column in columns) == {"ann": 10, "bob": 5}[name]
        assert await chunks(stub, round_id) == stream
        assert await chunks(stub, round_id, after=len(stream)) == []
        request = analyst_pb2.StreamResultsRequest(round_id=round_id, after_sequence=2**64 - 1)
        assert (await refusal_of(stub.StreamResults(request))).status == "OUT_OF_RANGE"


async def synopsis_shared(people: People, round_id: str) -> None:
    request = analyst_pb2.DownloadSynopsisRequest(round_id=round_id)
    copies = []
    for stub in people.analysts.values():
        cells = [cell async for response in stub.DownloadSynopsis(request) for cell in response.cells]
        records = list(zip(cells[::2], cells[1::2], strict=True))
        assert records
        assert all(colour < 2 and size < 4 for colour, size in records)
        copies.append(records)
    assert copies[0] == copies[1]
    assert (await refusal_of(people.eve.DownloadSynopsis(request))).status == "NOT_FOUND"


async def accounted(people: People, round_id: str) -> None:
    request = operator_pb2.ListAccountsRequest(dataset="shop")
    accounts = (await people.operator.ListAccounts(request)).accounts
    expected = {"data/shop", "analyst/shop/query/ann", "analyst/shop/query/bob"}
    assert {account.name for account in accounts} == expected
    for account in accounts:
        if account.HasField("order"):
            assert 0 < account.divergence < account.max_divergence
        else:
            assert 0 < account.spent.epsilon <= 8.0
    assert [account.name for account in accounts if account.HasField("order")] == ["data/shop"]
    rounds = (await people.auditor.ListAuditRounds(auditor_pb2.ListAuditRoundsRequest())).details
    assert [detail.round.id for detail in rounds] == [round_id]
    entries = (await people.auditor.ListJournal(auditor_pb2.ListJournalRequest())).entries
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    assert sum(entry.action == "spend" for entry in entries) == 3
