"""Everybody who uses a server at the same time, and the server, life after life."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from harness.crash.again import Again
from harness.crash.callers import ANALYSTS, admit
from harness.crash.clients import Table
from harness.crash.dying_server import SECONDS
from harness.crash.evidence import Audits
from harness.crash.inspection import Inspection
from harness.crash.promises import Promises
from harness.server_process import running
from harness.soak.identities import ComingsAndGoings
from harness.soak.interactive import SessionTable
from harness.soak.measures import MEASURES, Point, Sample, points, sample, slope
from harness.soak.restless import RestlessAnalyst, RestlessOperator

RESTLESS = ("dan", "eve")
REVOKED = "fay"  # again and again
UNITS = ("query", "analyst")
SAMPLE_SECONDS = 1.0
PRINT_SECONDS = 60.0
GROWTH_MINUTES = 10

SCRIPT = """
import asyncio, pathlib, sys
from equipoise_server.app import serve

if __name__ == "__main__":
    asyncio.run(serve(pathlib.Path(sys.argv[1]), ready=lambda port: print(port, flush=True)))
"""


@dataclass(frozen=True)
class Life:
    """For how many seconds a server lives, and the signal that ends it."""

    seconds: float
    ending: signal.Signals


@dataclass
class RestartedServer:
    """What its clients know of a server, from life to life."""

    state: Path
    faults: list[int] = field(default_factory=list)
    born: float = field(default_factory=time.monotonic)

    def patient(self, since: float) -> bool:
        """Whether what has been waited for since then may still come in this life."""
        return time.monotonic() < max(since, self.born) + SECONDS

    def log(self) -> str:
        """The last that the server has logged."""
        return (self.state / "server.log").read_text()[-4000:]


class Soak:
    """Everybody who uses `server`: for each unit a table of rounds and one of sessions, with their analysts; those
    who hang up; those who are revoked; and an auditor at the end of each life.

    `pulse`: everybody waits for so many seconds at most between two acts, beside what it waits for in any case.
    """

    def __init__(self, server: RestartedServer, profiles: Path, drawn: random.Random, pulse: float = 0.0) -> None:
        self._server, self._profiles, self._pulse, self._random = server, profiles, pulse, _another(drawn)
        self._promises = Promises()
        self._inspection = Inspection(server.state, profiles)
        self._tables = [
            Table(f"table-{unit}", unit, server, profiles, self._promises, _another(drawn), RESTLESS)
            for unit in UNITS
        ]
        self._stopping = threading.Event()
        self._sessions = [
            SessionTable(
                f"sessions-{unit}",
                unit,
                server,
                profiles,
                self._promises,
                _another(drawn),
                (REVOKED,),
                stopping=self._stopping,
                pulse=pulse,
            )
            for unit in UNITS
        ]
        steady = (*ANALYSTS, *RESTLESS)
        self._again = Again(server, profiles, self._promises, _another(drawn), steady, pulse=pulse)
        self._restless = [
            RestlessAnalyst(profiles / name, name, self._promises, _another(drawn), pulse=pulse)
            for name in (*RESTLESS, *RESTLESS)
        ]
        self._looking = RestlessOperator(server, self._promises, _another(drawn), pulse=pulse)
        self._identities = ComingsAndGoings(
            server, profiles, self._promises, _another(drawn), REVOKED, pulse=max(pulse, 1.0)
        )
        self._audits = Audits(server, profiles, self._promises, (*steady, REVOKED))
        self._clients: list[Future[None]] = []
        self._begun = self._told = time.monotonic()
        self._minutes = 0

    @property
    def rounds(self) -> int:
        """How many have been released."""
        return sum(table.rounds for table in (*self._tables, *self._sessions))

    @property
    def calls(self) -> int:
        """How many questions were asked beside those that rounds need."""
        return self._again.asked + self._looking.calls + sum(each.calls for each in self._restless)

    @property
    def statements(self) -> int:
        """How many were answered in sessions."""
        return len(self._promises.receipts)

    def live(self, lives: Sequence[Life]) -> list[list[Point]]:
        """The points of each life, in seconds since the beginning. Raises whatever is wrong."""
        seen = []
        acts = [
            *(self._rounds_of(table) for table in (*self._tables, *self._sessions)),
            self._again.go_on,
            self._looking.go_on,
            self._identities.go_on,
            *(each.go_on for each in self._restless),
        ]
        with ThreadPoolExecutor(len(acts)) as pool:
            try:
                for life in lives:
                    with running(self._server.state, script=SCRIPT) as server:
                        self._server.born = time.monotonic()
                        if not self._clients:
                            admit(self._server, self._profiles)
                            admit(self._server, self._profiles, (*RESTLESS, REVOKED))
                            self._clients = [pool.submit(act, self._stopping) for act in acts]
                        lived = self._watch(server.process.pid, life.seconds)
                        if life is lives[-1]:
                            # What has begun is brought to its end in peace.
                            self._stopping.set()
                            for each in self._clients:
                                each.result(SECONDS)
                        self._audits.audit()
                        server.process.send_signal(life.ending)
                        ended = server.process.wait(SECONDS)
                    assert ended == (-life.ending if life.ending is signal.SIGKILL else 0), self._server.log()
                    self._inspection.check(self._promises)
                    since = self._server.born - self._begun
                    seen.append([Point(since + point.time, point.sample) for point in points(*lived)])
            finally:
                self._stopping.set()
                if not all(each.done() for each in self._clients):
                    # No server comes back: nobody shall wait for one.
                    self._server.faults.append(-1)
        return seen

    def compare(self) -> int:
        """Every released round is what its computation gives undisturbed; how many there are."""
        return self._inspection.compare()

    def _rounds_of(self, table: Table) -> Callable[[threading.Event], None]:
        def act(stopping: threading.Event) -> None:
            table.register()
            while not stopping.is_set():
                table.play()
                stopping.wait(self._pulse * self._random.random())
            table.close()

        return act

    def _watch(self, process_id: int, seconds: float) -> tuple[list[float], list[Sample]]:
        """The ages of a life in which it was looked at, and what was seen; each table gets to release a round."""
        ages: list[float] = []
        samples: list[Sample] = []
        while (age := time.monotonic() - self._server.born) < seconds or not all(
            table.rounds for table in (*self._tables, *self._sessions)
        ):
            ages.append(age)
            samples.append(sample(process_id))
            for each in self._clients:
                if each.done():
                    each.result()
            if time.monotonic() > self._told + PRINT_SECONDS:
                self._told += PRINT_SECONDS
                self._tell(samples[-1])
                self._minutes += 1
                if self._minutes % GROWTH_MINUTES == 0:
                    tell_growth("this life so far", points(ages, samples))
            time.sleep(SAMPLE_SECONDS)
        return ages, samples

    def _tell(self, seen: Sample) -> None:
        print(
            f"minute {(time.monotonic() - self._begun) / 60:3.0f}: {seen.memory:6.1f} MiB, "
            f"{seen.descriptors:3.0f} descriptors, {seen.threads:3.0f} threads, {seen.children:2.0f} children; "
            f"{self.rounds} rounds, {self.calls} calls, {self.statements} statements, "
            f"{self._identities.revoked} revocations, {self._audits.audits} audits",
            flush=True,
        )


def tell_growth(name: str, *lives: Sequence[Point]) -> list[tuple[str, str, str]]:
    """Prints how fast everything grows in an hour; what grows faster than is allowed."""
    grown = []
    for measure in MEASURES:
        found = slope(lives, measure)
        print(f"  {measure:12} {name:36} {found}", flush=True)
        if found.exceeds(ALLOWED[measure]):
            grown.append((measure, name, str(found)))
    return grown


def _another(drawn: random.Random) -> random.Random:
    return random.Random(drawn.random())


# Parts of the whole. Tables are registered in the first life. The last one shows how a process grows.
LIVES = (
    Life(0.03, signal.SIGTERM),
    Life(0.04, signal.SIGKILL),
    Life(0.03, signal.SIGKILL),
    Life(0.9, signal.SIGTERM),
)
# Growth in an hour; memory in MiB. If each call left a few KiB behind it would be 100 MiB, and if each round left a
# descriptor, a thread or a worker, hundreds of these. What is allowed is far less, and more than what a server that
# loses nothing is seen to drift by.
ALLOWED = {"memory": 24.0, "descriptors": 30.0, "threads": 30.0, "children": 10.0}
