"""The planner: asks every mechanism for its plan of a round, and chooses one by the rules of `choice`.

It uses public facts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import GRANT, STANDING_OPTION, MechanismPlan
from equipoise.model.rounds import STANDING as ANSWERING
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import ANSWERING_SUMS, check_setting
from equipoise_server.mechanisms.choice import Candidate, Refusal, Rule, by_expected_error, choose
from equipoise_server.mechanisms.interface import Mechanism, OnStep, Outcome, PublicParameters, unfollowed
from equipoise_server.mechanisms.online.interface import SessionMechanism
from equipoise_server.mechanisms.persons import planned_starts
from equipoise_server.mechanisms.prior.choice import (
    STANDING,
    Start,
    StartsFromPrior,
    without_measurement,
)

SUMS = "sums"  # the option of a round, true: only mechanisms that answer sums are chosen from
MAX_SECONDS = 3600.0  # predicted, on one ordinary core
MAX_MEMORY = 16 * 2**30  # bytes


@dataclass(frozen=True)
class Comparison:
    """The candidates of all mechanisms for one round, and the chosen one.

    Attributes:
        setting: the round's public parameters.
        candidates: in the order in which they were asked.
        chosen: None where no mechanism has a plan.
        rule: by which it was chosen.
    """

    setting: PublicParameters
    candidates: tuple[Candidate, ...]
    chosen: Candidate | None
    rule: Rule

    @property
    def plan(self) -> MechanismPlan:
        """The chosen plan. Raises one refusal, `InvalidArgument` or `BudgetExhausted`, where there is none."""
        if self.chosen is None or self.chosen.plan is None:
            raise _none_can(self.candidates)
        return self.chosen.plan

    @property
    def from_measurement(self) -> bool:
        """Whether the chosen plan answers or starts from the standing measurement in the options."""
        chosen = self.chosen
        return chosen is not None and _from_measurement(chosen)


def compare(
    setting: PublicParameters,
    mechanisms: Mapping[str, Mechanism | SessionMechanism],
    report: OnStep = unfollowed,
    rule: Rule | None = None,
) -> Comparison:
    """Ask every mechanism for its plan, and choose one.

    Args:
        setting: the public parameters of the round; with the option `sums`, the mechanism must answer sums.
        mechanisms: the mechanisms to compare, by name; `standing` is not asked where the options name no
            measurement.
        report: called with each mechanism's name before that mechanism is asked, and how many were, of how many.
        rule: by which one is chosen; the expected error where it is None.

    Returns:
        All plans and refusals, and the choice. A refusal by a mechanism is not raised.

    Raises:
        InvalidArgument: no mechanism can serve this setting; the message names the field.
        BudgetExhausted: a budget's delta is too small for any sampler.
    """
    check_setting(setting)
    sums, others = _sums_wanted(setting)
    candidates = []
    asked = {
        name: planned
        for name, planned in mechanisms.items()
        if planned.name != ANSWERING or STANDING_OPTION in setting.options
    }
    for done, (name, planned) in enumerate(asked.items()):
        report(name, done, len(asked))
        able = not sums or name in ANSWERING_SUMS
        candidates.append(_candidate(planned, others) if able else _counting(name))
    rule = rule or by_expected_error
    chosen = choose(candidates, rule)
    if chosen is not None and not _from_measurement(chosen):
        # As if there were no standing measurement: the record of such a round does not name it. What answers from
        # it is shown all the same: it costs nothing, and an operator may prefer that to the smallest error.
        answering = [each for each in candidates if each.mechanism == ANSWERING]
        candidates = [_without_standing(each, others) for each in candidates if each.mechanism != ANSWERING]
        chosen = choose(candidates, rule)
        candidates += answering
    return Comparison(setting, tuple(candidates), chosen, rule)


def without_choice(planned: Mechanism | SessionMechanism, setting: PublicParameters) -> Comparison:
    """Return the comparison of one mechanism with no other. Raises its refusal, where it has no plan."""
    candidate = _planned(planned, setting)
    return Comparison(setting, (candidate,), candidate, by_expected_error)


def alpha(plan: MechanismPlan, setting: PublicParameters) -> float:
    """Return the promised error averaged over all queries of the round, as a fraction of the records (rule 1)."""
    unsaid = min(1.0, plan.max_uncertified / max(1, setting.queries))
    return unsaid + (1 - unsaid) * min(1.0, plan.max_half_width)


def beyond_limits(plan: MechanismPlan) -> str:
    """Return, in words, the limit that a plan exceeds; empty where it exceeds none."""
    # The comparisons are written so that NaN exceeds the limit.
    if not plan.seconds <= MAX_SECONDS:
        return f"would take {plan.seconds:,.0f} s, more than {MAX_SECONDS:,.0f} s"
    if not plan.memory_bytes <= MAX_MEMORY:
        return f"would need {plan.memory_bytes / 2**30:,.1f} GiB, more than {MAX_MEMORY / 2**30:,.0f} GiB"
    return ""


@dataclass(frozen=True)
class Auto:
    """The mechanisms `auto` and `auto_by_promise`: plan with the mechanism that the rule chooses, and run that."""

    mechanisms: Mapping[str, Mechanism]
    name: str
    rule: Rule
    fitted: ClassVar[bool] = False  # a round is planned, run and replayed under the name of its own mechanism

    def compare(self, setting: PublicParameters, report: OnStep = unfollowed) -> Comparison:
        """Return the plans of all mechanisms, and the choice. `report` and errors: as `compare` has them."""
        return compare(setting, self.mechanisms, report, self.rule)

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Return the chosen mechanism's plan, under that mechanism's name. Raises where no mechanism has a plan."""
        return self.compare(setting).plan

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


def _sums_wanted(setting: PublicParameters) -> tuple[bool, PublicParameters]:
    """Return whether the mechanism must answer sums, and the setting without that option, as mechanisms read it."""
    wanted = setting.options.get(SUMS, False)
    if not isinstance(wanted, bool):
        raise InvalidArgument(f"options.{SUMS}", "must be true or false")
    others = {name: each for name, each in setting.options.items() if name != SUMS}
    return wanted, replace(setting, options=others, sums=wanted)


def _counting(name: str) -> Candidate:
    return Candidate(name, None, InvalidArgument(f"options.{SUMS}", f"is true, and {name} answers counts alone"))


def _candidate(mechanism: Mechanism | SessionMechanism, setting: PublicParameters) -> Candidate:
    reads = mechanism.name == ANSWERING or isinstance(mechanism, StartsFromPrior)
    if STANDING_OPTION in setting.options and not reads:
        setting = replace(setting, options=without_measurement(setting.options))
    try:
        return _planned(mechanism, setting)
    except (InvalidArgument, BudgetExhausted) as refusal:
        return Candidate(mechanism.name, None, refusal)


def _planned(mechanism: Mechanism | SessionMechanism, setting: PublicParameters) -> Candidate:
    starts = tuple(planned_starts(mechanism, setting))
    choice = starts if isinstance(mechanism, StartsFromPrior) else ()
    return _of(mechanism.name, starts[0].plan, setting, choice)


def _of(name: str, plan: MechanismPlan, setting: PublicParameters, starts: tuple[Start, ...] = ()) -> Candidate:
    return Candidate(name, plan, None, alpha(plan, setting), beyond_limits(plan), starts)


def _from_measurement(candidate: Candidate) -> bool:
    return candidate.mechanism in (ANSWERING, GRANT) or _prior(candidate) == STANDING


def _prior(candidate: Candidate) -> str | None:
    return candidate.starts[0].prior if candidate.starts else None


def _without_standing(candidate: Candidate, setting: PublicParameters) -> Candidate:
    if _prior(candidate) != STANDING:
        return candidate
    starts = candidate.starts[1:]
    if starts:
        return _of(candidate.mechanism, starts[0].plan, setting, starts)
    problem = InvalidArgument("options.prior", "is standing, and another mechanism is expected to err less")
    return Candidate(candidate.mechanism, None, problem)


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
