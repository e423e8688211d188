"""The planner: what every mechanism would do in a round, and which of them is chosen. From public things only.

The choice, in order:

0. plans within the limits below before others, which an operator with more time or memory may force;
1. the smallest `alpha`: the error within which answers are said to be, on average over all queries of the round,
   where each certified one has the largest bound and as many as can be end uncertified. Of these nothing is said,
   so that each counts as 1: nobody wins by certifying little. Where all are certified it is the promise itself;
2. the smallest promise to the certified answers. It decides where nobody says anything of all answers;
3. where even these say nothing, the smallest alpha as it stands, then the smallest such promise;
4. no cost to the analysts before some;
5. the smaller alpha, the fewer predicted seconds, the name.

In 1 and 2 an error of `SAYS_NOTHING` or more counts as 1, since the answer 1/2 errs by no more whatever the truth;
and what is within `NEAR` of the smallest counts as equal to it, because promises are proven bounds, and such
differences between them say nothing about the errors.
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
    """One mechanism's plan, or why it has none.

    `alpha` as above, 1 where there is no plan. `beyond`: in words, the limit that the plan exceeds; empty where it
    exceeds none.
    """

    mechanism: str
    plan: MechanismPlan | None
    refusal: Refusal | None
    alpha: float = 1.0
    beyond: str = ""


@dataclass(frozen=True)
class Comparison:
    """Every mechanism, in the order of the registry. `chosen` is None where none has a plan."""

    candidates: tuple[Candidate, ...]
    chosen: Candidate | None

    @property
    def plan(self) -> MechanismPlan:
        """The chosen plan. Raises what is wrong where there is none."""
        if self.chosen is None or self.chosen.plan is None:
            raise _none_can(self.candidates)
        return self.chosen.plan


def compare(
    setting: PublicParameters,
    mechanisms: Mapping[str, Mechanism | SessionMechanism],
    report: Report = lambda name: None,
) -> Comparison:
    """Asks every mechanism for its plan and chooses. Calls `report` with each name before its turn.

    Raises `InvalidArgument` or `BudgetExhausted`, naming the field, for what no mechanism can do.
    """
    check_setting(setting)
    candidates = []
    for name, planned in mechanisms.items():
        report(name)
        candidates.append(_candidate(planned, setting))
    return Comparison(tuple(candidates), choose(candidates))


def choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the best of those that have a plan, by the rule above; None where none has."""
    feasible = [(candidate, candidate.plan) for candidate in candidates if candidate.plan is not None]
    if not feasible:
        return None
    left = [(candidate, plan) for candidate, plan in feasible if not candidate.beyond] or feasible
    least = min(said(candidate.alpha) for candidate, _ in left)
    left = [(candidate, plan) for candidate, plan in left if said(candidate.alpha) <= least * (1 + NEAR)]
    least = min(said(plan.error_bound) for _, plan in left)
    left = [(candidate, plan) for candidate, plan in left if said(plan.error_bound) <= least * (1 + NEAR)]

    def order(pair: tuple[Candidate, MechanismPlan]) -> tuple[tuple[float, ...], bool, float, float, str]:
        candidate, plan = pair
        unsaid = (candidate.alpha, plan.error_bound) if least == said(SAYS_NOTHING) else ()
        return unsaid, plan.analyst_cost not in (None, Cost()), candidate.alpha, plan.seconds, candidate.mechanism

    return min(left, key=order)[0]


def alpha(plan: MechanismPlan, setting: PublicParameters) -> float:
    """The error within which a round's answers are said to be, with the confidence of the bounds: see above."""
    unsaid = min(1.0, plan.max_uncertified / setting.queries)
    return unsaid + (1 - unsaid) * min(1.0, plan.error_bound)


def said(error: float) -> float:
    """Return what a promise of this error counts as: 1 where it says nothing."""
    return error if error < SAYS_NOTHING else 1.0


def beyond_limits(plan: MechanismPlan, setting: PublicParameters) -> str:
    """In words, the limit that a plan exceeds; empty where it exceeds none."""
    if setting.universe_size > MAX_UNIVERSE:
        return f"tables over more than {MAX_UNIVERSE:,} possible records cannot be read"
    # Written so that NaN is beyond.
    if not plan.seconds <= MAX_SECONDS:
        return f"would take {plan.seconds:,.0f} s, more than {MAX_SECONDS:,.0f} s"
    if not plan.memory_bytes <= MAX_MEMORY:
        return f"would need {plan.memory_bytes / 2**30:,.1f} GiB, more than {MAX_MEMORY / 2**30:,.0f} GiB"
    return ""


@dataclass(frozen=True)
class Auto:
    """`auto`: plans as the best of `mechanisms` for the setting does, and runs that one."""

    mechanisms: Mapping[str, Mechanism]
    name: str = "auto"
    fitted: ClassVar[bool] = False  # a round is planned, run and replayed under the name of its own mechanism

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """The chosen mechanism's plan, under its own name. Raises where no mechanism can serve the setting."""
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
        """Return what the plan's own mechanism answers."""
        return self.mechanisms[plan.mechanism].run(setting, plan, data, workloads, seed, progress)


def _candidate(mechanism: Mechanism | SessionMechanism, setting: PublicParameters) -> Candidate:
    try:
        plan = mechanism.plan(setting)
    except (InvalidArgument, BudgetExhausted) as refusal:
        return Candidate(mechanism.name, None, refusal)
    return Candidate(mechanism.name, plan, None, alpha(plan, setting), beyond_limits(plan, setting))


def _none_can(candidates: Sequence[Candidate]) -> Refusal:
    """Return one refusal for all: the one that all give, or what each of them says.

    A mechanism that does not know a forced option is not asked. Where nobody knows it, those that have options say
    which.
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
