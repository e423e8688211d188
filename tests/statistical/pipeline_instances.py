"""Tiny rounds of `equilibrium` with their neighbours, and how much of its charge each leaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness.exact_game import masks_workload
from statistical.exact_pipeline import Histogram, Pair, Workloads, pipeline_law

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.interface import PublicParameters

UNIVERSE = 4
DELTAS = (1e-6, 1e-3, 0.1)
ROUNDING = 1e-11  # of the enumeration's own sums in doubles


@dataclass(frozen=True)
class Instance:
    """Two neighbours: one record moves to the cell `moved`, or b's last predicate becomes `changed`.

    `asked`: the masks of a and of b. `absent`: shares that nobody uses.
    """

    cells: tuple[int, ...]
    moved: int
    asked: tuple[tuple[int, ...], tuple[int, ...]]
    changed: int
    absent: int
    data_budget: float
    analyst_budget: float
    delta: float
    play: str
    rounds: int
    density: float
    query_rate: float
    data_rate: float
    threshold: float
    cut_off: int
    game_share: float

    @property
    def setting(self) -> PublicParameters:
        """The public side."""
        shares = [Share(name, len(masks), len(masks)) for name, masks in zip("ab", self.asked, strict=True)]
        forced = ("play", "rounds", "density", "query_rate", "data_rate", "threshold", "cut_off", "game_share")
        return PublicParameters(
            records=len(self.cells),
            universe_size=UNIVERSE,
            shares=(*shares, *(Share(f"absent-{place}", 1, 1) for place in range(self.absent))),
            unit="query",
            data_budget=Budget(self.data_budget, self.delta),
            analyst_budget=Budget(self.analyst_budget, self.delta),
            beta=0.1,
            options={"batch": 1, "draws": 1} | {name: getattr(self, name) for name in forced},
        )

    @property
    def histograms(self) -> tuple[Histogram, Histogram]:
        """The data and their neighbour."""
        return histogram(self.cells), histogram((self.moved, *self.cells[1:]))

    @property
    def workloads(self) -> tuple[Workloads, Workloads]:
        """The workloads and their neighbour."""
        a, b = self.asked
        return workloads(a, b), workloads(a, (*b[:-1], self.changed))


def histogram(cells: tuple[int, ...]) -> Histogram:
    """How many records each cell has."""
    return np.bincount(cells, minlength=UNIVERSE).astype(np.int64)


def workloads(a: tuple[int, ...], b: tuple[int, ...]) -> Workloads:
    """Both analysts' predicates."""
    return {"a": masks_workload(a, UNIVERSE), "b": masks_workload(b, UNIVERSE)}


def used(pair: Pair, cost: Cost, delta: float) -> float:
    """The exact epsilon at `delta` as a part of what is charged; at no delta is it more than the charge."""
    for each in (delta, *DELTAS):
        assert pair.delta(epsilon_for(cost, each)) <= each + ROUNDING
    charged = epsilon_for(cost, delta)
    return pair.epsilon(delta) / charged if charged else 0.0


def data_use(instance: Instance, plan: MechanismPlan) -> float:
    """What replacing a record shows to everybody together."""
    one, other = (pipeline_law(instance.setting, plan, each, instance.workloads[0]) for each in instance.histograms)
    return used(Pair.of(one, other), plan.data_cost, instance.delta)


WORST_DATA = Instance(
    cells=(0, 2, 2),
    moved=1,
    asked=((5, 6), (14, 10)),
    changed=12,
    absent=0,
    data_budget=0.5,
    analyst_budget=4.0,
    delta=1e-6,
    play="mixed",
    rounds=1,
    density=3.0,
    query_rate=0.7,
    data_rate=17.9,
    threshold=0.869,
    cut_off=2,
    game_share=0.9,
)
