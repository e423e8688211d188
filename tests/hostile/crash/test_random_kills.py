"""Kills at random moments, whatever the server does then, while clients go through rounds all the time."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from harness.crash.again import Again
from harness.crash.callers import admit
from harness.crash.clients import Table
from harness.crash.dying_server import dying_server
from harness.crash.inspection import Inspection
from harness.crash.promises import Promises
from sqlalchemy.engine import make_url

# A life lasts at most so long at first; then longer after each that released no round, and shorter after each that
# did. So every step of a round is met, however fast the machine is.
FIRST_SECONDS, LONGER, SHORTER = 3.0, 1.15, 0.7
UNITS = ("query", "analyst")


def test_random_kills_break_no_promise(tmp_path: Path, store_url: str, kills: int, drawn: random.Random) -> None:
    store = make_url(store_url).get_backend_name()
    promises, stopping, admitted = Promises(), threading.Event(), threading.Event()
    with dying_server(tmp_path, store_url) as server:
        tables = [
            Table(f"table-{unit}", unit, server, tmp_path, promises, random.Random(drawn.random()))
            for unit in UNITS
        ]
        again = Again(server, tmp_path, promises, random.Random(drawn.random()))

        def everyone() -> None:
            admit(server, tmp_path)
            admitted.set()

        def rounds_of(table: Table) -> None:
            admitted.wait()
            table.register()
            # Some rounds are aborted: one is released on each table, however soon the kills are over.
            while not (stopping.is_set() and table.rounds):
                table.play()
            table.close()

        inspection = Inspection(server.state, tmp_path)
        with ThreadPoolExecutor(len(tables) + 3) as pool:
            clients: list[Future[None]] = [
                pool.submit(everyone),
                *(pool.submit(rounds_of, table) for table in tables),
            ]
            reading = pool.submit(again.go_on, stopping)
            try:
                longest, done = FIRST_SECONDS, 0
                for number in range(1, kills + 1):
                    assert server.live(longest * drawn.random()), server.log()
                    before, done = done, sum(table.rounds for table in tables)
                    longest *= LONGER if done == before else SHORTER
                    for each in (*clients, reading):
                        if each.done():
                            each.result()
                    inspection.check(promises)
                    if number % 10 == 0:
                        print(f"{store}: {number} of {kills} kills, {done} rounds released", flush=True)
            finally:
                stopping.set()
                admitted.set()
                # What has begun is brought to its end in peace.
                keeper = pool.submit(server.keep_alive)
                for each in (*clients, reading):
                    each.exception()
                server.stop()
                keeper.result()
            for each in (*clients, reading):
                each.result()
        assert server.deaths == kills
        assert server.faults == [], server.log()
        inspection.check(promises)
        released = inspection.compare()
        print(f"{store}: {kills} kills, {released} rounds released, {again.asked} questions again", flush=True)
        assert released == sum(table.rounds for table in tables) > 0
