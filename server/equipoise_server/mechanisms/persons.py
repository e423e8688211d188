"""Plans for persons with several records each: the one place where a person counts for more than a record.

Mechanisms are planned, and their costs are proven, for tables that differ in one replaced record. Where every
person has exactly M records, neighbours differ in one replaced person, so in at most M replaced records. They are
the ends of a chain of M + 1 tables of equally many records, each of which differs from the one before in one. So:

- zCDP: what is rho-zCDP for one record is `M^2 rho`-zCDP for M (Bun & Steinke 2016, Proposition 1.9).
- Pure: what is epsilon-DP for one record is `M epsilon`-DP for M, as a likelihood ratio between the ends of the
  chain is the product of those along it (Dwork & Roth 2014, Theorem 2.2).
- Threshold tests: the sign of each test is `M epsilon`-DP and each answer `M^2 rho`-zCDP given what was seen
  before, and the theorem of `accounting.threshold_tests` needs no more.
- Truncated samplers: an ideal step of `epsilon` becomes one of `M epsilon`, and how far each of the two runs is
  from its ideal does not depend on who is replaced (`docs/privacy-filter.md`, the lemma on truncation).

All four hold however steps are chosen by what was seen. For noise on linear queries nothing is lost: a person is M
times the mean of M records, and norms are convex, so counts move by at most M times what one record moves them by
in L1 and in L2, and a replaced person whose records are all alike moves them so far. The same is true of residuals,
of which the worst pair of records is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import (
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_of,
    events_from_json,
    events_to_json,
    threshold_tests_curve,
)
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise_server.conversion import epsilon_for, epsilon_of_curve
from equipoise_server.mechanisms.budget_rounding import SAMPLERS, step_epsilon, usable_delta, usable_rho
from equipoise_server.mechanisms.interface import Mechanism, PublicParameters
from equipoise_server.mechanisms.online.interface import SessionMechanism
from equipoise_server.mechanisms.prior.choice import NONE, Start, StartsFromPrior

NOT_LINEAR = frozenset({"low_sensitivity"})  # mechanisms that answer statistics
TRIES = 12
NEARLY_ALL = 0.99  # of a budget
SMALLER = 1 - 2.0**-30  # than a budget that turned out too large


def planned_starts(mechanism: Mechanism | SessionMechanism, setting: PublicParameters) -> list[Start]:
    """Plan a round or a session for the persons of a setting, from every prior that it may start from, best first.

    The mechanism plans for one record, within a budget that M of them together do not exceed. A plan that costs the
    persons more than their budget, as rounding and conversions may have it, is made again within a smaller one.

    Raises:
        InvalidArgument: the mechanism cannot serve this setting, or answers what is proven for single records only.
        BudgetExhausted: a budget is too small.
    """
    if setting.person_records == 1:
        return _within(mechanism, setting, setting.data_budget)[0]
    if mechanism.name in NOT_LINEAR:
        problem = (
            f"answers statistics, which are not linear; where a person has {setting.person_records:,} records, "
            "only predicates and marginals are answered: take another mechanism, or register one record a person"
        )
        raise InvalidArgument("mechanism", f"{mechanism.name} {problem}")
    budget = record_budget(setting.data_budget, setting.person_records)
    for _ in range(TRIES):
        starts, used = _within(mechanism, setting, budget)
        if used <= 1:
            break
        budget = replace(budget, epsilon=budget.epsilon * max(1 / 2, SMALLER / used))
    else:
        raise BudgetExhausted("data_budget: is too small for persons with so many records; raise it, or have fewer")
    if used < NEARLY_ALL:  # what is charged as a pure epsilon is not limited by a rho
        plain = replace(budget, epsilon=setting.data_budget.epsilon / setting.person_records)
        generous, used = _within(mechanism, setting, plain)
        return generous if used <= 1 else starts
    return starts


def _within(
    mechanism: Mechanism | SessionMechanism, setting: PublicParameters, budget: Budget
) -> tuple[list[Start], float]:
    """Return the plans within a budget for one record, and the largest part of the persons' epsilon of any."""
    alone = replace(setting, data_budget=budget, person_records=1)
    planned = (
        mechanism.starts(alone) if isinstance(mechanism, StartsFromPrior) else [Start(NONE, mechanism.plan(alone))]
    )
    starts = [replace(start, plan=of_persons(start.plan, setting)) for start in planned]
    delta, epsilon = setting.data_budget.delta, setting.data_budget.epsilon
    return starts, max(epsilon_for(start.plan.data_cost, delta) for start in starts) / epsilon


def record_budget(budget: Budget, records: int) -> Budget:
    """Return what a mechanism may cost one record, so that so many of them cost a person no more than `budget`."""
    if records == 1:
        return budget
    allowed = usable_rho(budget)
    rho = Cost(rho=allowed // records**2)
    epsilon = budget.epsilon / records
    if usable_delta(budget) > 0:
        epsilon = min(epsilon, epsilon_for(rho, usable_delta(budget)))
    smaller = Budget(epsilon, budget.delta)
    while usable_rho(smaller) * records**2 > allowed:
        smaller = replace(smaller, epsilon=smaller.epsilon * SMALLER)
    return smaller


def of_persons(plan: MechanismPlan, setting: PublicParameters) -> MechanismPlan:
    """Return a plan that was made for one replaced record, charged for one replaced person.

    Args:
        plan: of `setting` but for the budget, and with one record a person.
        setting: with the persons' own budget.
    """
    if setting.person_records == 1:
        return plan
    parts = person_events(events_from_json(plan.data_events), setting.person_records, setting.data_budget.epsilon)
    return replace(plan, data_cost=charge_of(parts), data_events=events_to_json(plan.mechanism, parts))


def person_events(parts: Sequence[PrivacyEvent], records: int, epsilon: float) -> list[PrivacyEvent]:
    """Return what replacing a person costs, from what replacing one record does. The module has the theorem.

    Args:
        parts: for one replaced record.
        records: how many a person has, M.
        epsilon: of the persons' budget, for the truncation of samplers.

    Raises:
        ValueError: a part of a kind that the theorem does not cover.

    >>> person_events([ZcdpEvent("answers", Fraction(1, 100))], 4, 1.0)
    [ZcdpEvent(name='answers', rho=Fraction(4, 25), times=1)]
    """
    steps = [_of_group(part, records) for part in parts if part.name != SAMPLERS]
    return [*steps, *_samplers((part for part in parts if part.name == SAMPLERS), steps, epsilon)]


def _of_group(part: PrivacyEvent, records: int) -> PrivacyEvent:
    match part:
        case ZcdpEvent():
            return replace(part, rho=records**2 * part.rho)
        case PureDpEvent():
            return replace(part, epsilon=records * part.epsilon)
        case ApproximateDpEvent() if part.delta == 0:
            return replace(part, epsilon=records * part.epsilon)
        case ThresholdTests():
            test, answer = records * part.test_epsilon, records**2 * part.answer_rho
            curve = threshold_tests_curve(float(test), part.positives, float(answer))
            # A step up, for an auditor's arithmetic.
            epsilon = epsilon_of_curve(curve, float(part.delta)) * (1 + 1e-12)
            if not math.isfinite(epsilon):
                raise BudgetExhausted("data_budget: is too large for tests of persons with so many records")
            whole = Fraction(math.ceil(Fraction(epsilon) * RHO_UNIT), RHO_UNIT)
            return replace(part, test_epsilon=test, answer_rho=answer, epsilon=whole)
        case _:
            raise ValueError(f"nothing is proven of the part {part.name} where a person has several records")


def _samplers(
    slacks: Iterable[PrivacyEvent], steps: Sequence[PrivacyEvent], epsilon: float
) -> Iterable[PrivacyEvent]:
    """Yield the delta of truncated samplers: it was at least twice their total variation (`sampler_delta`)."""
    largest = max([epsilon, *map(step_epsilon, steps)])
    for slack in slacks:
        assert isinstance(slack, ApproximateDpEvent)
        yield replace(slack, delta=slack.delta / 2 * math.ceil(1 + math.exp(largest)))
