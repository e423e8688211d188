"""A flood of submits, good and bad, costs nobody anything: not the budgets, not the others, not the server."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from harness.loaded_server import TABLE, opened, serving, uploaded
from harness.server_process import Credentials, Refusal
from harness.waiting import PATIENCE

from equipoise.accounting import charge_at, charge_of, events_from_json
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

ROW, FLOOD = 12, 90  # submits one after another, and then at once
SETTINGS = ("uploads_per_second = 1", "burst_seconds = 12", "uploads_per_caller = 8")
TOO_MANY = (Marginal(("row",)), Marginal(("column",)))  # two statements, the share allows one
UNKNOWN = (Marginal(("no such attribute",)),)


@pytest.mark.full
async def test_submit_floods_are_refused_and_nothing_is_charged(tmp_path: Path) -> None:
    with serving(tmp_path / "state", SETTINGS) as server:
        bob_s, eve_s = await server.admit("bob"), await server.admit("eve")
        async with AsyncExitStack() as stack:

            async def connect(credentials: Credentials) -> aio.Channel:
                return await stack.enter_async_context(server.channel(credentials))

            operator = operator_pb2_grpc.OperatorServiceStub(await connect(server.operator()))
            auditor = auditor_pb2_grpc.AuditorServiceStub(await connect(server.auditor()))
            bob = analyst_pb2_grpc.AnalystServiceStub(await connect(bob_s))
            # As the client that we ship does: gRPC's for asyncio loses the refusal of what is still being sent.
            blocking: Any = stack.enter_context(server.blocking_channel(eve_s))
            eve: Any = analyst_pb2_grpc.AnalystServiceStub(blocking)
            round_id = await opened(operator)

            async def books() -> tuple[bytes, ...]:
                accounts = await operator.ListAccounts(operator_pb2.ListAccountsRequest(dataset="grid"))
                journal = await auditor.ListJournal(auditor_pb2.ListJournalRequest())
                detail = await operator.GetRound(operator_pb2.GetRoundRequest(round_id=round_id))
                return tuple(each.SerializeToString(deterministic=True) for each in (accounts, journal, detail))

            def submit(number: int) -> Any:
                statements = (TABLE, TOO_MANY, UNKNOWN)[number % 3]
                requests = uploaded(round_id if number % 4 else "no such round", f"e{number}", statements)
                return eve.SubmitWorkload.future(requests, timeout=PATIENCE)

            def outcome(call: Any) -> str:
                return "OK" if call.exception() is None else Refusal.of(call).reason

            before = await books()
            outcomes = Counter(outcome(submit(number)) for number in range(ROW))
            assert set(outcomes) == {"OK", "BUDGET", "INVALID", "NOT_FOUND"}
            outcomes = Counter(map(outcome, [submit(number) for number in range(ROW, ROW + FLOOD)]))
            # It is refused for its rate, long before the server would be busy with it.
            assert outcomes["RATE"] > FLOOD // 10
            assert set(outcomes) <= {"OK", "BUDGET", "INVALID", "NOT_FOUND", "RATE"}
            assert await books() == before

            # What one caller has used up is its own.
            receipt = await bob.SubmitWorkload(uploaded(round_id, "b"))
            assert receipt.receipt.statements == 1
            sealed = await operator.SealRound(operator_pb2.SealRoundRequest(round_id=round_id, request_id="seal"))
            assert sealed.detail.round.state == types_pb2.ROUND_STATE_SEALED
            accounts = await operator.ListAccounts(operator_pb2.ListAccountsRequest(dataset="grid"))
            plan = sealed.detail.plan
            committed = {each.name: each.committed for each in accounts.accounts}
            assert committed["data/grid"].epsilon > 0
            journal = await auditor.ListJournal(auditor_pb2.ListJournalRequest())
            (charged,) = [
                entry for entry in journal.entries if (entry.account, entry.round_id) == ("data/grid", round_id)
            ]
            (order,) = [each.order for each in accounts.accounts if each.name == "data/grid"]
            parts = events_from_json(charged.events)
            assert charge_of(parts).rho == plan.data_cost.rho > 0
            assert charged.cost.divergence == charge_at(parts, order).divergence
            mine = await bob.GetAnalystRound(analyst_pb2.GetAnalystRoundRequest(round_id=round_id))
            assert mine.round.state == types_pb2.ROUND_STATE_SEALED
            assert '"unexpected"' not in server.log()
