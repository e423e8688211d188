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

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.joined_workloads import concatenate, some_statements
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import with_answers
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.pooled.demand import votes_of
from equipoise_server.mechanisms.pooled.measured import measure
from equipoise_server.mechanisms.pooled.options import over_universe
from equipoise_server.mechanisms.pooled.outside import repair_outside
from equipoise_server.mechanisms.pooled.plan import PooledParameters, plan_pooled
from equipoise_server.mechanisms.pooled.released import Released, ReleasedResiduals, ReleasedTables
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.residuals.measurement import measure as measure_residuals
from equipoise_server.randomness.stream import KeyedStream


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
        fitted = released.fitted(parameters.synopsis)
        progress("fitting", 1, 1)
        progress("answering", 0, 1)
        answers = {}
        if present:
            together = concatenate(list(present.values()))
            direct = released.direct(together, parameters.chance)
            delivered = fitted.answered(together, direct, setting.records, parameters.certified)
            answers = divided(delivered, present)
        if parameters.repair is not None:
            parts = {name: outside_of(parameters, workload) for name, workload in present.items()}
            outside = {name: some_statements(present[name], chosen) for name, chosen in parts.items()}
            repaired = repair_outside(parameters.repair, setting, data, outside, fitted.synopsis, seed)
            answers = {
                name: with_statements(own, present[name], parts[name], repaired[name])
                for name, own in answers.items()
            }
        progress("answering", 1, 1)
        return Outcome(answers, fitted.synopsis)


def check_workload(plan: MechanismPlan, workload: CompiledWorkload) -> None:
    """Raise `InvalidArgument` for a sum outside the family, where whole analysts are repaired.

    Their private weights learn from queries of 0 and 1 alone.
    """
    parameters = PooledParameters.from_json(plan.parameters)
    if isinstance(parameters.repair, AnalystRepairParameters) and workload.weighted.any():
        for statement in sorted(set(outside_of(parameters, workload)) & workload.weighted_statements):
            problem = "is a sum about attributes that no table of the round holds together; ask about fewer"
            raise InvalidArgument(f"statements[{statement}]", problem)


def measured(
    parameters: PooledParameters,
    setting: PublicParameters,
    data: Counts,
    present: Mapping[str, CompiledWorkload],
    seed: bytes,
) -> Released:
    """Measure what the plan says: residuals, or the tables that are asked for.

    Args:
        parameters: of the plan.
        setting: of the round.
        data: the table's counts.
        present: the workload of each analyst who submitted one.
        seed: of the round, 32 bytes.
    """
    if parameters.residuals is not None:
        released = measure_residuals(data, parameters.residuals, seed, "pooled/residuals")
        return ReleasedResiduals(released, over_universe(setting))
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
    """Return the noisy number of votes for every set of the family: all that is released of the demand.

    Args:
        parameters: of the plan.
        setting: of the round.
        present: the workload of each analyst who submitted one.
        seed: of the round, 32 bytes.
    """
    sets = parameters.family.sets
    votes = sum(
        (votes_of(workload, setting.unit, sets) for workload in present.values()), np.zeros(len(sets), np.int64)
    )
    return parameters.demand.noisy(votes, KeyedStream.derive(seed, "pooled/demand"))


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
