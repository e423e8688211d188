"""Released rounds in a state directory, to be replayed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from equipoise.model.accounts import Budget
from equipoise.wire.results import chunk_from_bytes, results_to_chunks
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.new_state import create_state
from equipoise_server.clock import system_clock
from equipoise_server.datasets.persons.table import records_of
from equipoise_server.datasets.source import source_at
from equipoise_server.identity.keyfiles import write_private
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.mechanisms.prior.measure import measured_for
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.replay.replay import Replay, Replayed
from equipoise_server.replay.seed import OpenedSeed, unsealed
from equipoise_server.replay.stored import StoredRound
from equipoise_server.storage.store import read_only
from equipoise_server.transparency.keys import PublicKey, Purpose, add
from equipoise_server.transparency.signing import private_pem
from harness.rounds_bench import ANN, BOB, SALT, TERMS, Bench

QUERY = 5
CHECKS = ["records", "plan", "seed", "workloads", "data", "answers", "streams", "synopsis"]
SESSION_CHECKS = ["records", "plan", "seed", "workloads", "slots", "data", "answers", "told", "streams", "synopsis"]
ROUNDS = ("equilibrium", "pooled", "projection")  # one that is exact, and two that are fitted in floats
OPTIONS: dict[str, dict[str, object]] = {name: {} for name in MECHANISMS} | {
    "equilibrium": {"play": "mixed", "rounds": 8, "game_share": 0.5},
    "pooled": {"synopsis": 512},
    "small_db": {"database_size": 3},
}
NONCE = b"a nonce that an auditor has drawn"[:32]
Change = Callable[[sqlite3.Connection, str], object]  # of what is stored of the round with this id


@dataclass(frozen=True)
class Released:
    """A state directory whose store holds released rounds, by mechanism; and the auditor's key."""

    state: Path
    rounds: dict[str, str]
    key: X25519PrivateKey

    @property
    def database(self) -> Path:
        """The store's file."""
        return self.state / "equipoise.db"

    @property
    def key_file(self) -> Path:
        """The key's file."""
        return self.state / "auditor.key"

    def copy(self, place: Path) -> Released:
        """The same again, to be altered."""
        shutil.copytree(self.state, place)
        return replace(self, state=place)

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """The store to somebody who may write whatever they like: nothing that guards its rows is left."""
        with closing(sqlite3.connect(self.database)) as connection:
            triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for (name,) in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            yield connection
            connection.commit()

    def altered(self, place: Path, name: str, change: Change) -> Replayed:
        """What a replay finds in a copy at `place` after a change of what is stored of this mechanism's round."""
        copy = self.copy(place)
        with copy.opened() as connection:
            change(connection, copy.rounds[name])
        return copy.replay(name)

    def replay(self, name: str, seed: bytes | None = None) -> Replayed:
        """What a replay of the round of this mechanism finds; `seed`: its own, where it need not be opened."""
        url, guard, round_id = f"sqlite:///{self.database}", Guard(self.state / GUARD_FILE), self.rounds[name]
        with read_only(url) as store:
            return Replay(
                StoredRound(store, round_id),
                lambda commitment: (
                    unsealed(url, guard, round_id, self.key, commitment, system_clock())
                    if seed is None
                    else OpenedSeed(seed, None)
                ),
                lambda dataset: records_of(
                    source_at(self.state / "data" / dataset.source), dataset.person, dataset.persons
                ),
                lambda *_: None,
            ).run()


def release(place: Path, names: Iterable[str], options: Mapping[str, object] | None = None) -> Released:
    """Live and release a round of each mechanism, that of the equilibrium with an auditor's nonce.

    `options`: of all of them; None: the usual ones of each.
    """
    rounds = {}
    with state_directory(place) as (bench, key):
        for name in names:
            own = OPTIONS[name] if options is None else options
            terms = replace(TERMS, mechanism=name, options=own, data_budget=Budget(2.0, 1e-4))
            rounds[name] = bench.opened(terms)
            if name == "equilibrium":
                bench.rounds.seeds.set_nonce(rounds[name], NONCE, "nonce")
            for analyst, asked in (("ann", ANN), ("bob", BOB)):
                bench.rounds.submissions.submit(
                    analyst, rounds[name], f"{analyst} {name}", workload_to_bytes(asked), SALT
                )
            bench.rounds.lifecycle.seal(rounds[name], f"seal {name}")
            bench.rounds.lifecycle.run(rounds[name], f"run {name}")
        for name, round_id in rounds.items():
            bench.wait(round_id)
            bench.rounds.lifecycle.release(round_id, f"release {name}")
    return Released(bench.directory, rounds, key)


def measured_wrongly(*arguments: Any) -> Measured:
    """Do what `measured_for` does, but change the first number of each residual."""
    measured = measured_for(*arguments)
    numbers = {axes: residual.copy() for axes, residual in measured.numbers.items()}
    for residual in numbers.values():
        residual.flat[0] += 50 + abs(int(residual.flat[0]))
    return replace(measured, numbers=numbers)


@contextmanager
def state_directory(place: Path) -> Iterator[tuple[Bench, X25519PrivateKey]]:
    """A service on a new state directory, to be stopped; and the key of an auditor to whom its seeds are sealed."""
    state, key = place / "state", X25519PrivateKey.generate()
    create_state(state)
    write_private(state / "auditor.key", private_pem(key))
    for file in ("equipoise.db", "guard"):
        (state / file).unlink()
    bench = Bench(state, f"sqlite:///{state / 'equipoise.db'}", distinct_seeds=True)
    try:
        with bench.store.write() as connection:
            add(connection, PublicKey(Purpose.AUDITOR, key.public_key().public_bytes_raw(), bench.clock()))
        yield bench, key
    finally:
        bench.stop()


def fails(replayed: Replayed, check: str, difference: str, checks: Sequence[str] = CHECKS) -> bool:
    """Whether the checks before this one passed, and this one failed with a difference that begins so."""
    passed = [each.name for each in replayed.checks] == list(checks[: checks.index(check)])
    return passed and replayed.failed == check and str(replayed.difference).startswith(difference)


def sql(statement: str) -> Change:
    """A change in SQL; `:round` is the round's id."""
    return lambda connection, round_id: connection.execute(statement, {"round": round_id})


def by_units(units: int) -> Change:
    """One of ann's answers, in what is stored of her stream, raised by so many units of 2^-40."""

    def change(connection: sqlite3.Connection, round_id: str) -> None:
        chosen = "WHERE analyst = 'ann' AND run_id = (SELECT run_id FROM rounds WHERE id = ?)"
        ((stored,),) = connection.execute(f"SELECT chunk FROM result_chunks {chosen}", [round_id]).fetchall()
        told = chunk_from_bytes(stored).answers
        told.values[QUERY] += units
        (chunk,) = results_to_chunks(round_id, told)
        connection.execute(f"UPDATE result_chunks SET chunk = ? {chosen}", [chunk, round_id])

    return change
