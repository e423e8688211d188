"""A small session of statistics: a table of four records and more, some candidates, and what is asked of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import CappedSum, CountDistinct, Quantile, Statement, Statistic, Variance
from equipoise.queries.workload_compiler import CompiledStatement, compile_single, compile_statistic
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity.mechanism import LowSensitivity

EDGES = (0.0, 1.0, 2.0, 4.0)
SCHEMA = Schema((Attribute("x", bin_labels(EDGES), EDGES), Attribute("c", ("a", "b"))))
MECHANISM = LowSensitivity()
STATEMENTS: tuple[Statement, ...] = (
    Quantile("x", 0.5, 0.2),
    Variance("x"),
    CountDistinct(("x", "c")),
    CappedSum("x", 3.0),
    (attribute("c") == "a") & (attribute("x") >= 1.0),
    Quantile("x", 0.9, 0.2),
)


def table(records: int, tilt: float) -> NDArray[np.int64]:
    """A table whose records lie the more in the first cells, the larger `tilt` is."""
    cells = SCHEMA.universe_size
    parts = np.exp(-tilt * np.arange(cells))
    bounds = np.rint(np.cumsum(parts / parts.sum()) * records).astype(np.int64)
    counts: NDArray[np.int64] = np.diff(bounds, prepend=0)
    return counts


def listed(histogram: NDArray[np.int64]) -> dict[str, list[int]]:
    """A candidate as options hold it."""
    cells = np.flatnonzero(histogram)
    return {"cells": cells.tolist(), "counts": histogram[cells].tolist()}


def setting(records: int = 20_000, statements: int = 12, **options: object) -> PublicParameters:
    """Two analysts with equal shares, and candidates to choose among unless options say otherwise."""
    candidates = [listed(table(500, tilt)) for tilt in np.linspace(-1, 1, 21)]
    return PublicParameters(
        records=records,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(name, statements, statements) for name in ("alice", "bob")),
        unit="query",
        data_budget=Budget(1.0, 1e-9),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={"length": statements, "candidates": candidates, "sensitivity": "1/4000", "prior": "none"}
        | options,
        attributes=SCHEMA.sizes,
    )


def compiled(statement: Statement) -> CompiledStatement:
    """Of a session's statement."""
    if isinstance(statement, Statistic):
        return compile_statistic(statement, SCHEMA, "statement")
    return compile_single(statement, SCHEMA)


def everything_asked(case: PublicParameters) -> dict[str, SessionWorkload]:
    """Every analyst asks in every turn, in turns one statement after another."""
    some = [compiled(each) for each in STATEMENTS]
    return {
        share.analyst: SessionWorkload(
            np.arange(share.statements, dtype=np.int64) * len(case.shares) + place,
            tuple(some[(turn + place) % len(some)] for turn in range(share.statements)),
        )
        for place, share in enumerate(case.shares)
    }


def without(case: PublicParameters, *names: str, **options: object) -> PublicParameters:
    """The setting with other options."""
    kept = {name: value for name, value in case.options.items() if name not in names}
    return replace(case, options=kept | options)
