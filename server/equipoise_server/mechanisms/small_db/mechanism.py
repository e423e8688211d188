"""`small_db`: answers each analyst from one small database that the exponential mechanism draws.

Source: Blum, Ligett & Roth (2008), as the small-database mechanism of 004 and the recap of 003. Exact, and so for
tiny universes only: there are about `|X|^m` databases of `m` records, no polynomial in `|X|` where `m` grows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.own_stream import own_stream
from equipoise_server.mechanisms.small_db.plan import (
    MAX_NATS,
    SmallDatabaseParameters,
    plan_small_database,
    units_of_score,
)
from equipoise_server.randomness.exponential import UNIT_BITS
from equipoise_server.randomness.weighted import draw_exponential

METHOD = AnswerMethod.SMALL_DB


class SmallDatabase:
    """The mechanism `small_db`.

    Formal guarantees. The score of a database `y` of `m` records is `max_q |n c_q(y) - m c_q(D)|` over one
    analyst's own queries, an integer that moves by at most `m` when a record is replaced. Drawn with probability
    proportional to `exp(-epsilon score / (2 m))`, each analyst's database is epsilon-DP and costs `epsilon^2 / 8`
    in zCDP; `A` shares cost `A` times as much, whoever is present. For the analysts: nothing, for either unit; a
    draw is a function of one's own workload, the data and a stream of one's own. With probability `1 - beta` all
    truths lie in their intervals: the best of the `N` databases errs by at most `nearest(m)`, and
    but for `beta / A` the drawn one by at most `2 (log N + log(A / beta)) / (epsilon n)` more (McSherry & Talwar
    2007).
    """

    name = "small_db"
    fitted = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan the database size with the smallest half-width; the option `database_size` forces a size."""
        return plan_small_database(self.name, setting)

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Draw one database for each analyst whose workload is not empty, and answer from it."""
        present = planned_workloads(setting, data, workloads)
        parameters = SmallDatabaseParameters.from_json(plan.parameters)
        progress("drawing databases", 0, 1)
        databases = all_databases(setting.universe_size, parameters.size)
        answers = {}
        for analyst, workload in present.items():
            values = np.zeros(0, dtype=np.int64)
            if not workload.empty:
                errors = scores(workload, data, databases)
                stream = own_stream(seed, workload, "small database", analyst)
                drawn = draw_exponential(exponents(errors, parameters), 1, stream)
                values = on_grid(workload.record_counts(databases[drawn[0]]), parameters.size)
            answers[analyst] = answers_within(values, METHOD, parameters.half_width)
        progress("drawing databases", 1, 1)
        return Outcome(answers)


def all_databases(universe: int, size: int) -> NDArray[np.int64]:
    """Return every multiset of `size` records, as ascending cells: int64[databases, size].

    Args:
        universe: how many records can exist.
        size: of one database, in records.
    """
    cells = itertools.chain.from_iterable(itertools.combinations_with_replacement(range(universe), size))
    return np.fromiter(cells, dtype=np.int64).reshape(-1, size)


def scores(workload: CompiledWorkload, data: Counts, databases: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `max_q |n c_q(y) - m c_q(D)|` of every database, int64[databases]: exact, below 2^48."""
    records, size = data.records, databases.shape[1]
    worst = np.zeros(len(databases), dtype=np.int64)
    one = np.ones(1, dtype=np.int64)
    for query, count in enumerate(data.count(workload).tolist()):
        holds = workload.transpose_sparse(np.array([query]), one)
        np.maximum(worst, np.abs(records * holds[databases].sum(axis=1) - size * count), out=worst)
    return worst


def exponents(errors: NDArray[np.int64], parameters: SmallDatabaseParameters) -> NDArray[np.int64]:
    """Return the scores as exponents in units of 2^-48 nats, shifted so that the best database has 0.

    One unit of score is a whole number of these units, so a record changes every exponent by at most `epsilon / 2`.
    """
    rate = units_of_score(parameters.epsilon, parameters.size)
    below: NDArray[np.int64] = errors.min() - errors
    return rate * np.maximum(below, -((MAX_NATS << UNIT_BITS) // rate))
