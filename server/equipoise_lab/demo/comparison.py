"""Every mechanism on the demo's questions, for the same budgets: what is expected, promised and measured of each.

The mechanism that answered the round is measured by what the airlines received; every other one is run here, once,
with fresh noise. The custodian may do that because nothing of it is released.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.results import UNIT
from equipoise_lab.simulation.measure import Errors
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.choice import Candidate
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.forecasts import forecast
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import Comparison, compare
from equipoise_server.mechanisms.registry import MECHANISMS

GAMES = {"equilibrium, prior none": "none", "equilibrium, prior own": "own"}  # shown apart: what a prior brings
MAX_SECONDS = 4.0  # predicted; a mechanism that takes longer is planned but not run, as the demo should not wait


@dataclass(frozen=True)
class Measurement:
    """What one run delivered: its errors, how many answers carry no interval, and how many intervals failed."""

    errors: Errors
    uncertified: int
    outside_interval: int

    @classmethod
    def of(cls, answers: Answers, truth: NDArray[np.float64]) -> Measurement:
        """Compare answers with `truth`, float64[k] as fractions of the records, in the same order."""
        errors = Errors.between(answers.values * UNIT, truth)
        if errors is None:
            raise ValueError("there is no query to measure")
        uncertified = int(np.count_nonzero(~answers.certified))
        return cls(errors, uncertified, int(np.count_nonzero(answers.misses(truth))))


@dataclass(frozen=True)
class MechanismErrors:
    """What one mechanism expects, promises, costs, and errs by on the airlines' queries.

    Attributes:
        mechanism: its name; of the game also whether it starts from a prior.
        expected: the mean error that its plan expects, as a fraction of the records.
        promised: the largest half-width of an interval, as a fraction of the records; 1 says nothing.
        measured: what came of one run; None where it was not run.
        data_epsilon: what it costs the people in the table, at the budget's delta.
        analyst_epsilon: what it costs an airline, at the budget's delta.
    """

    mechanism: str
    expected: float
    promised: float
    measured: Measurement | None
    data_epsilon: float
    analyst_epsilon: float


@dataclass(frozen=True)
class Compared:
    """All mechanisms on the same questions.

    Attributes:
        mechanisms: first the delivered one, then those that were run by their mean errors, then the others.
        refusals: why a mechanism cannot serve the round, by its name.
        why: one sentence on why `auto` chooses as it does.
    """

    mechanisms: tuple[MechanismErrors, ...]
    refusals: Mapping[str, str]
    why: str


def compare_mechanisms(
    setting: PublicParameters,
    mechanism: str,
    delivered: Answers,
    data: Counts,
    workloads: Mapping[str, CompiledWorkload],
    truth: NDArray[np.float64],
) -> Compared:
    """Plan every mechanism for the round, and run those that are quick.

    Args:
        setting: the round's public parameters.
        mechanism: the one that answered the round.
        delivered: its answers, in the order of the workloads.
        data: the table.
        workloads: what each airline asked.
        truth: float64[k], the true answers as fractions of the records, in the order of the workloads.
    """
    comparison = compare(setting, MECHANISMS)
    rows, refusals = [], {}
    for name, candidate in _candidates(setting, comparison, mechanism).items():
        if candidate.plan is None:
            refusals[name] = candidate.refusal.message if candidate.refusal is not None else ""
        elif name == mechanism:
            rows.append(_row(name, setting, candidate.plan, Measurement.of(delivered, truth)))
        elif candidate.plan.seconds <= MAX_SECONDS:
            answers = _run(setting, candidate.plan, data, workloads)
            rows.append(_row(name, setting, candidate.plan, Measurement.of(answers, truth)))
        else:
            rows.append(_row(name, setting, candidate.plan, None))

    def order(row: MechanismErrors) -> tuple[bool, bool, float]:
        mean = row.expected if row.measured is None else row.measured.errors.mean
        return row.mechanism != mechanism, row.measured is None, mean

    return Compared(tuple(sorted(rows, key=order)), refusals, why(comparison))


def _candidates(setting: PublicParameters, comparison: Comparison, delivered: str) -> dict[str, Candidate]:
    """Return what is compared, by name: the game twice, with and without a prior, unless it was delivered."""
    named = {candidate.mechanism: candidate for candidate in comparison.candidates}
    if delivered != Equilibrium.name:
        del named[Equilibrium.name]
        for name, prior in GAMES.items():
            forced = replace(setting, options={**setting.options, "prior": prior})
            (named[name],) = compare(forced, {Equilibrium.name: MECHANISMS[Equilibrium.name]}).candidates
    return named


def _run(
    setting: PublicParameters, plan: MechanismPlan, data: Counts, workloads: Mapping[str, CompiledWorkload]
) -> Answers:
    seed = secrets.token_bytes(32)
    outcome = MECHANISMS[plan.mechanism].run(setting, plan, data, workloads, seed, lambda *_: None)
    return Answers.join(outcome.answers[airline] for airline in workloads)


def _row(
    name: str, setting: PublicParameters, plan: MechanismPlan, measured: Measurement | None
) -> MechanismErrors:
    stated = forecast(plan, setting)
    return MechanismErrors(
        mechanism=name,
        expected=stated.expected_error,
        promised=stated.max_half_width,
        measured=measured,
        data_epsilon=stated.data_budget.epsilon,
        analyst_epsilon=0.0 if stated.analyst_budget is None else stated.analyst_budget.epsilon,
    )
