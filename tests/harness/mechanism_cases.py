"""Small rounds that every mechanism is put through. A mechanism added to the registry is tested as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import Among, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS
from harness.answers import to_bytes

SEED = bytes(range(32))
BETA = 1e-6  # so that chance does not decide
UNITS = ("query", "analyst")
NAMES = tuple(MECHANISMS)

TABLE = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1")), Attribute("c", ("0", "1"))))
POINT = Schema((Attribute("a", ("0",)),))


@dataclass(frozen=True)
class Case:
    """A setting, the private data, and what analysts ask. Shares are larger than what some of them ask."""

    schema: Schema
    setting: PublicParameters
    histogram: NDArray[np.int64]
    workloads: Mapping[str, CompiledWorkload]


def spread(records: int, cells: int) -> NDArray[np.int64]:
    """Unequal counts over all cells."""
    weights = np.arange(1, cells + 1)
    cell_of = np.repeat(np.arange(cells), weights)
    return np.bincount(cell_of[np.arange(records) * 7 % cell_of.size], minlength=cells).astype(np.int64)


def case_of(
    schema: Schema, histogram: NDArray[np.int64], asked: Mapping[str, Sequence[Statement]], spare: int = 0
) -> Case:
    """`spare`: statements of two queries that each analyst could ask but does not."""
    workloads = {name: compile_workload(own, schema) for name, own in asked.items()}
    records = int(histogram.sum())
    shares = tuple(
        Share(
            name,
            own.statement_count + spare,
            own.query_count + 2 * spare,
            own.l1_sensitivity + spare,
            own.support,
        )
        for name, own in workloads.items()
    )
    setting = PublicParameters(
        records=records,
        universe_size=schema.universe_size,
        shares=shares,
        unit="query",
        data_budget=Budget(1.0, min(0.01, 1 / records**2)),
        analyst_budget=Budget(8.0, 1e-6),
        beta=BETA,
        options={},
        attributes=schema.sizes,
    )
    return Case(schema, setting, histogram, workloads)


LOW = Among("a", ("0", "1"))
ASKED: dict[str, list[Statement]] = {
    "ana": [Marginal(("a", "b")), LOW & (attribute("c") == "1"), LOW],
    "ben": [attribute("b") == "1", LOW | ~LOW, Marginal(("c",))],
    "cyd": [~(attribute("c") == "0")],
}
CASES = {
    "a table": case_of(TABLE, spread(2000, 12), ASKED),
    "spare shares": case_of(TABLE, spread(300, 12), ASKED, spare=2),
    "one record": case_of(TABLE, spread(1, 12), ASKED),
    "all in one cell": case_of(TABLE, np.bincount([5] * 500, minlength=12).astype(np.int64), ASKED),
    "one possible record": case_of(
        POINT, np.array([400]), {"ana": [Marginal(("a",))], "ben": [attribute("a") == "0"], "cyd": []}, spare=1
    ),
}


# Without options the equilibrium's planner weighs thousands of games for each of the many plans here, and small
# databases are drawn from a hundred thousand. One table over all three attributes would tell `pooled` everything,
# whatever was asked for.
OPTIONS: dict[str, dict[str, object]] = {
    "equilibrium": {"rounds": 8, "play": "mixed"},
    "pooled": {"ways": 2, "least": 0},
    "small_db": {"database_size": 3},
}


def setting_for(name: str, case: str, unit: str) -> PublicParameters:
    """The case's setting for a mechanism."""
    return replace(CASES[case].setting, unit=unit, options=OPTIONS.get(name, {}))


@lru_cache(maxsize=256)
def plan_for(name: str, case: str, unit: str) -> MechanismPlan:
    """The mechanism's plan."""
    return MECHANISMS[name].plan(setting_for(name, case, unit))


def run(
    name: str,
    case: str,
    unit: str,
    workloads: Mapping[str, CompiledWorkload] | None = None,
    seed: bytes = SEED,
) -> Outcome:
    """One run; `workloads` in place of the case's."""
    given = CASES[case]
    asked = given.workloads if workloads is None else workloads
    setting, plan = setting_for(name, case, unit), plan_for(name, case, unit)
    return MECHANISMS[name].run(
        setting, plan, DenseCounts(given.histogram, setting.attributes), asked, seed, lambda *_: None
    )


def delivered(outcome: Outcome) -> bytes:
    """Every byte that a round delivers."""
    parts = [outcome.synopsis.cells.tobytes()]
    for analyst in sorted(outcome.answers):
        parts += [analyst.encode(), answered(outcome, analyst)]
    return b"".join(parts)


def answered(outcome: Outcome, analyst: str) -> bytes:
    """Every byte that one analyst gets."""
    return to_bytes(outcome.answers[analyst])
