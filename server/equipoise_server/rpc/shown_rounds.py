"""Converts stored rounds into what analysts, operators and auditors may see of them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from equipoise.accounting import Cost
from equipoise.model.accounts import AccountCharge, Budget
from equipoise.model.persons import Persons
from equipoise.model.plan_choices import PlanChoice
from equipoise.model.rounds import Grant, MechanismPlan, Plan, PlanNumbers, Progress, Round, RoundDetail, Terms
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.forecasts import plan_candidates
from equipoise_server.mechanisms.planner import Comparison
from equipoise_server.rounds.records import RoundRecord


def shown_to_analyst(record: RoundRecord, analyst: str, answered: int = 0, grant: Grant | None = None) -> Round:
    """Return a round as one analyst sees it, with the analyst's own share alone.

    Args:
        record: A round that was read for analysts, so that its state is the one that analysts may see.
        analyst: The analyst's name.
        answered: Of a session, the number of the analyst's own answers that the analyst can read.
        grant: Of a grant, what it allows and what was spent of it.
    """
    own = tuple(share for share in record.terms.shares if share.analyst == analyst)
    return replace(record, terms=replace(record.terms, shares=own), answered=answered, grant=grant)


def shown_to_operator(record: RoundRecord, progress: Progress, charges: tuple[AccountCharge, ...]) -> RoundDetail:
    """Return a round as operators and auditors see it, with its progress and its charges."""
    return RoundDetail(record, shown_plan(record.plan, record.terms, charges), progress)


def shown_choice(
    comparison: Comparison, terms: Terms, charges: tuple[AccountCharge, ...], persons: Persons
) -> PlanChoice:
    """Return a plan as it is shown, with what it was chosen from where the terms leave the choice."""
    return PlanChoice(
        plan=shown_plan(comparison.plan, terms, charges),
        because=why(comparison),
        candidates=plan_candidates(comparison) if len(comparison.candidates) > 1 else (),
        records=comparison.setting.records,
        persons=persons,
    )


def shown_plan(plan: MechanismPlan, terms: Terms, charges: tuple[AccountCharge, ...]) -> Plan:
    """Return a plan as it is shown: with its charges, and with both costs also as (epsilon, delta) pairs.

    The deltas are those of the terms. The analyst cost is left out where the analysts are not protected.
    """
    numbers: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(PlanNumbers)}
    budget = terms.analyst_budget
    numbers["analyst_cost"] = None if budget is None else plan.charged_analyst_cost
    return Plan(
        **numbers,
        data_budget=_pair(plan.data_cost, terms.data_budget.delta),
        analyst_budget=None if budget is None else _pair(plan.charged_analyst_cost, budget.delta),
        charges=charges,
    )


def _pair(cost: Cost, delta: float) -> Budget:
    return Budget(epsilon_for(cost, delta), delta)
