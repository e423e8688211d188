"""The whole `equilibrium` with whole analysts protected: synopsis, tests, places, answers and intervals together.

The exact law on neighbouring data and on neighbouring workloads, against what is charged; and a sample of the
shipped run against that law.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.audit_size import AuditSize
from harness.exact_game import masks_workload
from statistical.binomial_bins import deviates
from statistical.exact_analyst_pipeline import analyst_pipeline_law
from statistical.exact_pipeline import Histogram, Pair
from statistical.pipeline_instances import ROUNDING, used

from equipoise.accounting import charge_of
from equipoise.model.accounts import Budget
from equipoise.model.results import NO_ANSWERS
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.costs import analyst_parts, data_parts
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces

UNIVERSE = 2
HIDDEN = RepairPlaces(1, Fraction(3, 2), 2)  # the count test decides, and its cap is met
UNCAPPED = RepairPlaces(0, Fraction(3, 2), 3)  # the count test alone decides


def setting(
    analysts: str, records: int, data: float, analyst: float, delta: float, **options: object
) -> PublicParameters:
    """A universe of two cells; every analyst may ask two statements."""
    return PublicParameters(
        records=records,
        universe_size=UNIVERSE,
        shares=tuple(Share(name, 2, 2) for name in analysts),
        unit="analyst",
        data_budget=Budget(data, delta),
        analyst_budget=Budget(analyst, delta),
        beta=0.1,
        options={"batch": 1, "draws": 1, "density": 1.5, "repair_rounds": 1} | options,
    )


def with_places(public: PublicParameters, places: RepairPlaces) -> MechanismPlan:
    """The plan, with other repair places and what these cost: so few analysts would all have one."""
    plan = Equilibrium().plan(public)
    parameters = EquilibriumParameters.from_json(plan.parameters)
    assert isinstance(parameters.repair, AnalystRepairParameters)
    changed = replace(parameters, repair=replace(parameters.repair, places=places))
    size = Size.of(public)
    return replace(
        plan,
        parameters=changed.to_json(),
        data_cost=charge_of(data_parts(changed, size, public)),
        analyst_cost=charge_of(analyst_parts(changed, size, public, public.analyst_budget.epsilon)),
    )


def pair(
    public: PublicParameters,
    plan: MechanismPlan,
    data: tuple[Histogram, Histogram],
    asked: tuple[dict[str, list[int]], dict[str, list[int]]],
    viewers: str,
) -> Pair:
    """The laws of what the viewers see of two neighbours."""
    parameters = EquilibriumParameters.from_json(plan.parameters)
    laws = [
        analyst_pipeline_law(
            public,
            parameters,
            histogram,
            {name: masks_workload(masks, UNIVERSE) for name, masks in each.items()},
            list(viewers),
        )
        for histogram, each in zip(data, asked, strict=True)
    ]
    assert sum(laws[0].values()) == pytest.approx(1, abs=1e-4)
    return Pair.of(*laws)


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("hidden", [False, True])
def test_data_neighbours_leak_at_most_the_charge(hidden: bool, audit_size: AuditSize) -> None:
    choose, worst = np.random.default_rng(41), 0.0
    for _ in range(max(4, audit_size.tries // 10)):
        records = int(choose.integers(1, 3))
        public = setting(
            "ab", records, float(choose.choice([0.5, 1, 4])), 4.0, float(choose.choice([1e-6, 1e-2])),
            rounds=int(choose.integers(1, 3)), query_rate=0.5, data_rate=0.5, threshold=float(choose.random()),
        )  # fmt: skip
        plan = with_places(public, HIDDEN) if hidden else Equilibrium().plan(public)
        at = int(choose.integers(0, records + 1))
        data = np.array([at, records - at]), np.array([at + 1, records - at - 1] if at < records else [at - 1, 1])
        asked = {"a": [int(choose.integers(1, 3))], "b": choose.integers(1, 4, 2).tolist()}
        found = used(pair(public, plan, data, (asked, asked), "ab"), plan.data_cost, public.data_budget.delta)
        worst = max(worst, found)
    print(f"\nall analysts, hidden places {hidden}: at most {worst:.3f} of the charge")
    assert 0.1 <= worst <= 1


@pytest.mark.thin(4)
@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_analyst_neighbours_leak_at_most_the_charge(play: str, audit_size: AuditSize) -> None:
    """b asks anything else, more, or nothing; a and c, who want places too, pool what they see."""
    choose, worst = np.random.default_rng(42), 0.0
    public = setting(
        "bac", 2, 50.0, 2.0, 0.3, play=play, rounds=2, query_rate=1.0, data_rate=0.2, threshold=0.5
    )  # fmt: skip
    plan = with_places(public, UNCAPPED)
    cost, data = plan.charged_analyst_cost, np.array([2, 0])
    others = {"a": [1], "c": [1]}
    pairs = [([3], [1]), ([1, 2], []), *(random_masks(choose) for _ in range(audit_size.tries // 10))]
    for one, other in pairs:
        laws = pair(public, plan, (data, data), (others | asks(one), others | asks(other)), "ac")
        for delta in (0.1, 0.2, 0.3):
            assert laws.delta(epsilon_for(cost, delta)) <= delta + ROUNDING
        worst = max(worst, laws.epsilon(1e-3))
    print(f"\none analyst, {play}: epsilon {worst:.3f} at delta 0.001, of {UNCAPPED.epsilon} for the places alone")
    assert 0.3 <= worst <= float(UNCAPPED.epsilon)


COLUMNS = len(NO_ANSWERS.columns)


def random_masks(choose: np.random.Generator) -> tuple[list[int], list[int]]:
    """What b asks in either world."""
    one, other = (choose.integers(1, 4, int(choose.integers(0, 3))).tolist() for _ in range(2))
    return one, other


def asks(masks: list[int]) -> dict[str, list[int]]:
    """b's workload; nothing means that b never came."""
    return {"b": masks} if masks else {}


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("hidden", [False, True])
def test_what_runs_has_the_enumerated_law(hidden: bool, audit_size: AuditSize) -> None:
    """False alarms: 1e-6 in all, divided over the two."""
    public = setting("abc", 2, 8.0, 8.0, 0.1, rounds=2, query_rate=1.0, data_rate=0.5, threshold=0.3)
    plan = with_places(public, HIDDEN) if hidden else Equilibrium().plan(public)
    data, asked = np.array([2, 0]), {"a": [1], "b": [2, 1], "c": [1]}
    workloads = {name: masks_workload(masks, UNIVERSE) for name, masks in asked.items()}
    law: Counter[tuple[int, ...]] = Counter()
    parameters = EquilibriumParameters.from_json(plan.parameters)
    sizes = [len(masks) for masks in asked.values()]
    for key, chance in analyst_pipeline_law(public, parameters, data, workloads, list("abc")).items():
        law[without_intervals(key, sizes)] += chance  # type: ignore[assignment]
    seen: Counter[tuple[int, ...]] = Counter()
    for run in range(audit_size.runs):
        outcome = Equilibrium().run(
            public, plan, DenseCounts(data), workloads, run.to_bytes(32, "big"), lambda phase, done, total: None
        )
        told = [(*a.values.tolist(), *a.methods.tolist()) for a in outcome.answers.values()]
        seen[(*outcome.synopsis.cells.tolist(), *(number for each in told for number in each))] += 1
    assert seen.keys() <= law.keys()
    drawn = np.array([seen[key] for key in law])
    assert not deviates(drawn, np.array(list(law.values())), 1e-6 / 2)


def without_intervals(key: tuple[int, ...], sizes: list[int]) -> tuple[int, ...]:
    """Synopsis, values and methods of an outcome: the intervals are enumerated in bins only."""
    synopsis = len(key) - COLUMNS * sum(sizes)
    kept, start = [*key[:synopsis]], synopsis
    for size in sizes:
        kept += key[start : start + 2 * size]
        start += COLUMNS * size
    return tuple(kept)
