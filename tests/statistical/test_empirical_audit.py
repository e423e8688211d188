"""The statistical audit: what outcomes of the shipped run alone prove, against what is claimed.

Every audit is of `Equilibrium().run` on two neighbours, with a seed of its own for each run. It fails where the
certified lower bound on epsilon exceeds the claim. A sound mechanism raises a false alarm with probability at
most 1e-6 in all, divided over the audits; a true epsilon 10 % above the claim is refuted at the nightly size
with the probability that `power` computes exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from harness.audit_size import SIZES, AuditSize
from harness.exact_game import masks_workload
from statistical.exact_pipeline import Pair, pipeline_law

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_lab.audit.clopper_pearson import Outcome, Sampler, certified_epsilon, certify, power
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

FALSE_ALARM = 1e-6
AUDITS = 10  # six of the shipped run, four of known mechanisms
LEVEL = FALSE_ALARM / AUDITS
DELTA = 0.01
NIGHTLY = SIZES["nightly"].runs


@dataclass(frozen=True)
class Case:
    """Two neighbouring inputs and who looks: everybody, or all analysts but the one that changes."""

    setting: PublicParameters
    data: tuple[list[int], list[int]]
    asked: tuple[dict[str, list[int]], dict[str, list[int]]]
    viewers: tuple[str, ...]

    def samplers(self, plan: MechanismPlan) -> tuple[Sampler, Sampler]:
        """One run of the shipped mechanism on either input, as its viewers see it."""
        return self._sampler(plan, 0), self._sampler(plan, 1)

    def exact_epsilon(self, plan: MechanismPlan) -> float:
        """The true epsilon of these two inputs at `DELTA`, by enumeration (unit = query)."""
        laws = []
        for data, asked in zip(self.data, self.asked, strict=True):
            workloads = {name: masks_workload(masks, len(data)) for name, masks in asked.items()}
            laws.append(pipeline_law(self.setting, plan, np.array(data, dtype=np.int64), workloads, self.viewers))
        return Pair.of(laws[0], laws[1]).epsilon(DELTA)

    def _sampler(self, plan: MechanismPlan, side: int) -> Sampler:
        histogram = np.array(self.data[side], dtype=np.int64)
        workloads: dict[str, CompiledWorkload] = {
            name: masks_workload(masks, len(histogram)) for name, masks in self.asked[side].items()
        }

        def run(number: int) -> Outcome:
            seed = (2 * number + side).to_bytes(32, "big")
            outcome = Equilibrium().run(
                self.setting, plan, DenseCounts(histogram), workloads, seed, lambda *_: None
            )
            told = [outcome.answers[name] for name in self.viewers]
            # Intervals coarsely: one that a test's noise gave is hardly ever seen twice.
            answers = ((*a.values.tolist(), *a.methods.tolist(), *(a.highs - a.lows >> 39).tolist()) for a in told)
            return tuple(outcome.synopsis.cells.tolist()), *answers

        return run


def setting(
    unit: str, shares: dict[str, int], records: int, data: float, analyst: float, **options: object
) -> PublicParameters:
    """A universe of three cells, and a game of three rounds of one record."""
    return PublicParameters(
        records=records,
        universe_size=3,
        shares=tuple(Share(name, count, count) for name, count in shares.items()),
        unit=unit,
        data_budget=Budget(data, DELTA),
        analyst_budget=Budget(analyst, DELTA),
        beta=0.1,
        options={"rounds": 3, "batch": 1, "draws": 1, "density": 1.5} | options,
    )


def moved_record(unit: str, budget: float, **options: object) -> Case:
    """The only record moves; both analysts ask for where it was or went."""
    asked = {"a": [1], "b": [2]}
    public = setting(unit, {"a": 1, "b": 1}, 1, budget, 16.0, **options)
    return Case(public, ([1, 0, 0], [0, 1, 0]), (asked, asked), ("a", "b"))


def changed_question(
    unit: str, budget: float, absent: int, kept: list[int], changed: list[int], **options: object
) -> Case:
    """b asks something else; a, who asks for nothing that can be wrong, and the synopsis tell of it."""
    shares = {"a": 1, "b": 1, "c": 1} | {f"absent-{place}": 1 for place in range(absent)}
    asked = {"a": [7], "b": kept, "c": [6]}
    public = setting(unit, shares, 2, 50.0, budget, **options)
    return Case(public, ([0, 1, 1], [0, 1, 1]), (asked, asked | {"b": changed}), ("a", "c"))


DATA_CASES = {
    "mixed": moved_record("query", 16.0, query_rate=2, data_rate=1, threshold=0, game_share=0.9),
    "sampled": moved_record("query", 16.0, play="sampled", query_rate=0.3, data_rate=1, threshold=0),
    "whole analysts": moved_record("analyst", 16.0, query_rate=2, data_rate=1, threshold=0, repair_rounds=1),
}
ANALYST_CASES = {
    "mixed": changed_question("query", 4.0, 5, [2], [4], density=4, query_rate=5, data_rate=2, game_share=0.95),
    "sampled": changed_question(
        "query", 4.0, 5, [2], [4], density=4, play="sampled", draws=1, query_rate=1, data_rate=0.5
    ),
    "whole analysts": changed_question(
        "analyst", 4.0, 28, [7], [2], density=8, query_rate=5, data_rate=0.2, cut_off=1, threshold=0.1,
        repair_rounds=1,
    ),
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("name", DATA_CASES)
def test_a_moved_record_shows_no_more_than_is_charged(name: str, audit_size: AuditSize) -> None:
    case = DATA_CASES[name]
    plan = Equilibrium().plan(case.setting)
    check_audit(f"a moved record, {name}", case, plan, epsilon_for(plan.data_cost, DELTA), audit_size)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ANALYST_CASES)
def test_a_changed_question_shows_no_more_than_is_charged(name: str, audit_size: AuditSize) -> None:
    case = ANALYST_CASES[name]
    plan = Equilibrium().plan(case.setting)
    check_audit(
        f"a changed question, {name}", case, plan, epsilon_for(plan.charged_analyst_cost, DELTA), audit_size
    )


def check_audit(name: str, case: Case, plan: MechanismPlan, claim: float, size: AuditSize) -> None:
    """What is certified is at most what is true of these inputs, and that is at most the claim."""
    certificate = certify(*case.samplers(plan), size.runs, DELTA, LEVEL)
    exact = case.exact_epsilon(plan) if case.setting.unit == "query" else claim
    print(
        f"\n{name}: epsilon at delta {DELTA} is claimed to be {claim:.3f}, is at most {exact:.3f}, and is "
        f"certified to be at least {certificate.epsilon:.3f}: the event was hit in {certificate.hits} and "
        f"{certificate.other_hits} of {certificate.runs} runs"
    )
    # Enumeration finds epsilon to 10^-4 of it.
    assert certificate.epsilon <= exact * 1.001 <= claim * 1.001 < math.inf


@pytest.mark.nightly
def test_answers_without_noise_are_refuted_at_the_fast_size(monkeypatch: pytest.MonkeyPatch) -> None:
    case = moved_record("query", 1.0, query_rate=0.1, data_rate=0.1, threshold=0)
    plan = Equilibrium().plan(case.setting)
    monkeypatch.setattr(DiscreteLaplace, "draw", lambda noise, count, stream: np.zeros(count, dtype=np.int64))
    certificate = certify(*case.samplers(plan), SIZES["fast"].runs, DELTA, LEVEL)
    assert certificate.epsilon > epsilon_for(plan.data_cost, DELTA)


def randomised_response(epsilon: float) -> tuple[Sampler, Sampler]:
    """One bit, told rightly with odds e^epsilon: exactly epsilon-DP."""
    coins = np.random.default_rng(1).random(4 * NIGHTLY) < 1 / (1 + math.exp(-epsilon))
    return lambda run: (bool(coins[run]),), lambda run: (not coins[2 * NIGHTLY + run],)


def noisy_count(epsilon: Fraction) -> tuple[Sampler, Sampler]:
    """A count of 0 or 1 with the shipped noise: exactly epsilon-DP."""
    stream = KeyedStream.derive(b"\x0a" * 32, "audit", str(epsilon))
    noise = DiscreteLaplace(epsilon).draw(4 * NIGHTLY, stream)
    return lambda run: (int(noise[run]),), lambda run: (int(noise[2 * NIGHTLY + run]) + 1,)


@pytest.mark.thin(9)
@pytest.mark.parametrize("claim", [1.0, 2.0, 4.0])
def test_the_nightly_size_refutes_ten_per_cent_more_than_is_claimed(claim: float) -> None:
    """Exact probabilities; what they say is then seen to happen."""
    wrong = 1 / (1 + math.exp(1.1 * claim))
    assert power(1 - wrong, wrong, NIGHTLY, 0.0, LEVEL, claim) > 0.999
    # And a claim that is true is refuted hardly ever.
    assert power(1 - wrong, wrong, NIGHTLY, 0.0, LEVEL, 1.1 * claim) <= LEVEL
    certificate = certify(*randomised_response(1.1 * claim), NIGHTLY, 0.0, LEVEL)
    assert claim < certificate.epsilon <= 1.1 * claim


def test_the_nightly_size_refutes_noise_at_nine_tenths_of_its_scale() -> None:
    claim = Fraction(1)
    true, scaled = (certify(*noisy_count(each), NIGHTLY, 0.0, LEVEL) for each in (claim, claim * 10 / 9))
    assert 0.8 < true.epsilon <= 1 < scaled.epsilon <= 10 / 9


def test_the_power_is_what_is_counted() -> None:
    """Against a plain loop over both numbers of hits."""
    runs, level, claim, chances = 40, 0.01, 0.5, (0.8, 0.2)
    steps = np.arange(runs + 1)
    masses = [
        np.array([math.comb(runs, k) * chance**k * (1 - chance) ** (runs - k) for k in steps]) for chance in chances
    ]
    counted = sum(
        masses[0][hits] * masses[1][others]
        for hits in steps
        for others in steps
        if certified_epsilon(np.array([hits]), np.array([others]), runs, 0.05, level)[0] > claim
    )
    assert power(*chances, runs, 0.05, level, claim) == pytest.approx(counted, rel=1e-9)
    assert 0.1 < counted < 0.999


def test_bounds_hold_at_the_ends() -> None:
    """No hits certify nothing; all hits against none certify what the size allows; delta is taken off."""
    runs, level = 100, 0.01
    nothing = certified_epsilon(np.array([0, 100, 50]), np.array([0, 100, 50]), runs, 0.0, level)
    assert nothing.tolist() == [0.0, 0.0, 0.0]
    most = (level / 2) ** (1 / runs)
    assert certified_epsilon(np.array([100]), np.array([0]), runs, 0.0, level)[0] == pytest.approx(
        math.log(most / (1 - most))
    )
    assert certified_epsilon(np.array([100]), np.array([0]), runs, most, level)[0] == 0.0


def test_a_sampler_that_never_differs_certifies_nothing() -> None:
    def constant(run: int) -> Outcome:  # noqa: ARG001
        return (0,)

    assert certify(constant, constant, 50, 0.0, 0.01).epsilon == 0


@pytest.mark.parametrize(("runs", "delta", "level"), [(0, 0.0, 0.1), (1, -0.1, 0.1), (1, 1.0, 0.1), (1, 0.0, 0.0)])
def test_audits_that_mean_nothing_are_refused(runs: int, delta: float, level: float) -> None:
    with pytest.raises(ValueError, match=r"is (not between|below)"):
        certify(lambda run: (run,), lambda run: (run,), runs, delta, level)
