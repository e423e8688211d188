"""What every named mechanism is: a plan from public things, and a run on private ones.

Public facts are fields (`Setting`, `Plan`), private facts are arguments of `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import Cost
from equipoise.workload import CompiledWorkload

GRID_BITS = 40  # answers and bounds are published in units of 2^-40
NO_BOUND = 1 << 62  # the bound of an answer that carries none

Progress = Callable[[str, int, int], None]  # phase, steps done, steps in all


@dataclass(frozen=True)
class Share:
    """What one analyst may ask: statements, and linear queries (cells) of all of them together."""

    analyst: str
    statements: int
    queries: int


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) pair."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Setting:
    """Everything public that a plan may depend on. `unit` is "query" or "analyst"."""

    records: int
    universe_size: int
    shares: tuple[Share, ...]
    unit: str
    data_budget: Budget
    analyst_budget: Budget
    beta: float
    options: Mapping[str, object]


@dataclass(frozen=True)
class Plan:
    """What a mechanism will do. `parameters` is canonical JSON, enough to run it again."""

    mechanism: str
    parameters: str
    data_cost: Cost
    analyst_cost: Cost
    promised_error: float
    uncertified_at_most: int
    seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Answers:
    """One analyst's answers, a row a query. Units of 2^-40; `methods` are the wire's AnswerMethod numbers."""

    values: NDArray[np.int64]
    methods: NDArray[np.uint8]
    bounds: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """What a run releases: the answers of every analyst, and the synopsis's records (universe cells)."""

    answers: Mapping[str, Answers]
    synopsis: NDArray[np.int64]


class Mechanism(Protocol):
    """A named mechanism. Stateless: everything it knows is in its arguments."""

    name: str

    def plan(self, setting: Setting) -> Plan:
        """Parameters, costs and promises from public things. Raises `InvalidArgument` or `BudgetExhausted`."""
        ...

    def run(
        self,
        setting: Setting,
        plan: Plan,
        histogram: NDArray[np.int64],
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: Progress,
    ) -> Outcome:
        """The answers. A pure function of its arguments: the same bytes for the same arguments.

        `workloads` holds one entry for each share whose analyst submitted; analysts without one get none.
        """
        ...
