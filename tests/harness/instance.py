"""A small table with structure, and analysts with predicates and marginals on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism

SIZES = (8, 6, 5, 4)
SCHEMA = Schema(
    tuple(Attribute(name, tuple(str(v) for v in range(size))) for name, size in zip("abcd", SIZES, strict=True))
)
SEED = bytes(range(32))


@dataclass(frozen=True)
class Instance:
    """A setting, the private data and the compiled workloads."""

    setting: PublicParameters
    histogram: NDArray[np.int64]
    workloads: dict[str, CompiledWorkload]

    @cached_property
    def plan(self) -> MechanismPlan:
        """The equilibrium's plan, which is searched for once: that takes longer than to run it."""
        return mechanism("equilibrium").plan(self.setting)


def instance(analysts: int = 10, predicates: int = 300, records: int = 200_000, **options: object) -> Instance:
    """Skewed data; every analyst asks `predicates` dense conditions and one two-way marginal."""
    choose = np.random.default_rng(7)
    histogram = np.zeros(SIZES, np.int64)
    columns = [np.minimum(size - 1, choose.geometric(0.5, records) - 1) for size in SIZES]
    np.add.at(histogram, tuple(columns), 1)
    workloads, shares = {}, []
    for analyst in range(analysts):
        statements: list[Statement] = [dense_predicate(choose) for _ in range(predicates)]
        statements.append(Marginal(("a", "c")))
        name = f"analyst-{analyst}"
        workloads[name] = compile_workload(statements, SCHEMA)
        shares.append(Share(name, len(statements), workloads[name].query_count))
    setting = PublicParameters(
        records=records,
        universe_size=SCHEMA.universe_size,
        shares=tuple(shares),
        unit="query",
        data_budget=Budget(1.0, 1 / records**2),
        analyst_budget=Budget(4.0, 1e-6),
        beta=0.05,
        options=options,
    )
    return Instance(setting, histogram.ravel(), workloads)


def dense_predicate(choose: np.random.Generator) -> Statement:
    """A conjunction over two attributes, covering a quarter to a half of the universe or so."""
    first, second = choose.choice(4, 2, replace=False)
    return among(first, choose) & among(second, choose)


def among(attribute: int, choose: np.random.Generator) -> Among:
    """More than half of the attribute's categories."""
    size = SIZES[attribute]
    chosen = choose.choice(size, size // 2 + 1, replace=False)
    return Among("abcd"[attribute], tuple(str(v) for v in sorted(chosen)))


def silent(_phase: str, _done: int, _total: int) -> None:
    """A progress that nobody watches."""


def true_answers(case: Instance, analyst: str) -> NDArray[np.float64]:
    """The exact fractions of one analyst's queries."""
    return case.workloads[analyst].counts(case.histogram) / case.setting.records


def uniform_answers(case: Instance, analyst: str) -> NDArray[np.float64]:
    """The uniform guess at them."""
    universe = case.setting.universe_size
    return case.workloads[analyst].counts(np.ones(universe, np.int64)) / universe


def synopsis_answers(case: Instance, analyst: str, synopsis: Synopsis) -> NDArray[np.float64]:
    """The synopsis's answers before repair."""
    return synopsis.counts(case.workloads[analyst]) / len(synopsis)
