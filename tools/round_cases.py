"""A small table, what analysts ask of it, and the shares that they ask it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from project_imports import (
    Attribute,
    Budget,
    CappedSum,
    CountDistinct,
    DenseCounts,
    Marginal,
    PublicParameters,
    Quantile,
    Schema,
    Share,
    Statement,
    Variance,
    attribute,
    bin_labels,
    compile_workload,
)

Values = dict[str, Any]

SEED = bytes(range(32))
EDGES = (0.0, 10.0, 20.0, 40.0)
SCHEMA = Schema(
    (
        Attribute("colour", ("red", "green", "blue")),
        Attribute("sold", ("no", "yes")),
        Attribute("age", bin_labels(EDGES), EDGES),
    )
)
AGES = ("5", "15", "30")  # one of each bin
RECORDS = 20_000
COLOUR, SOLD, AGE = attribute("colour"), attribute("sold"), attribute("age")
LOW = COLOUR.isin(["red", "green"])
ASKED: dict[str, tuple[Statement, ...]] = {
    "ann": (Marginal(("colour", "sold")), LOW & (SOLD == "yes"), LOW, AGE >= 10),
    "bob": (SOLD == "yes", LOW | ~LOW, Marginal(("age",)), AGE.between(10, 20) | (COLOUR == "blue")),
    "cyd": (~(SOLD == "no"), Marginal(("sold", "age"))),
}
STATISTICS: dict[str, tuple[Statement, ...]] = {
    "ann": (Quantile("age", 0.5, 0.2), Variance("age"), CountDistinct(("colour", "age")), LOW & (AGE >= 10)),
    "bob": (CappedSum("age", 15.0), Quantile("age", 0.9, 0.2), Variance("age"), SOLD == "yes"),
}
UNITS = {"query": "one statement is protected", "analyst": "one analyst is protected"}
ROUND_OPTIONS: dict[str, list[dict[str, object]]] = {
    "equilibrium": [
        {"rounds": 8, "play": "mixed", "prior": "none"},
        {"rounds": 8, "play": "sampled", "game_share": 0.5},
        {"rounds": 8, "play": "hru"},
        {"prior": "own"},
        {"rounds": 8, "play": "mixed", "prior": "own"},
    ],
    "pooled": [{"ways": 2, "synopsis": 512}, {"ways": 1, "synopsis": 512, "repair_share": 0.3}],
    "small_db": [{"database_size": 3}],
    "multiplicative_weights": [{"prior": "none"}, {"rounds": 3, "prior": "none"}],
}


def table() -> list[int]:
    """Unequal counts over all cells of the universe, of `RECORDS` records."""
    cells = np.repeat(np.arange(SCHEMA.universe_size), np.arange(1, SCHEMA.universe_size + 1))
    counts: list[int] = np.bincount(cells[np.arange(RECORDS) * 7 % cells.size]).tolist()
    return counts


def table_file() -> str:
    """The same table as CSV."""
    colours, answers = SCHEMA.attribute("colour").categories, SCHEMA.attribute("sold").categories
    rows = [f"{colour},{sold},{age}\n" for colour in colours for sold in answers for age in AGES]
    return "colour,sold,age\n" + "".join(row * count for row, count in zip(rows, table(), strict=True))


TABLE = DenseCounts(np.array(table(), dtype=np.int64), SCHEMA.sizes)


def setting_of(
    unit: str, shares: Sequence[Share], options: Mapping[str, object], **changes: Any
) -> PublicParameters:
    """What is public of a round on the table."""
    setting = PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=tuple(shares),
        unit=unit,
        data_budget=Budget(1.0, 1e-7),
        analyst_budget=Budget(8.0, 1e-6),
        beta=0.05,
        options=options,
        attributes=SCHEMA.sizes,
    )
    return replace(setting, **changes)


def shares_of(declared: bool) -> list[Share]:
    """Shares with room for a marginal more than is asked; with what the workloads come to `declared`, or not."""
    shares = []
    for analyst, statements in ASKED.items():
        own = compile_workload(statements, SCHEMA)
        bounds = (own.l1_sensitivity + 2, own.support) if declared else (0, 0)
        shares.append(Share(analyst, own.statement_count + 1, own.query_count + 6, *bounds))
    return shares
