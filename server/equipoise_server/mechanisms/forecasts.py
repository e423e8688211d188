"""What plans state, for people: costs as (epsilon, delta) pairs, and all candidates of a comparison."""

from __future__ import annotations

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.plan_choices import Forecast, PlanCandidate
from equipoise.model.rounds import MechanismPlan
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.choice import Candidate
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import Comparison


def data_pair(plan: MechanismPlan, setting: PublicParameters) -> Budget:
    """Return what the people in the table lose, at the delta of the round's data budget."""
    return _pair(plan.data_cost, setting.data_budget)


def analyst_pair(plan: MechanismPlan, setting: PublicParameters) -> Budget | None:
    """Return what one unit of the analysts loses, at their budget's delta; None where they are not protected."""
    return None if plan.analyst_cost is None else _pair(plan.analyst_cost, setting.analyst_budget)


def forecast(plan: MechanismPlan, setting: PublicParameters) -> Forecast:
    """Return what a plan states of the round with these public parameters."""
    return Forecast(
        expected_error=plan.expected_error,
        max_half_width=plan.max_half_width,
        max_uncertified=plan.max_uncertified,
        data_budget=data_pair(plan, setting),
        analyst_budget=analyst_pair(plan, setting),
        seconds=plan.seconds,
        memory_bytes=plan.memory_bytes,
    )


def plan_candidates(comparison: Comparison) -> tuple[PlanCandidate, ...]:
    """Return every candidate of a comparison as it is shown, in the order in which they were asked."""
    return tuple(_plan_candidate(candidate, comparison.setting) for candidate in comparison.candidates)


def _plan_candidate(candidate: Candidate, setting: PublicParameters) -> PlanCandidate:
    return PlanCandidate(
        mechanism=candidate.mechanism,
        refusal="" if candidate.refusal is None else candidate.refusal.message,
        beyond_limits=candidate.beyond,
        forecast=None if candidate.plan is None else forecast(candidate.plan, setting),
    )


def _pair(cost: Cost, budget: Budget) -> Budget:
    return Budget(epsilon_for(cost, budget.delta), budget.delta)
