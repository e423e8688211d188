"""`standing`: answers from a measurement that was made before, at no cost to anybody.

Formal guarantees. For the people in the table and for all analysts: nothing is lost, as the answers are a function
of released numbers, of public parameters and of the analyst's own statements; the table is not read at all. With
probability `1 - beta` over the measurement's noise all truths lie in their intervals: those of all rounds and
sessions that ever answer from it with this beta, also where somebody chose statements by earlier answers. Each
count's error is sub-Gaussian with the exactly known variance of its noise, and all statements that the family tells
share beta (`reach`).
"""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import STANDING, STANDING_OPTION, MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.query_variances import outside_of
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.standing.answering import answers_of, synthetic_table
from equipoise_server.mechanisms.standing.plan import StandingParameters, check_tells_all, plan_standing
from equipoise_server.mechanisms.standing.released import released_numbers


class Standing:
    """The mechanism `standing`."""

    name = STANDING
    fitted = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a round from public facts; the option `standing` is the measurement."""
        return plan_standing(self.name, setting)

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,  # noqa: ARG002  nothing is drawn
        progress: OnStep,
    ) -> Outcome:
        """Answer each analyst's workload from the released numbers, which come with the setting."""
        present = planned_workloads(setting, data, workloads)
        parameters = StandingParameters.from_json(plan.parameters)
        measurement = parameters.measurement
        measured = released_numbers(setting, measurement.numbers, measurement.noise)
        for workload in present.values():
            check_statements(measured.noise, workload)
        answers = {}
        for done, (analyst, workload) in enumerate(present.items()):
            progress("answering", done, len(present))
            answers[analyst] = answers_of(workload, measured, parameters.log)
        progress("fitting", 0, 1)
        synopsis = synthetic_table(measured, parameters.synopsis)
        progress("fitting", 1, 1)
        return Outcome(answers, synopsis)


class ToldStanding(Standing):
    """`standing` as planners ask it: only where the measurement tells whatever the shares allow."""

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a round in which no statement is refused. Raises what `check_tells_all` raises, too."""
        for name in sorted(setting.options.keys() - {STANDING_OPTION}):
            raise InvalidArgument(f"options.{name}", f"unknown; there is {STANDING_OPTION}")
        check_tells_all(setting)
        return super().plan(setting)


def check_workload(plan: MechanismPlan, workload: CompiledWorkload) -> None:
    """Raise `InvalidArgument` for a workload that a round of this plan cannot answer."""
    check_statements(StandingParameters.from_json(plan.parameters).measurement.noise, workload)


def check_statements(noise: ResidualNoise, workload: CompiledWorkload) -> None:
    """Raise `InvalidArgument`, naming the statement, for one that no table of the measurement tells."""
    outside = outside_of(workload, noise.family)
    if outside:
        axes = ", ".join(str(axis + 1) for axis in workload.statement_tables()[outside[0]])
        problem = f"is about attributes {axes} of the schema together, which the standing measurement does not tell"
        raise InvalidArgument(f"statements[{outside[0]}]", problem)
