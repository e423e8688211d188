"""The rules by which a round's mechanism is chosen, from public facts only. In this order (`by_expected_error`):

1. A plan within the planner's limits of time and memory is preferred. An operator with more of either may force
   any other plan.
2. The smallest expected mean error over all declared queries (`MechanismPlan.expected_error`). Uncertified answers
   count with what they are expected to err by. That is known to a factor of `DOUBT`, and nothing bounds it: a plan
   that gives every answer an interval is preferred to those that do not, unless the least of these is expected to
   err less by more than that factor.
3. Of plans within `NEAR` of it, the smallest promise: the largest half-width of an interval. Then a plan without a
   cost to the analysts, then fewer predicted seconds, then the name.

For an operator who answers for bounds there are other rules (`by_promise`, the mechanism `auto_by_promise`). After
rule 1, the smallest `alpha`: the largest half-width, averaged over all queries of the round, where an answer that
may have no interval counts as 1, so that no mechanism wins by certifying few answers. Then the smallest promise, no
cost to the analysts, the smaller `alpha`, fewer seconds, the name. There, an error of `SAYS_NOTHING` or more counts
as 1, because the constant answer 1/2 never has a larger one; where nothing says anything, `alpha` itself decides.
An error within `NEAR` of the smallest counts as equal to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise_server.mechanisms.prior.choice import Start

NEAR = 0.05
# By how much expectations of what nothing measured tells are off, on tables that judge no choice: those of cells of
# tables; of conditions it is 1.95 (`docs/regimes.md`).
DOUBT = 1.53
SAYS_NOTHING = 0.5

Refusal = InvalidArgument | BudgetExhausted


@dataclass(frozen=True)
class Candidate:
    """One mechanism's plan, or the refusal where it has none.

    `alpha`: as in the rules above; 1 where there is no plan. `beyond`: in words, the limit that the plan exceeds;
    empty where it exceeds none. `starts`: the plans from each prior, the first of which is the plan; empty of a
    mechanism that starts from none.
    """

    mechanism: str
    plan: MechanismPlan | None
    refusal: Refusal | None
    alpha: float = 1.0
    beyond: str = ""
    starts: tuple[Start, ...] = ()


Plans = list[tuple[Candidate, MechanismPlan]]
Rule = Callable[[Plans], Candidate]


def choose(candidates: Sequence[Candidate], rule: Rule) -> Candidate | None:
    """Return the best candidate by a rule, of those within the limits; None where no candidate has a plan."""
    feasible = [(candidate, candidate.plan) for candidate in candidates if candidate.plan is not None]
    return rule([pair for pair in feasible if not pair[0].beyond] or feasible) if feasible else None


def by_expected_error(plans: Plans) -> Candidate:
    """Return the best candidate by rules 2 and 3 above."""
    least = min(plan.expected_error for _, plan in plans)
    certain = [pair for pair in plans if not pair[1].max_uncertified and pair[1].expected_error <= least * DOUBT]
    plans = _near(certain or plans, lambda _, plan: plan.expected_error)
    plans = _near(plans, lambda _, plan: min(1.0, plan.max_half_width))

    def order(pair: tuple[Candidate, MechanismPlan]) -> tuple[bool, float, float, str]:
        candidate, plan = pair
        return _charges_analysts(plan), plan.seconds, plan.expected_error, candidate.mechanism

    return min(plans, key=order)[0]


def by_promise(plans: Plans) -> Candidate:
    """Return the best candidate for an operator who answers for bounds."""
    plans = _near(plans, lambda candidate, _: counted_error(candidate.alpha))
    least = min(counted_error(plan.max_half_width) for _, plan in plans)
    plans = _near(plans, lambda _, plan: counted_error(plan.max_half_width))

    def order(pair: tuple[Candidate, MechanismPlan]) -> tuple[tuple[float, ...], bool, float, float, str]:
        candidate, plan = pair
        unsaid = (candidate.alpha, plan.max_half_width) if least == counted_error(SAYS_NOTHING) else ()
        return unsaid, _charges_analysts(plan), candidate.alpha, plan.seconds, candidate.mechanism

    return min(plans, key=order)[0]


def _near(plans: Plans, number: Callable[[Candidate, MechanismPlan], float]) -> Plans:
    least = min(number(*pair) for pair in plans)
    return [pair for pair in plans if number(*pair) <= least * (1 + NEAR)]


def _charges_analysts(plan: MechanismPlan) -> bool:
    return plan.analyst_cost not in (None, Cost())


def counted_error(error: float) -> float:
    """Return the error as `by_promise` counts it: 1 where it is `SAYS_NOTHING` or more."""
    return error if error < SAYS_NOTHING else 1.0
