"""The planner: asks every mechanism for its plan of a round, and chooses one. It uses public facts only.

The planner chooses by these rules, in this order:

0. A plan within the limits below is preferred. An operator with more time or memory may force any other plan.
1. The smallest `alpha`: the promised error, averaged over all queries of the round. Each certified answer counts
   the largest half-width, and as many answers as possible are uncertified. An uncertified answer has no promise and
   counts as 1, so no mechanism wins by certifying few answers. Where all answers are certified, `alpha` is the
   half-width.
2. The smallest half-width of the certified answers. This rule decides where no plan's `alpha` is informative.
3. Where these are not informative either, the smallest `alpha` itself, then the smallest half-width itself.
4. A plan without a cost to the analysts.
5. The smaller `alpha`, then fewer predicted seconds, then the name.

In rules 1 and 2 an error of `SAYS_NOTHING` or more counts as 1, because the constant answer 1/2 never has a larger
error. An error within `NEAR` of the smallest counts as equal to it: half-widths are proven, not measured, so small
differences between them say nothing about the real errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.universe import MAX_UNIVERSE
from equipoise_server.mechanisms.checking import check_setting
from equipoise_server.mechanisms.interface import Mechanism, OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.online.interface import SessionMechanism

MAX_SECONDS = 3600.0  # predicted, on one ordinary core
MAX_MEMORY = 16 * 2**30  # bytes
NEAR = 0.05
SAYS_NOTHING = 0.5

Refusal = InvalidArgument | BudgetExhausted
Report = Callable[[str], None]


@dataclass(frozen=True)
class Candidate:
    """One mechanism's plan, or the refusal where it has none.

    `alpha`: as in the rules above; 1 where there is no plan. `beyond`: in words, the limit that the plan exceeds;
    empty where it exceeds none.
    """

    mechanism: str
    plan: MechanismPlan | None
    refusal: Refusal | None
    alpha: float = 1.0
    beyond: str = ""


@dataclass(frozen=True)
class Comparison:
    """The candidates of all mechanisms, in the order in which they were asked, and the chosen one.

    `chosen` is None where no mechanism has a plan.
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate | None

    @property
    def plan(self) -> MechanismPlan:
        """The chosen plan. Raises one refusal, `InvalidArgument` or `BudgetExhausted`, where there is none."""
        if self.chosen is None or self.chosen.plan is None:
            raise _none_can(self.candidates)
        return self.chosen.plan


def compare(
    setting: PublicParameters,
    mechanisms: Mapping[str, Mechanism | SessionMechanism],
    report: Report = lambda name: None,
) -> Comparison:
    """Ask every mechanism for its plan, and choose one.

    Args:
        setting: the public parameters of the round.
        mechanisms: the mechanisms to compare, by name.
        report: called with each mechanism's name before that mechanism is asked.

    Returns:
        All plans and refusals, and the choice. A refusal by a mechanism is not raised.

    Raises:
        InvalidArgument: no mechanism can serve this setting; the message names the field.
        BudgetExhausted: a budget's delta is too small for any sampler.
    """
    check_setting(setting)
    candidates = []
    for name, planned in mechanisms.items():
        report(name)
        candidates.append(_candidate(planned, setting))
    return Comparison(tuple(candidates), choose(candidates))


def choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the best candidate by the rules above; None where no candidate has a plan."""
    feasible = [(candidate, candidate.plan) for candidate in candidates if candidate.plan is not None]
    if not feasible:
        return None
    left = [(candidate, plan) for candidate, plan in feasible if not candidate.beyond] or feasible
    least = min(said(candidate.alpha) for candidate, _ in left)
    left = [(candidate, plan) for candidate, plan in left if said(candidate.alpha) <= least * (1 + NEAR)]
    least = min(said(plan.max_half_width) for _, plan in left)
    left = [(candidate, plan) for candidate, plan in left if said(plan.max_half_width) <= least * (1 + NEAR)]

    def order(pair: tuple[Candidate, MechanismPlan]) -> tuple[tuple[float, ...], bool, float, float, str]:
        candidate, plan = pair
        unsaid = (candidate.alpha, plan.max_half_width) if least == said(SAYS_NOTHING) else ()
        return unsaid, plan.analyst_cost not in (None, Cost()), candidate.alpha, plan.seconds, candidate.mechanism

    return min(left, key=order)[0]


def alpha(plan: MechanismPlan, setting: PublicParameters) -> float:
    """Return the promised error averaged over all queries of the round, as a fraction of the records (rule 1)."""
    unsaid = min(1.0, plan.max_uncertified / setting.queries)
    return unsaid + (1 - unsaid) * min(1.0, plan.max_half_width)


def said(error: float) -> float:
    """Return the error as rules 1 and 2 count it: 1 where it is `SAYS_NOTHING` or more."""
    return error if error < SAYS_NOTHING else 1.0


def beyond_limits(plan: MechanismPlan, setting: PublicParameters) -> str:
    """Return, in words, the limit that a plan exceeds; empty where it exceeds none."""
    if setting.universe_size > MAX_UNIVERSE:
        return f"tables over more than {MAX_UNIVERSE:,} possible records cannot be read"
    # The comparisons are written so that NaN exceeds the limit.
    if not plan.seconds <= MAX_SECONDS:
        return f"would take {plan.seconds:,.0f} s, more than {MAX_SECONDS:,.0f} s"
    if not plan.memory_bytes <= MAX_MEMORY:
        return f"would need {plan.memory_bytes / 2**30:,.1f} GiB, more than {MAX_MEMORY / 2**30:,.0f} GiB"
    return ""


@dataclass(frozen=True)
class Auto:
    """The mechanism `auto`: plans with the mechanism that the planner chooses, and runs that mechanism."""

    mechanisms: Mapping[str, Mechanism]
    name: str = "auto"
    fitted: ClassVar[bool] = False  # a round is planned, run and replayed under the name of its own mechanism

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Return the chosen mechanism's plan, under that mechanism's name. Raises where no mechanism has a plan."""
        return compare(setting, self.mechanisms).plan

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Return the answers of the mechanism that the plan names."""
        return self.mechanisms[plan.mechanism].run(setting, plan, data, workloads, seed, progress)


def _candidate(mechanism: Mechanism | SessionMechanism, setting: PublicParameters) -> Candidate:
    try:
        plan = mechanism.plan(setting)
    except (InvalidArgument, BudgetExhausted) as refusal:
        return Candidate(mechanism.name, None, refusal)
    return Candidate(mechanism.name, plan, None, alpha(plan, setting), beyond_limits(plan, setting))


def _none_can(candidates: Sequence[Candidate]) -> Refusal:
    """Return one refusal for all mechanisms: their common one, or a list of what each of them says.

    The refusal of a mechanism that does not have a forced option is left out. Where no mechanism has the option,
    the refusal lists the options of each mechanism.
    """
    refusals = {each.mechanism: each.refusal for each in candidates if each.refusal is not None}
    known = {name: each for name, each in refusals.items() if ": unknown" not in each.message}
    fields = {_field(each) for each in (known or refusals).values()}
    if known and len(fields) == 1:
        return next(iter(known.values()))
    if len(fields) == 1:
        options_of = {name: each.message.partition("; there is ")[2] for name, each in refusals.items()}
        others = "; ".join(f"{name} has {options}" for name, options in options_of.items() if options)
        return InvalidArgument(fields.pop(), f"unknown to every mechanism: {others}")
    known = known or refusals
    problems = "; ".join(f"{name}: {each.message}" for name, each in known.items())
    return InvalidArgument("mechanism", f"none can serve this: {problems}")


def _field(refusal: Refusal) -> str:
    return refusal.message.partition(": ")[0]
