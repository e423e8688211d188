"""`pooled`: measure once what many ask for, and share the synopsis. For both units of protection.

Mechanisms section 6. Formal guarantees. For the people in the table: the tables' rho in full, whatever was asked
for (`accounting.tables_rho` is at most that), and that of repair where some is planned. For one statement of one
analyst, or all statements of one analyst, against all other analysts together: the cost of the noisy vote counts
alone (`accounting.votes_l1_sensitivity`) and, where whole analysts are repaired, that of hiding who gets a place;
all that others see is a function of these, of the data, and of their own workloads and streams. With probability
`1 - beta` every truth lies in its answer's interval. All up to the truncation of the samplers, charged to delta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.joined_workloads import concatenate, some_statements
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within, moved_into, uncertified, with_answers
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.interface import GRID_BITS, OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.pooled.demand import votes_of
from equipoise_server.mechanisms.pooled.direct import DirectAnswers
from equipoise_server.mechanisms.pooled.measured import measure
from equipoise_server.mechanisms.pooled.outside import repair_outside
from equipoise_server.mechanisms.pooled.plan import PooledParameters, plan_pooled
from equipoise_server.mechanisms.pooled.released import ReleasedResiduals, ReleasedTables
from equipoise_server.mechanisms.pooled.synopsis import synthetic_records
from equipoise_server.mechanisms.residuals.measurement import measure as measure_residuals
from equipoise_server.randomness.stream import KeyedStream

FITTED = AnswerMethod.FITTED


class Pooled:
    """The mechanism `pooled`."""

    name = "pooled"
    fitted = True

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a round from public facts. Options may force single parameters."""
        return plan_pooled(self.name, setting)

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Count the demand, measure tables, fit one synopsis, and answer each analyst from its own workload."""
        present = planned_workloads(setting, data, workloads)
        parameters = PooledParameters.from_json(plan.parameters)
        progress("measuring", 0, 1)
        released = measured(parameters, setting, data, present, seed)
        progress("measuring", 1, 1)
        progress("fitting", 0, 1)
        weights = released.weights()
        progress("fitting", 1, 1)
        synopsis = Synopsis() if weights is None else Synopsis(synthetic_records(weights, parameters.synopsis))
        progress("answering", 0, 1)
        answers = {}
        if present:
            together = concatenate(list(present.values()))
            direct = released.direct(together, parameters.chance)
            delivered = answered(parameters, together, direct, synopsis, setting.records)
            answers = divided(delivered, present)
        if parameters.repair is not None:
            parts = {name: outside_of(parameters, workload) for name, workload in present.items()}
            outside = {name: some_statements(present[name], chosen) for name, chosen in parts.items()}
            repaired = repair_outside(parameters.repair, setting, data, outside, synopsis, seed)
            answers = {
                name: with_statements(own, present[name], parts[name], repaired[name])
                for name, own in answers.items()
            }
        progress("answering", 1, 1)
        return Outcome(answers, synopsis)


class Released(Protocol):
    """What was measured. All else is post-processing of it."""

    def weights(self) -> NDArray[np.float64] | None:
        """Fit one distribution over the universe to all of it, each number weighted by its noise: float64[|X|].

        None where the universe is too large.
        """
        ...

    def direct(self, workload: CompiledWorkload, chance: float) -> DirectAnswers:
        """Estimate every query; each is beyond its reach with at most this chance."""
        ...


def measured(
    parameters: PooledParameters,
    setting: PublicParameters,
    data: Counts,
    present: Mapping[str, CompiledWorkload],
    seed: bytes,
) -> Released:
    """Measure what the plan says: residuals, or the tables that are asked for."""
    if parameters.residuals is not None:
        released = measure_residuals(data, parameters.residuals, seed, "pooled/residuals")
        return ReleasedResiduals(released, parameters.synopsis > 0)
    demand = noisy_demand(parameters, setting, present, seed)
    tables = measure(data, parameters.rhos(demand.tolist()), seed)
    return ReleasedTables(parameters.family, tables, setting.records)


def outside_of(parameters: PooledParameters, workload: CompiledWorkload) -> list[int]:
    """Return the statements about a table that the family does not hold."""
    sets = workload.statement_tables()
    return [statement for statement, axes in enumerate(sets) if not parameters.family.holds(axes)]


def noisy_demand(
    parameters: PooledParameters, setting: PublicParameters, present: Mapping[str, CompiledWorkload], seed: bytes
) -> NDArray[np.int64]:
    """The noisy number of votes for every set of the family, int64[sets]: all that is released of the demand."""
    sets = parameters.family.sets
    votes = sum(
        (votes_of(workload, setting.unit, sets) for workload in present.values()), np.zeros(len(sets), np.int64)
    )
    return parameters.demand.noisy(votes, KeyedStream.derive(seed, "pooled/demand"))


def answered(
    parameters: PooledParameters,
    together: CompiledWorkload,
    direct: DirectAnswers,
    synopsis: Synopsis,
    records: int,
) -> Answers:
    """Every query's answer from the synopsis, or from the measured tables where it lies out of their reach.

    The interval is that of the measured tables, which holds whatever the synopsis says. The synopsis's value is
    delivered where it lies in the interval, as it errs less than the measurement; beyond, the synopsis is known to
    be wrong, and the measurement itself is delivered, not cut at 0, as it always is where there is no synopsis.
    Queries outside the family have no interval and stay uncertified here.
    """
    known = np.isfinite(direct.reach)
    # Two units: the measurement's rounding, and the half-width's.
    half_widths = np.where(known, on_grid_upwards(np.where(known, direct.reach, 0), records, 2), 0)
    measured = np.rint(direct.counts * (2.0**GRID_BITS / records)).astype(np.int64)
    errors = on_grid_upwards(direct.deviation, records)
    tables = answers_within(measured, GaussianNoise.method, half_widths, errors)
    if not len(synopsis):
        certified = known & (half_widths <= parameters.certified)
        return with_answers(uncertified(np.clip(measured, 0, ONE)), certified, tables[certified])
    values = synopsis.answers(together)
    inside = (tables.lows <= values) & (values <= tables.highs)
    possible = np.where(known & ~inside, np.clip(measured, 0, ONE), values)
    certified = known & (half_widths <= parameters.certified)
    answers = with_answers(uncertified(possible), certified, tables[certified])
    fitted = certified & inside
    return with_answers(answers, fitted, moved_into(tables, values, FITTED)[fitted])


def on_grid_upwards(amounts: NDArray[np.float64], records: int, more: int = 0) -> NDArray[np.int64]:
    """Amounts of records, float64[k], as parts of all in units of 2^-40: rounded up, so many more; at most 1."""
    units = np.ceil(amounts * (2.0**GRID_BITS / records)) + more
    return np.asarray(np.minimum(units, 2.0**GRID_BITS), dtype=np.int64)


def divided(together: Answers, workloads: Mapping[str, CompiledWorkload]) -> dict[str, Answers]:
    """Return each analyst's part of the answers to all workloads one after another."""
    answers, start = {}, 0
    for name, workload in workloads.items():
        own = slice(start, start + workload.query_count)
        start = own.stop
        answers[name] = together[own]
    return answers


def with_statements(answers: Answers, workload: CompiledWorkload, chosen: Sequence[int], parts: Answers) -> Answers:
    """One analyst's answers with those to the chosen statements replaced by `parts`, which holds them in order."""
    statements = np.zeros(workload.statement_count, dtype=np.bool_)
    statements[list(chosen)] = True
    queries = np.repeat(statements, np.diff(workload.statement_offsets))
    return with_answers(answers, queries, parts)
