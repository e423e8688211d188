"""Sixty-four clients at once for the last budget: exactly as many get it as fit, on both stores."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import AsyncExitStack, ExitStack
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from grpc import aio
from harness.ledger_store import ledger_store, open_with, totals
from harness.preloaded import start
from harness.rounds_bench import write_table
from harness.server_process import Refusal, make_state, running
from harness.server_rounds import WORKLOADS, registration, terms, uploaded
from sqlalchemy import select

from equipoise.accounting import RHO_UNIT, Cost, ZcdpEvent, charge_at, events_from_json, events_to_json
from equipoise.v1 import analyst_pb2_grpc, operator_pb2, operator_pb2_grpc, types_pb2
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.config_file import load_config
from equipoise_server.ledger import accounts
from equipoise_server.ledger.caps import Cap, Composition, at_order, fits, limits
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.storage.tables.ledger import charges

CLIENTS, PROCESSES, FITTING = 64, 4, 23
CAP = Cap(1.0, 1e-6)
ADDING = at_order("cap", CAP)
# So that `FITTING` of them fit exactly, and nothing beside.
PART = ZcdpEvent("answers", Fraction(limits(ADDING).divergence // FITTING, RHO_UNIT) / Fraction(ADDING.order or 1))
DATA, ANN = "data/t", "analyst/t/query/ann"

# Each client has an engine, and so connections, of its own; all begin when they are told to.
RACE = """
import sys, threading
from datetime import UTC, datetime
from equipoise.accounting import charge_of, events_from_json
from equipoise.errors import BudgetExhausted, Unavailable
from equipoise_server.ledger.charges import Charge, reserve
from equipoise_server.storage.store import open_store

url, part, clients = sys.argv[1], sys.argv[2], sys.argv[3:]
cost = charge_of(events_from_json(part))
asked = [Charge(name, cost, part) for name in ("data/t", "analyst/t/query/ann")]
stores = [open_store(url) for _ in clients]
fitting, go = [], threading.Event()

def race(store, round_id):
    go.wait()
    while True:
        try:
            with store.write() as connection:
                reserve(connection, round_id, asked, datetime.now(UTC))
            fitting.append(round_id)
        except Unavailable:
            continue  # it took too long to get a turn
        except BudgetExhausted:
            pass
        return

threads = [threading.Thread(target=race, args=pair) for pair in zip(stores, clients)]
for thread in threads: thread.start()
print("ready", flush=True)
sys.stdin.readline()
go.set()
for thread in threads: thread.join()
print(*fitting, flush=True)
"""


@pytest.mark.full
def test_processes_racing_for_the_last_budget_get_exactly_what_fits(store_url: str, tmp_path: Path) -> None:
    rounds = [f"r{number}" for number in range(CLIENTS)]
    store = ledger_store(store_url, rounds)
    open_with(store, DATA, Composition.SEQUENTIAL, ADDING)
    open_with(store, ANN, Composition.PARALLEL, CAP)
    with (tmp_path / "racers.log").open("w") as log, ExitStack() as stack:
        racers = [
            start(
                RACE,
                store_url,
                events_to_json("test", [PART]),
                *rounds[number::PROCESSES],
                stderr=log,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                workers=False,
            )
            for number in range(PROCESSES)
        ]
        for racer in racers:
            stack.enter_context(racer)
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            print("go", file=racer.stdin, flush=True)
        told = [racer.stdout.readline().split() for racer in racers if racer.stdout is not None]
        assert all(racer.wait(300) == 0 for racer in racers)
    fitting = {round_id for each in told for round_id in each}
    assert len(fitting) == sum(map(len, told)) == FITTING
    assert totals(store, DATA)[1] == Cost(divergence=FITTING * charge_at([PART], ADDING.order or 1).divergence)
    with store.read() as connection:
        check_accounts(connection)
        assert set(connection.execute(select(charges.c.round_id)).scalars()) == fitting
    store.close()


@pytest.fixture
def state(tmp_path: Path, store_url: str) -> Path:
    """A state directory whose server lets one operator make every call at once."""
    # All of one operator's, and at once: more than one caller is allowed elsewhere.
    settings = [
        f"calls_per_caller = {2 * CLIENTS}",
        f"connections_per_caller = {2 * CLIENTS}",
        f"working_threads = {CLIENTS}",
    ]
    made = make_state(tmp_path / "state", settings, store_url)
    write_table(made / "data")
    return made


@pytest.mark.full
async def test_clients_racing_at_servers_get_exactly_what_fits(state: Path) -> None:
    """64 clients open a round each at once, on PostgreSQL at two servers; all that are opened can be sealed."""
    shared = load_config(state).store.startswith("postgresql")
    async with AsyncExitStack() as stack:
        servers = [stack.enter_context(running(state)) for _ in range(2 if shared else 1)]
        credentials = servers[0].operator()
        analysts = {name: await servers[0].admit(name) for name in WORKLOADS}
        channels = [
            await stack.enter_async_context(servers[number % len(servers)].channel(credentials))
            for number in range(CLIENTS)
        ]
        clients = [operator_pb2_grpc.OperatorServiceStub(channel) for channel in channels]
        ann = analyst_pb2_grpc.AnalystServiceStub(
            await stack.enter_async_context(servers[-1].channel(analysts["ann"]))
        )
        await clients[0].RegisterDataset(registration())
        asked = terms()
        asked.data_budget.epsilon = 2.0
        asked.options = '{"play": "mixed", "game_share": 0.5}'  # a plan that is found at once, as 64 are made

        async def opens(number: int) -> str:
            request = operator_pb2.OpenRoundRequest(terms=asked, request_id=f"open {number}")
            try:
                return (await clients[number].OpenRound(request)).detail.round.id
            except aio.AioRpcError as error:
                if Refusal.of(error).reason != "BUDGET":
                    raise
                return ""

        async def seals(client: operator_pb2_grpc.OperatorServiceAsyncStub, round_id: str) -> None:
            request = operator_pb2.SealRoundRequest(round_id=round_id, request_id=f"seal {round_id}")
            sealed = (await client.SealRound(request)).detail.round
            assert sealed.state == types_pb2.ROUND_STATE_SEALED

        ids = [round_id for round_id in await asyncio.gather(*map(opens, range(CLIENTS))) if round_id]
        assert 1 < len(ids) < CLIENTS
        for round_id in ids:
            await ann.SubmitWorkload(uploaded(round_id, f"s {round_id}", workload_to_bytes(WORKLOADS["ann"])))
        await asyncio.gather(*map(seals, clients, ids))
        assert len(ids) == await asyncio.to_thread(fitting_rounds, state, ids[0])


def fitting_rounds(state: Path, round_id: str) -> int:
    """How many rounds of this cost the data account has room for, by the ledger's arithmetic alone."""
    store = open_deployment(state, datetime.now(UTC)).open_store()
    with store.read() as connection:
        check_accounts(connection)
        held = accounts.account(connection, "data/shop")
        events = read_round(connection, round_id).plan.data_events
    cost = charge_at(events_from_json(events), held.cap.order or 0)
    store.close()
    total, count = cost, 0
    while fits(total, held.cap, held.limit):
        total, count = total + cost, count + 1
    return count
