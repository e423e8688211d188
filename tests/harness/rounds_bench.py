"""A small table, three analysts and a clock that the test moves, for tests of the rounds service."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from equipoise.accounting import DELTA_UNIT, OUTWARD, Cost, charge_at, events_from_json
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Progress, RoundState, Share, Terms
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.records.record import stream_digest
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.computation.streams import StreamDigest
from equipoise_server.config_file import CONFIG_FILE, load_config
from equipoise_server.conversion import epsilon_at
from equipoise_server.ledger.accounts import Account, account
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.new_datasets import USUAL_ORDERS, AccountingMethod
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.services import round_services
from equipoise_server.rounds.store.results import Runs
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables.round import rounds
from equipoise_server.transparency import keys
from equipoise_server.transparency.keys import PublicKey, Purpose
from equipoise_server.transparency.sequencing import Sequencer
from equipoise_server.transparency.signing import Signer
from harness.admitted import admit
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.stores import sqlite_url
from harness.waiting import PATIENCE, pauses

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
RECORDS = 400
ANALYSTS = ("ann", "bob", "cyd")
KEY = bytes(range(32))
SEED = b"a seed that only tests may choose"[:32]
SALT = b"a salt that everybody may know ..."[:32]
DEPLOYMENT = "bench"
AUDITOR_KEY = X25519PrivateKey.from_private_bytes(bytes(range(32, 64)))
CAP = Budget(20.0, 1e-3)
COLOUR, SIZE = attribute("colour"), attribute("size")

TERMS = Terms(
    dataset="shop",
    unit="query",
    data_budget=Budget(8.0, 1e-4),
    analyst_budget=Budget(8.0, 1e-4),
    beta=0.05,
    mechanism="equilibrium",
    shares=(Share("ann", 4, 12), Share("bob", 4, 12)),
    options={"play": "mixed", "game_share": 0.5},  # so that plans are found at once
    accepted=SMALL_TABLE,
)
ANN: tuple[Statement, ...] = (COLOUR == "red", Marginal(("colour", "size")), SIZE.isin(["s", "m"]))
BOB: tuple[Statement, ...] = (Marginal(("size",)), (COLOUR == "red") | (SIZE == "xl"))


@dataclass
class HandClock:
    """A clock that stands still until it is moved."""

    now: datetime = datetime(2024, 1, 1, 12, 0, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


def write_table(directory: Path, records: int = RECORDS) -> None:
    """A CSV table in which every cell of the schema occurs."""
    sizes = ("s", "m", "l", "xl")
    rows = [f"{('red', 'green')[row % 3 % 2]},{sizes[row * row % 7 % 4]}" for row in range(records)]
    (directory / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")


def log_of(directory: Path, store: Store, guard: Guard, now: datetime) -> Sequencer:
    """The log of a store, begun where it has not been; a whole state directory's has begun, with its own keys."""
    if (directory / CONFIG_FILE).exists():
        signer = Signer(directory / "keys", f"equipoise/{load_config(directory).deployment}")
    else:
        signer = Signer(directory, f"equipoise/{DEPLOYMENT}")
    with store.write() as connection:
        if not keys.is_started(connection):
            auditor = PublicKey(Purpose.AUDITOR, AUDITOR_KEY.public_key().public_bytes_raw(), now)
            keys.start_log(connection, [signer.make_key(now), auditor], now)
    return Sequencer(store, guard, signer)


@dataclass
class Bench:
    """The service on a directory and a store, restarted at will."""

    directory: Path
    url: str
    clock: HandClock = field(default_factory=HandClock)
    seed: bytes = SEED
    accounting: AccountingMethod = USUAL_ORDERS
    audit_window_days: int = 0
    drawn: int = 0  # seeds
    distinct_seeds: bool = False
    retention_days: int = 30
    absence_days: int = 0
    worker_idle_seconds: float = 120
    elapsed: Callable[[], float] | None = None  # by default the hand clock's own time
    begun: bool = False  # the directory is a copy of another bench's

    def __post_init__(self) -> None:
        if self.begun:
            self.start()
            self.rounds.lifecycle.recover()
            return
        (self.directory / "data").mkdir(exist_ok=True)
        write_table(self.directory / "data")
        self.start()
        self.rounds.lifecycle.recover()
        with self.store.write() as connection:
            admit(connection, ANALYSTS, self.clock())
        self.rounds.datasets.register(
            "shop", "shop.csv", SCHEMA, CAP, CAP, "register", accounting=self.accounting, accepted=LARGE_CAPS
        )

    def draw(self) -> bytes:
        """The next seed: the same each time, so that runs can be compared, unless they are to be distinct."""
        self.drawn += 1
        return (
            sha256(self.seed + bytes([self.drawn])).digest()
            if self.distinct_seeds and self.drawn > 1
            else self.seed
        )

    def start(self) -> None:
        """Open the store and the service."""
        self.store = open_store(self.url)
        self.guard = Guard(self.directory / "guard")
        sequencer = log_of(self.directory, self.store, self.guard, self.clock())
        self.sequencer, self.signer = sequencer, sequencer.signer
        self.rounds = round_services(
            self.store,
            self.directory / "data",
            KEY,
            clock=self.clock,
            seed_source=self.draw,
            guard=self.guard,
            sequencer=sequencer,
            deployment=self.signer.origin.removeprefix("equipoise/"),
            retention_days=self.retention_days,
            absence_days=self.absence_days,
            elapsed=self.elapsed,
            audit_window_days=self.audit_window_days,
            worker_idle_seconds=self.worker_idle_seconds,
        )
        self.sessions = Sessions(self.rounds.context, self.rounds.opening, self.rounds.lifecycle, self.guard)

    def stop(self) -> None:
        """Close both."""
        self.sessions.loops.stop()
        self.rounds.lifecycle.close()
        self.store.close()

    def restart(self) -> None:
        """What a new server does after a crash."""
        self.stop()
        self.start()
        self.rounds.lifecycle.recover()

    def opened(self, terms: Terms = TERMS) -> str:
        """The id of a new round."""
        return self.rounds.opening.open(terms, f"open-{time.monotonic_ns()}").id

    def sealed(self, terms: Terms = TERMS) -> str:
        """The id of a new round to which ann and bob have submitted."""
        round_id = self.opened(terms)
        self.rounds.submissions.submit("ann", round_id, f"ann-{round_id}", workload_to_bytes(ANN), SALT)
        self.rounds.submissions.submit("bob", round_id, f"bob-{round_id}", workload_to_bytes(BOB), SALT)
        self.rounds.lifecycle.seal(round_id, f"seal-{round_id}")
        return round_id

    def completed(self, terms: Terms = TERMS) -> str:
        """The id of a new round that waits for its release."""
        round_id = self.sealed(terms)
        self.rounds.lifecycle.run(round_id, f"run-{round_id}")
        self.wait(round_id)
        return round_id

    def released(self, terms: Terms = TERMS) -> RoundRecord:
        """A new released round whose streams are open."""
        round_id = self.completed(terms)
        record = self.rounds.lifecycle.release(round_id, f"release-{round_id}")
        self.clock.move(60)
        return record

    def wait(self, round_id: str, seconds: float = PATIENCE) -> Progress:
        """Wait for the worker's end, good or bad."""
        pause = pauses(seconds)
        while True:
            progress = self.rounds.views.progress(round_id)
            if progress.complete or progress.phase.startswith("failed"):
                return progress
            time.sleep(next(pause))

    def state(self, round_id: str) -> RoundState:
        """Where the round stands."""
        return self.rounds.views.get(round_id).state

    def needed(self, name: str) -> float:
        """The least epsilon of a cap, at its present delta, under which what is committed on an account fits."""
        with self.store.read() as connection:
            held = account(connection, name)
        left = held.cap.delta - held.limit.delta / DELTA_UNIT
        return epsilon_at(held.committed.divergence, held.cap.order or 0, left / OUTWARD) * OUTWARD

    def on_data(self) -> Account:
        """What stands on the data's account."""
        with self.store.read() as connection:
            return account(connection, "data/shop")

    def due(self, plan: MechanismPlan) -> Cost:
        """What the data's account counts of a plan, by the plan's parts."""
        return charge_at(events_from_json(plan.data_events), self.on_data().cap.order or 0)

    def charged(self) -> dict[str, tuple[float, float]]:
        """Epsilon spent, and epsilon spent or reserved, by account."""
        records, _ = self.rounds.budgets.accounts("shop")
        return {record.name: (record.spent.epsilon, record.committed.epsilon) for record in records}


def new_bench(directory: Path, url: str, distinct_seeds: bool = False) -> Bench:
    """A bench on an empty store, in a directory without another.

    On SQLite a store with its log and table is copied from the first that was made, in a seventh of the time that
    making one takes. The log has the same key in every copy.
    """
    on_sqlite = url == sqlite_url(directory)
    if on_sqlite:
        shutil.copytree(_first_directory(), directory, dirs_exist_ok=True)
    return Bench(directory, url, distinct_seeds=distinct_seeds, begun=on_sqlite)


@cache
def _first_directory() -> Path:
    """What a bench has left as it was begun; removed when the tests end."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    Bench(directory, sqlite_url(directory)).stop()
    return directory


def compute(bench: Bench, round_id: str, asked: Sequence[str] = ("ann", "bob")) -> None:
    """What a worker leaves, without the time that it takes: which answers they are plays no part here."""
    with bench.store.write() as connection:
        running = rounds.update().where(rounds.c.id == round_id)
        connection.execute(running.values(state=RoundState.RUNNING.value))
    runs = Runs(bench.store, bench.clock)
    run_id = runs.begin(round_id)
    streams = {}
    for analyst in asked:
        chunk = f"the results of {analyst}".encode()
        runs.keep(run_id, analyst, 1, [chunk])
        streams[analyst] = StreamDigest(stream_digest(round_id, [chunk]), 1, 1)
    runs.complete(run_id, Synopsis.of_cells(np.zeros(3, dtype=np.int64), (2, 4)), streams, 0)
