"""Revoked while connected: nobody keeps a call, a stream or an upload for a minute, at none of the servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from harness.rounds_bench import SALT, write_table
from harness.server_process import (
    Credentials,
    Refusal,
    ServerProcess,
    key_to_pem,
    make_state,
    refusal_of,
    running,
    signing_request,
)
from harness.server_rounds import registration, terms

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2, operator_pb2_grpc, types_pb2

PROMISED_SECONDS = 60
REFUSED = Refusal("UNAUTHENTICATED", "IDENTITY", "the certificate is not, or no longer, in force")


@pytest.fixture
def servers(tmp_path: Path, store_url: str) -> Iterator[list[ServerProcess]]:
    """Two that share a PostgreSQL, or one with an SQLite file."""
    state = make_state(tmp_path / "state", store=store_url)
    write_table(state / "data")
    with running(state) as one:
        if store_url.startswith("sqlite"):
            yield [one]
        else:
            with running(state) as two:
                yield [one, two]


async def renewed(operator: operator_pb2_grpc.OperatorServiceAsyncStub, name: str, request_id: str) -> Credentials:
    key = ec.generate_private_key(ec.SECP256R1())
    request = operator_pb2.RenewAnalystRequest(
        name=name, signing_request=signing_request(key), request_id=request_id
    )
    response = await operator.RenewAnalyst(request)
    assert await operator.RenewAnalyst(request) == response
    return Credentials(response.authority, response.certificate, key_to_pem(key))


async def test_whoever_is_revoked_is_out_within_a_minute_and_nobody_else_is(servers: list[ServerProcess]) -> None:
    anns, bobs = await servers[0].admit("ann"), await servers[0].admit("bob")
    async with AsyncExitStack() as stack:

        async def stub(server: ServerProcess, credentials: Credentials) -> analyst_pb2_grpc.AnalystServiceAsyncStub:
            return analyst_pb2_grpc.AnalystServiceStub(await stack.enter_async_context(server.channel(credentials)))

        channel = await stack.enter_async_context(servers[0].channel(servers[0].operator()))
        operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        await operator.RegisterDataset(registration())
        opened = await operator.OpenRound(operator_pb2.OpenRoundRequest(terms=terms(), request_id="open"))
        round_id = opened.detail.round.id
        second = await renewed(operator, "ann", "first renewal")
        ann = [await stub(server, each) for server in servers for each in (anns, second)]
        bob = [await stub(server, bobs) for server in servers]

        async def uploading() -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
            header = analyst_pb2.SubmitHeader(round_id=round_id, request_id="1", commitment_salt=SALT)
            yield analyst_pb2.SubmitWorkloadRequest(header=header)
            await asyncio.Event().wait()

        request = analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)
        watches = [each.WatchAnalystRound(request) for each in ann]
        bobs_watches = [each.WatchAnalystRound(request) for each in bob]
        for watch in (*watches, *bobs_watches):
            assert (await anext(aiter(watch))).round.state == types_pb2.ROUND_STATE_OPEN
        uploads = [each.SubmitWorkload(uploading()) for each in ann]
        for each in ann:
            await each.GetIdentity(analyst_pb2.GetIdentityRequest())

        revocation = operator_pb2.RevokeAnalystRequest(name="ann", request_id="revoke")
        await operator.RevokeAnalyst(revocation)
        # A new call on an open connection is refused at once, at every server and with every certificate.
        for each in ann:
            assert await refusal_of(each.GetIdentity(analyst_pb2.GetIdentityRequest())) == REFUSED
        for call in (*watches, *uploads):
            assert await asyncio.wait_for(refusal_of(call), PROMISED_SECONDS) == REFUSED
        assert not any(watch.done() for watch in bobs_watches)

        # With a new key ann is let in again; the request that revoked has been carried out, however often it comes.
        third = await renewed(operator, "ann", "second renewal")
        await operator.RevokeAnalyst(revocation)
        for server in servers:
            again = await stub(server, third)
            assert (await again.GetIdentity(analyst_pb2.GetIdentityRequest())).name == "ann"
        for each in ann:
            assert await refusal_of(each.GetIdentity(analyst_pb2.GetIdentityRequest())) == REFUSED
        for watch in bobs_watches:
            watch.cancel()
