"""Rounds of the service, small enough to be lived tens of thousands of times, and what all analysts but one see.

A round is opened, asked for, sealed and started once, by the service on a real store; what its worker would be
given is kept, and computed again and again with the functions that the worker calls, each time from another seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from harness.dangers import ANY_BUDGET
from harness.rounds_bench import DEPLOYMENT, KEY, SALT, HandClock, log_of
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import Share, Terms
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Statement
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_lab.audit.clopper_pearson import Outcome, Sampler
from equipoise_server.computation.round import Job, compute_round
from equipoise_server.computation.streams import stream_parts
from equipoise_server.datasets.files.tables import TableFile
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.runner import Runner
from equipoise_server.rounds.services import round_services
from equipoise_server.storage.store import open_store
from equipoise_server.storage.tables.identity import identities

CHANGED = "ann"
CAP = Budget(100.0, 0.9)
Integers = NDArray[np.int64]
Streams = Mapping[str, Sequence[bytes]]
# What of all others' messages together and of the synopsis is weighed.
Telling = Callable[[Mapping[str, Sequence[ResultColumns]], Integers], Outcome]


@dataclass(frozen=True)
class JointRound:
    """A round whose two neighbouring inputs differ in what ann asks; the others are listed with what they ask.

    Statements are masks: bit `x` says whether record `x` satisfies the condition. `counts`: of every possible
    record. `tells`: what of the others' pooled view is weighed. `absent`: how many have a share and ask nothing.
    """

    unit: str
    counts: tuple[int, ...]
    changed: tuple[tuple[int, ...], tuple[int, ...]]
    others: Mapping[str, tuple[int, ...]]
    analyst_budget: Budget
    options: Mapping[str, object]
    tells: Telling
    absent: int = 0

    @property
    def schema(self) -> Schema:
        """One attribute."""
        return Schema((Attribute("x", tuple(str(value) for value in range(len(self.counts)))),))

    @property
    def table(self) -> str:
        """The data as CSV."""
        rows = [str(value) for value, count in enumerate(self.counts) for _ in range(count)]
        return "\n".join(["x", *rows]) + "\n"

    @property
    def analysts(self) -> list[str]:
        """Everybody with a share: ann has others before and after; then come those who are absent."""
        names = list(self.others)
        middle = len(names) // 2
        return [*names[:middle], CHANGED, *names[middle:], *(f"absent-{place}" for place in range(self.absent))]

    @property
    def terms(self) -> Terms:
        """What the operator opens. Shares are as large as the larger of two neighbours."""
        sizes = {CHANGED: max(map(len, self.changed))} | {name: len(masks) for name, masks in self.others.items()}
        shares = tuple(Share(name, sizes.get(name, 1), sizes.get(name, 1)) for name in self.analysts)
        data = Budget(50.0, 0.01)
        return Terms(
            "joint",
            shares,
            data,
            self.analyst_budget,
            self.unit,
            0.1,
            "equilibrium",
            self.options,
            accepted=ANY_BUDGET,
        )

    def workloads(self, side: int) -> dict[str, bytes]:
        """What everybody submits in either of the neighbouring rounds."""
        asked = dict(self.others) | {CHANGED: self.changed[side]}
        return {name: workload_to_bytes([self._statement(mask) for mask in masks]) for name, masks in asked.items()}

    def _statement(self, mask: int) -> Statement:
        return Among("x", tuple(str(x) for x in range(len(self.counts)) if mask >> x & 1))


@contextmanager
def prepared(place: Path, case: JointRound) -> Iterator[tuple[Job, Job]]:
    """Both neighbours' jobs, as the service hands them to a worker; within it the table is read once."""
    jobs: list[Job] = []
    (place / "data").mkdir(parents=True)
    (place / "data" / "joint.csv").write_text(case.table)
    store = open_store(f"sqlite:///{place / 'equipoise.db'}")
    clock, guard = HandClock(), Guard(place / "guard")
    sequencer = log_of(place, store, guard, clock())
    service = round_services(
        store, place / "data", KEY, clock=clock, guard=guard, sequencer=sequencer, deployment=DEPLOYMENT
    )
    try:
        service.lifecycle.recover()
        with store.write() as connection:
            rows = [{"name": name, "role": "analyst", "created": 0} for name in case.analysts]
            connection.execute(identities.insert(), rows)
        with patch.object(Runner, "start", lambda _, job: jobs.append(job)):
            for side in (0, 1):
                dataset = f"joint-{side}"
                again = side == 1
                service.datasets.register(
                    dataset,
                    "joint.csv",
                    case.schema,
                    CAP,
                    CAP,
                    f"register {side}",
                    people="new",
                    new_budgets=again,
                    accepted=ANY_BUDGET,
                )
                opened = service.opening.open(replace(case.terms, dataset=dataset), f"open {side}").id
                for name, workload in case.workloads(side).items():
                    service.submissions.submit(name, opened, f"{name} {side}", workload, SALT)
                service.lifecycle.seal(opened, f"seal {side}")
                service.lifecycle.run(opened, f"run {side}")
        with patch.object(TableFile, "counts", lru_cache(TableFile.counts)):
            yield jobs[0], jobs[1]
    finally:
        service.lifecycle.close()
        store.close()


def computed(job: Job, seed: bytes, round_id: str = "") -> tuple[Streams, Integers]:
    """Every analyst's messages and the synopsis, as the worker makes them from this seed."""
    seeded = replace(job, seed=seed, round_id=round_id or job.round_id)
    outcome = compute_round(seeded, lambda *_: None)
    streams: dict[str, list[bytes]] = {}
    for part in stream_parts(seeded.round_id, outcome, lambda *_: None):
        streams.setdefault(part.analyst, []).extend(part.chunks)
    return streams, outcome.synopsis.cells


def seed_of(side: int, number: int) -> bytes:
    """A seed for every run of either neighbour."""
    return (2 * number + side).to_bytes(32, "big")


def samplers(case: JointRound, jobs: tuple[Job, Job]) -> tuple[Sampler, Sampler]:
    """What all analysts but ann see together in a round, with ann's one workload and with the other."""

    def sampler(side: int) -> Sampler:
        def run(number: int) -> Outcome:
            streams, synopsis = computed(jobs[side], seed_of(side, number))
            told = {name: [chunk_from_bytes(chunk) for chunk in streams[name]] for name in case.others}
            return case.tells(told, synopsis)

        return run

    return sampler(0), sampler(1)
