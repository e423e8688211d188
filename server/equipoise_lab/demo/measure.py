"""How good the answers were. The demo may look at the data; an analyst never could.

Every error is a fraction of the records: the distance of an answer from the true one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import RoundDetail
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.results import UNIT
from equipoise_lab.demo.play import DATA_BUDGET, Played, Workloads
from equipoise_lab.demo.table import SCHEMA
from equipoise_lab.simulation.baselines import gaussian_deviation, gaussian_errors
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.equilibrium.mechanism import repair_uniform_guess
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters


@dataclass(frozen=True)
class MethodPolicy:
    """One airline's answers: how they were made, and how wrong the worst one is."""

    airline: str
    queries: int
    by_synopsis: int
    with_noise: int
    uncertified: int
    max_half_width: float
    max_error: float
    outside_interval: int
    epsilon_analyst: float


@dataclass(frozen=True)
class Measured:
    """What the demo reports. The four largest errors are of the same queries.

    `uniform`: answering as if all records of the universe were equally many. `synopsis`: the game's synopsis alone.
    `uniform_repaired`: the uniform guess after the same repair. `delivered`: what the airlines received.
    `gaussian`: what independent Gaussian noise on every query would be expected to give.
    """

    rows: tuple[MethodPolicy, ...]
    records: int
    uniform: float
    synopsis: float
    uniform_repaired: float
    delivered: float
    mean_error: float
    gaussian: float


def measure(played: Played, workloads: Workloads, table: Path) -> Measured:
    """Compare every answer with the table."""
    data = source_at(table).counts(SCHEMA)
    compiled = {airline: compile_workload(asked, SCHEMA) for airline, asked in workloads.items()}
    together = concatenate(list(compiled.values()))
    truth = data.count(together) / data.records
    ends = np.cumsum([each.query_count for each in compiled.values()])
    own_truth = dict(zip(compiled, np.split(truth, ends[:-1]), strict=True))
    uniform = together.counts(np.ones(SCHEMA.universe_size, dtype=np.int64)) / SCHEMA.universe_size
    synopsis = played.synopsis.counts(together) / len(played.synopsis)
    delivered = np.concatenate([played.results[airline].values for airline in compiled])
    return Measured(
        rows=tuple(_row(airline, played, own_truth[airline]) for airline in compiled),
        records=data.records,
        uniform=_largest(uniform, truth),
        synopsis=_largest(synopsis, truth),
        uniform_repaired=_largest(_repaired_guess(played.detail, data, compiled), truth),
        delivered=_largest(delivered, truth),
        mean_error=float(np.mean(np.abs(delivered - truth))),
        gaussian=gaussian_error(together, data.records),
    )


def _row(airline: str, played: Played, truth: NDArray[np.float64]) -> MethodPolicy:
    results = played.results[airline]
    errors = np.abs(results.values - truth)
    counted = results.counted()
    widths = results.answers.highs - results.answers.lows
    return MethodPolicy(
        airline=airline,
        queries=len(results),
        by_synopsis=counted[AnswerMethod.SYNOPSIS],
        with_noise=counted[AnswerMethod.LAPLACE] + counted[AnswerMethod.GAUSSIAN],
        uncertified=counted[AnswerMethod.UNCERTIFIED],
        max_half_width=float(widths.max() / 2 ** (GRID_BITS + 1)),
        max_error=float(errors.max()),
        outside_interval=int(np.count_nonzero(results.answers.misses(truth))),
        epsilon_analyst=played.analyst_accounts[airline].spent.epsilon,
    )


def _largest(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.abs(answers - truth).max())


def _repaired_guess(
    detail: RoundDetail, data: Counts, compiled: Mapping[str, CompiledWorkload]
) -> NDArray[np.float64]:
    """The uniform guess after the round's own repair, with noise of its own: the round's seed is the server's."""
    terms = detail.round.terms
    if terms.analyst_budget is None:
        raise ValueError("nothing is repaired in a session without protection of analysts")
    setting = PublicParameters(
        records=data.records,
        universe_size=SCHEMA.universe_size,
        shares=terms.shares,
        unit=terms.unit,
        data_budget=terms.data_budget,
        analyst_budget=terms.analyst_budget,
        beta=terms.beta,
        options={},
    )
    answers = repair_uniform_guess(setting, detail.plan, data, compiled, secrets.token_bytes(32))
    return np.concatenate([answers[airline].values for airline in compiled]) * UNIT


def gaussian_error(workload: CompiledWorkload, records: int) -> float:
    """Return the expected largest error of independent Gaussian noise on every query, for the same data budget."""
    budget = Budget(DATA_BUDGET.epsilon, DATA_BUDGET.delta)
    return gaussian_errors(gaussian_deviation(workload.l1_sensitivity, records, budget), workload.query_count).max
