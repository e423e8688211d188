"""What every named mechanism is: a plan from public things, and a run on private ones.

Public facts are fields (`PublicParameters`, `MechanismPlan`), private facts are arguments of `run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries import fixed_point
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts

GRID_BITS = fixed_point.GRID_BITS  # answers and bounds are published in units of 2^-40

OnStep = Callable[[str, int, int], None]  # phase, steps done, steps in all


@dataclass(frozen=True)
class PublicParameters:
    """Everything public that a plan may depend on. `unit` is "query" or "analyst".

    An analyst budget of infinite epsilon drops the analysts' protection: simulations may, rounds never do.
    `attributes`: how many categories each attribute has, in the schema's order; empty where only the universe's
    size is known, and then a mechanism that measures tables of attributes cannot be planned.
    """

    records: int
    universe_size: int
    shares: tuple[Share, ...]
    unit: str
    data_budget: Budget
    analyst_budget: Budget
    beta: float
    options: Mapping[str, object]
    attributes: tuple[int, ...] = ()

    @property
    def protects_analysts(self) -> bool:
        """Whether there is a budget for the analysts at all."""
        return math.isfinite(self.analyst_budget.epsilon)

    @cached_property
    def queries(self) -> int:
        """`k`: all queries of all shares. Kept, as plans ask for it often and shares may be many."""
        return sum(share.queries for share in self.shares)

    @cached_property
    def statements(self) -> int:
        """All statements of all shares."""
        return sum(share.statements for share in self.shares)

    @cached_property
    def largest_share(self) -> int:
        """The queries of the largest share."""
        return max(share.queries for share in self.shares)

    @cached_property
    def largest_support(self) -> int:
        """The largest support that a query of any share may have: half of the universe where one declares none."""
        half = self.universe_size // 2
        return max(min(share.support or half, half) for share in self.shares)


@dataclass(frozen=True)
class Answers:
    """One analyst's answers, a row a query. Units of 2^-40; `methods` are the wire's AnswerMethod numbers."""

    values: NDArray[np.int64]
    methods: NDArray[np.uint8]
    bounds: NDArray[np.int64]


def alike(values: NDArray[np.int64], method: int, bound: int) -> Answers:
    """Make answers that are all given in one way and have one bound; `values`: int64[k], in units of 2^-40."""
    queries = len(values)
    return Answers(values, np.full(queries, method, np.uint8), np.full(queries, bound, np.int64))


@dataclass(frozen=True)
class Outcome:
    """What a run releases: the answers of every analyst, and the synopsis, empty where there is none."""

    answers: Mapping[str, Answers]
    synopsis: Synopsis = field(default_factory=Synopsis)


class Mechanism(Protocol):
    """A named mechanism. Stateless: everything it knows is in its arguments."""

    @property
    def name(self) -> str:
        """What it is called by."""
        ...

    @property
    def fitted(self) -> bool:
        """Whether answers are those of a distribution that is fitted, in floats, to what was measured.

        Floats differ between versions of libraries in the last places, so such answers are replayed to a tolerance.
        """
        ...

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Parameters, costs and promises from public things. Raises `InvalidArgument` or `BudgetExhausted`."""
        ...

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Return the answers. A pure function of its arguments: the same bytes for the same arguments.

        `workloads` holds one entry for each share whose analyst submitted; analysts without one get none.
        """
        ...
