"""The statistical audit of a mechanism with chosen parameters: it compares claims with what the runs certify.

A mechanism is run again and again on neighbouring inputs made from public numbers. What its viewers see certifies,
by `clopper_pearson`, that epsilon is at least so much on these inputs; above the claim, the claim is refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equipoise.accounting import DELTA_UNIT, Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise_lab.audit.clopper_pearson import Certificate, certify, detectable_epsilon, largest_certified
from equipoise_lab.audit.neighbours import Instance, Neighbours
from equipoise_lab.audit.run_statistics import QuantileBins, RunStatistics, statistics_of
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.interface import OnStep
from equipoise_server.mechanisms.registry import mechanism

MIN_RUNS, MAX_RUNS = 20, 1_000_000
FOUND = 0.9  # the chance with which a violation is to be found that counts as one that would be


@dataclass(frozen=True)
class Finding:
    """What one pair of neighbours proves. `claim`: epsilon at the delta at which it is audited.

    `detectable`: the smallest true epsilon that would be found with a chance of 90 %; None where no run of this
    size could refute the claim. `largest`: the most that can be certified at all.
    """

    neighbours: Neighbours
    claim: Budget
    certificate: Certificate
    detectable: float | None
    largest: float

    @property
    def refuted(self) -> bool:
        """Whether more is certified than is claimed."""
        return self.certificate.epsilon > self.claim.epsilon


@dataclass(frozen=True)
class Audit:
    """An audit's outcome. `runs` of each input choose the event, and as many again test it.

    A sound mechanism is refuted with probability at most `level`, divided evenly over the findings.
    """

    instance: Instance
    plan: MechanismPlan
    runs: int
    level: float
    findings: tuple[Finding, ...]

    @property
    def refuted(self) -> bool:
        """Whether any claim is."""
        return any(finding.refuted for finding in self.findings)


def audit(
    name: str, instance: Instance, runs: int, level: float, seeds: Callable[[], bytes], progress: OnStep
) -> Audit:
    """Plan a mechanism for an instance, and audit both of its claims.

    Args:
        name: The mechanism's.
        instance: The public parameters, and both pairs of neighbouring inputs.
        runs: On each input, in each half of the audit.
        level: The probability of a false alarm, of both claims together.
        seeds: Returns 32 fresh bytes for each run.
        progress: Hears how far it is.

    Raises:
        InvalidArgument: Naming a field; and what planning raises.
    """
    if not MIN_RUNS <= runs <= MAX_RUNS:
        raise InvalidArgument("runs", f"must lie between {MIN_RUNS} and {MAX_RUNS:,}, not {runs:,}")
    if not 0 < level < 1:
        raise InvalidArgument("level", "must lie between 0 and 1")
    instance.check()
    setting = instance.setting
    plan = mechanism(name).plan(setting)
    claims = {
        "data": claim_of(plan.data_cost, setting.data_budget),
        "analysts": claim_of(plan.charged_analyst_cost, setting.analyst_budget),
    }
    pairs = instance.neighbours()
    findings = tuple(
        audited(instance, plan, pair, claims[pair.side], runs, level / len(pairs), seeds, progress)
        for pair in pairs
    )
    return Audit(instance, plan, runs, level, findings)


def claim_of(cost: Cost, budget: Budget) -> Budget:
    """What a charge claims: at its own delta where it is a pair, at the budget's where it holds at every delta."""
    delta = budget.delta if cost.rho else cost.delta / DELTA_UNIT
    return Budget(epsilon_for(cost, delta), delta)


def audited(
    instance: Instance,
    plan: MechanismPlan,
    pair: Neighbours,
    claim: Budget,
    runs: int,
    level: float,
    seeds: Callable[[], bytes],
    progress: OnStep,
) -> Finding:
    """Return what runs of a planned mechanism on two neighbours certify against a claim.

    Only the runs that choose the event also choose how numbers are grouped, so the others test both.

    Args:
        instance: What the mechanism runs on.
        plan: Of the mechanism.
        pair: The neighbouring inputs, and who looks at the outputs.
        claim: The pair that is claimed; epsilon is certified at its delta.
        runs: On each input, in each half.
        level: The probability of a false alarm.
        seeds: Returns 32 fresh bytes for each run.
        progress: Hears how far it is.
    """
    made = [_run_side(instance, plan, pair, side, runs, seeds, progress) for side in (0, 1)]
    groups = QuantileBins([*made[0][:runs], *made[1][:runs]])
    outcomes = [[groups.outcome(run) for run in side] for side in made]
    certificate = certify(outcomes[0].__getitem__, outcomes[1].__getitem__, runs, claim.delta, level)
    detectable = detectable_epsilon(runs, claim.delta, level, claim.epsilon, FOUND)
    return Finding(pair, claim, certificate, detectable, largest_certified(runs, claim.delta, level))


def _run_side(
    instance: Instance,
    plan: MechanismPlan,
    pair: Neighbours,
    side: int,
    runs: int,
    seeds: Callable[[], bytes],
    progress: OnStep,
) -> list[RunStatistics]:
    """Return what the viewers see in twice so many runs on one of the two inputs."""
    run, given, made = mechanism(plan.mechanism).run, pair.inputs[side], list[RunStatistics]()
    for done in range(2 * runs):
        progress(f"{pair.side}: running", 2 * side * runs + done, 4 * runs)
        released = run(instance.setting, plan, given.data, given.workloads, seeds(), lambda *_: None)
        made.append(statistics_of(released, pair.viewers, pair.margin))
    return made
