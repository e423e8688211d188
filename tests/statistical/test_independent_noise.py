"""`laplace` and `gaussian`, enumerated: what a record and an analyst show, and what is charged; and faults.

Two analysts share a universe of two records; one asks for its table, the other for one of its cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from harness.exact_game import Law, masks_workload, table_workload
from numpy.typing import NDArray
from statistical.exact_noise import TINY, keeps_to, noise_law, use_of
from statistical.exact_pipeline import Pair

from equipoise import accounting
from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms import calibration, make_plan
from equipoise_server.mechanisms.independent_noise import mechanism as noise_mechanism
from equipoise_server.mechanisms.independent_noise import plan as noise_plan
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN, LAPLACE, IndependentNoise
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

RECORDS = 3
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=2,
    shares=(Share("a", 1, 2, 2), Share("b", 1, 1, 1)),
    unit="query",
    data_budget=Budget(5.0, 0.01),
    analyst_budget=Budget(1.0, 0.01),
    beta=0.1,
    options={},
)
TABLE, CELL, OTHER, NOTHING = (
    table_workload([], 2),
    masks_workload([1], 2),
    masks_workload([2], 2),
    masks_workload([], 2),
)
Histogram = NDArray[np.int64]
Switch = Callable[[pytest.MonkeyPatch], None]
both = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=lambda each: each.name)

GUARANTEES = {
    "laplace": "`laplace`, of scale `l1_sensitivity / epsilon`, is epsilon-DP",
    "gaussian": "`gaussian`, of variance `v`, costs `l1_sensitivity / (2 v)` in zCDP",
}
FOR_ANALYSTS = (
    "Given the shares, an analyst's answers are a function of its own workload, the data and its own noise; "
    "noise never depends on what is submitted."
)


def law_of(
    mechanism: IndependentNoise, histogram: Histogram, asked: dict[str, CompiledWorkload], *viewers: str
) -> Law:
    return noise_law(mechanism, SETTING, mechanism.plan(SETTING), histogram, asked, viewers, RECORDS)


def pairs(mechanism: IndependentNoise) -> Iterator[Pair]:
    """What both analysts see of every table of so many records, and of it with one record replaced."""
    asked, before = {"a": TABLE, "b": CELL}, None
    for ones in range(RECORDS + 1):
        law = law_of(mechanism, np.array([ones, RECORDS - ones]), asked, "a", "b")
        if before is not None:
            yield Pair.of(before, law)
        before = law


def a_record_shows_no_more_than_is_charged(mechanism: IndependentNoise) -> bool:
    cost = mechanism.plan(SETTING).data_cost
    return all(keeps_to(pair, cost) for pair in pairs(mechanism))


def no_analyst_shows_another_anything(mechanism: IndependentNoise) -> bool:
    """The law of what one analyst gets is the very same, whatever the other asks and whether it comes."""
    histogram = np.array([1, 2])
    laws = [law_of(mechanism, histogram, {"a": TABLE, "b": other}, "a") for other in (CELL, OTHER, NOTHING)] + [
        law_of(mechanism, histogram, {"a": TABLE}, "a")
    ]
    return all(float(np.abs(pair.ours - pair.theirs).sum()) < TINY for pair in map(Pair.of, laws[1:], laws))


def analysts_get_noise_of_their_own(mechanism: IndependentNoise) -> bool:
    """What two analysts get for one question differs in some of sixteen runs, as independent noise does."""
    setting = replace(SETTING, shares=(Share("a", 1, 1), Share("b", 1, 1)))
    plan, seen = mechanism.plan(setting), []
    for number in range(16):
        seed = number.to_bytes(32)
        outcome = mechanism.run(
            setting, plan, DenseCounts(np.array([1, 2])), {"a": CELL, "b": CELL}, seed, lambda *_: None
        )
        seen.append(outcome.answers["a"].values[0] == outcome.answers["b"].values[0])
    return not all(seen)


@both
def test_the_guarantees_are_what_is_enumerated(mechanism: IndependentNoise) -> None:
    written = " ".join(str(IndependentNoise.__doc__).split())
    assert GUARANTEES[mechanism.name] in written
    assert FOR_ANALYSTS in written
    parameters = NoiseParameters.from_json(mechanism.plan(SETTING).parameters)
    assert parameters.l1_sensitivity == 3
    law, cost = parameters.noise.law(parameters.l1_sensitivity), mechanism.plan(SETTING).data_cost
    if isinstance(law, DiscreteLaplace):
        assert (cost.rho, cost.epsilon) == (0, 5 * 10**12)
        assert law.rate * parameters.l1_sensitivity == 5
    else:
        assert isinstance(law, DiscreteGaussian)
        assert cost.epsilon == 0
        assert cost.rho == -(-(10**12) * parameters.l1_sensitivity // (2 * law.variance))


@pytest.mark.thin(2)
@both
def test_a_record_shows_what_is_charged_and_no_more(mechanism: IndependentNoise) -> None:
    cost, seen = mechanism.plan(SETTING).data_cost, list(pairs(mechanism))
    assert all(keeps_to(pair, cost) for pair in seen)
    # Answers between 0 and all records show a little less than the noise that is charged.
    assert max(use_of(pair, cost) for pair in seen) > 0.9


@pytest.mark.thin(2)
@both
def test_an_analyst_shows_another_nothing(mechanism: IndependentNoise) -> None:
    assert no_analyst_shows_another_anything(mechanism)
    assert analysts_get_noise_of_their_own(mechanism)
    assert mechanism.plan(SETTING).analyst_cost == Cost()


def planned_with(patches: pytest.MonkeyPatch, sensitivity: Callable[[Share], int]) -> None:
    """A plan that believes other sensitivities of the shares than are declared."""
    plan = IndependentNoise.plan

    def believing(mechanism: IndependentNoise, setting: PublicParameters) -> MechanismPlan:
        shares = tuple(replace(share, sensitivity=sensitivity(share)) for share in setting.shares)
        return plan(mechanism, replace(setting, shares=shares))

    patches.setattr(IndependentNoise, "plan", believing)


def halved_sensitivity(patches: pytest.MonkeyPatch) -> None:
    """A record moves half as much."""
    planned_with(patches, lambda share: -(-share.sensitivity // 2))


def column_norm(patches: pytest.MonkeyPatch) -> None:
    """What adding a record moves: one for each statement."""
    planned_with(patches, lambda share: share.statements)


def scaled_noise(patches: pytest.MonkeyPatch) -> None:
    """Every noise has 0.9 times its scale."""
    law_of = calibration.noise_distribution

    def smaller(noise: object, moved: int) -> DiscreteLaplace | DiscreteGaussian:
        law = law_of(noise, moved)  # type: ignore[arg-type]
        if isinstance(law, DiscreteLaplace):
            return DiscreteLaplace(law.rate * 10 / 9)
        assert isinstance(law, DiscreteGaussian)
        return DiscreteGaussian(law.variance * 81 / 100)

    for module in (noise_plan, noise_mechanism):
        patches.setattr(module, "noise_distribution", smaller)


def realised_charge(patches: pytest.MonkeyPatch) -> None:
    """A charge for the one analyst of two who came, and not for the shares of both."""
    charge_of = accounting.charge_of

    def smaller(parts: object) -> Cost:
        cost = charge_of(parts)  # type: ignore[arg-type]
        return Cost(cost.rho * 2 // 3, cost.epsilon * 2 // 3, cost.delta)

    patches.setattr(make_plan, "charge_of", smaller)


def noise_as_submitted(patches: pytest.MonkeyPatch) -> None:
    """Noise calibrated to what analysts ask for, where that is less than they may."""
    run = IndependentNoise.run

    def calibrated(
        mechanism: IndependentNoise,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: dict[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        asked = sum(workload.l1_sensitivity for workload in workloads.values())
        parameters = replace(NoiseParameters.from_json(plan.parameters), l1_sensitivity=asked)
        plan = replace(plan, parameters=parameters.to_json())
        return run(mechanism, setting, plan, data, workloads, seed, progress)

    patches.setattr(IndependentNoise, "run", calibrated)


def reused_stream(patches: pytest.MonkeyPatch) -> None:
    """One stream for the noise of all analysts, each of whom begins it anew."""

    def forgetful(seed: bytes, _: CompiledWorkload, *labels: str) -> KeyedStream:
        return KeyedStream.derive(seed, labels[0])

    patches.setattr(noise_mechanism, "own_stream", forgetful)


MUTANTS: list[tuple[Callable[[IndependentNoise], bool], Switch]] = [
    (a_record_shows_no_more_than_is_charged, halved_sensitivity),
    (a_record_shows_no_more_than_is_charged, column_norm),
    (a_record_shows_no_more_than_is_charged, scaled_noise),
    (a_record_shows_no_more_than_is_charged, realised_charge),
    (no_analyst_shows_another_anything, noise_as_submitted),
    (analysts_get_noise_of_their_own, reused_stream),
]


@pytest.mark.sparse(6)
@pytest.mark.thin(12)
@both
@pytest.mark.parametrize(("check", "switch"), MUTANTS, ids=[switch.__name__ for _, switch in MUTANTS])
def test_the_mutant_is_caught(
    mechanism: IndependentNoise,
    check: Callable[[IndependentNoise], bool],
    switch: Switch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    switch(monkeypatch)
    assert not check(mechanism)


@both
def test_noise_depends_on_shares_alone(mechanism: IndependentNoise) -> None:
    """A share that is not used up, or whose analyst stays away, is paid for with noise all the same."""
    more = replace(SETTING, shares=(*SETTING.shares, Share("c", 4, 9)))
    assert NoiseParameters.from_json(mechanism.plan(more).parameters).l1_sensitivity == 3 + 8
    scales = {
        NoiseParameters.from_json(mechanism.plan(replace(SETTING, shares=shares)).parameters)
        for shares in itertools.permutations(SETTING.shares)
    }
    assert len(scales) == 1
