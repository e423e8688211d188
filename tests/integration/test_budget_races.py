"""Sixty-four clients at once for the last budget: exactly as many get it as fit, on both stores."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from integration.rounds_bench import write_table
from integration.server_process import make_state, refusal_of, running
from integration.test_server_round import registration, terms, uploaded
from sqlalchemy import func, select
from stores import Cluster
from unit.ledger.ledger_store import ledger_store, open_with, totals

from equipoise.accounting import Cost
from equipoise_server.ledger import journal
from equipoise_server.ledger.caps import Cap, Composition
from equipoise_server.ledger.conversion import largest_rho
from equipoise_server.storage.store import open_store
from equipoise_server.storage.tables import charges

CLIENTS, PROCESSES, FITTING = 64, 4, 23
CAP = Cap(1.0, 1e-6)
PART = largest_rho(CAP.epsilon, CAP.delta) // FITTING
DATA, ANN = "data/t", "analyst/t/query/ann"

# Each client has an engine, and so connections, of its own; all begin when they are told to.
RACE = """
import sys, threading
from datetime import UTC, datetime
from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, Unavailable
from equipoise_server.ledger.charges import Charge, reserve
from equipoise_server.storage.store import open_store

url, part, clients = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
asked = [Charge("data/t", Cost(rho=part), "{}"), Charge("analyst/t/query/ann", Cost(rho=1), "{}")]
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


def test_processes_racing_for_the_last_budget_get_exactly_what_fits(store_url: str) -> None:
    rounds = [f"r{number}" for number in range(CLIENTS)]
    store = ledger_store(store_url, rounds)
    open_with(store, DATA, Composition.SUM, CAP)
    open_with(store, ANN, Composition.WORST, CAP)
    with ExitStack() as stack:
        racers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", RACE, store_url, str(PART), *rounds[number::PROCESSES]],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(PROCESSES)
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        told = [racer.communicate("go\n", timeout=300)[0].split() for racer in racers]
    assert all(racer.returncode == 0 for racer in racers)
    fitting = {round_id for each in told for round_id in each}
    assert len(fitting) == sum(map(len, told)) == FITTING
    assert totals(store, DATA)[1] == Cost(rho=FITTING * PART)
    with store.read() as connection:
        journal.verify_stored(connection)
        assert set(connection.execute(select(charges.c.round_id)).scalars()) == fitting
    store.close()
