"""The rounds and sessions of every mechanism that are held against their intervals.

Of those in `TIGHT` no third of an interval can be spared. Where its width is the quantile of a known law, nearly
any table shows that. Where it covers a worst case, the table is that case: `small_db` answers about two halves with
one record of three, and a session's hypothesis errs by nearly as much as a test lets pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from statistical.played_intervals import NONE, Case, Play, case, grants_of, rounds_of, session, statistics_of

from equipoise.model.accounts import Budget
from equipoise.queries.predicates import Among, attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload

GAME: dict[str, object] = {"rounds": 8, "batch": 4, "draws": 2, "density": 1, "data_rate": 0.01, "query_rate": 0.1}
# A table whose counts are far from 0 and from all records, and many questions about it: nothing is cut.
WIDE_SCHEMA = Schema.from_json('{"a": 8, "b": 8}')
EVEN = np.arange(64, dtype=np.int64) * 37 % 64 + 200
WIDE: list[Statement] = [
    *(
        Among("a", (str(i), str((i + 1 + j) % 8))) & attribute("b").isin(list("01234567"[: 4 + j]))
        for i in range(8)
        for j in range(5)
    ),
    Marginal(("a", "b")),
]
TABLES = Schema.from_json('{"a": 16, "b": 16}'), [Marginal(("a", "b")), Marginal(("a",)), Marginal(("b",))]
MANY_CELLS = np.arange(256, dtype=np.int64) * 37 % 64 + 200


def wide(mechanism: str, options: Mapping[str, object] = NONE, epsilon: float = 2.0, delta: float = 1e-6) -> Case:
    """One analyst who asks 41 statements of 104 queries."""
    asked = {"one": compile_workload(WIDE, WIDE_SCHEMA)}
    made = case(mechanism, options, asked=asked, histogram=EVEN)
    return replace(made, setting=replace(made.setting, data_budget=Budget(epsilon, delta)))


def halves() -> Case:
    """Two possible records that are equally frequent: each database of three holds one of them once."""
    schema = Schema.from_json('{"a": 2}')
    asked = {"one": compile_workload([Marginal(("a",))], schema)}
    return case("small_db", {"database_size": 3}, asked=asked, histogram=np.full(2, 10_000, dtype=np.int64))


REPAIR: dict[str, object] = {"ways": 1, "least": 0, "repair_share": 0.5, "synopsis": 200}
ROUNDS = {
    "equilibrium": case("equilibrium", GAME | {"threshold": 0.02}, size=10),
    "equilibrium, analysts": case(
        "equilibrium", GAME | {"threshold": 0.05, "repair_rounds": 2}, "analyst", epsilon=0.1
    ),
    "equilibrium, prior": case("equilibrium", {"prior": "own"}),
    "pooled": case("pooled", REPAIR),
    "pooled, residuals": case("pooled", {"ways": 1, "residuals": 1}),
    "pooled, analysts": case("pooled", REPAIR | {"repair_rounds": 2}, "analyst"),
    "laplace": case("laplace"),
    "gaussian": case("gaussian"),
    "histogram": case("histogram"),
    "small_db": case("small_db", {"database_size": 6}, epsilon=8.0),
    "projection": case("projection"),
    "multiplicative_weights": case("multiplicative_weights", {"rounds": 2}),
    "multiplicative_weights, prior": case("multiplicative_weights", {"prior": "own", "rounds": 2}),
    "multiplicative_weights, proven": case("multiplicative_weights", {"rounds": 2}, size=25),
}
# Their half-widths are nearly what the noise's law needs.
KNOWN_LAW = {
    "laplace, wide": wide("laplace"),
    "gaussian, wide": wide("gaussian"),
    "projection, wide": wide("projection"),
    "histogram, wide": wide("histogram", delta=0.3),  # with which it takes Gaussian noise
    "pooled, wide": wide("pooled", {"ways": 2, "summed": 16}),
    "pooled, residuals, wide": wide("pooled", {"ways": 2, "summed": 16, "residuals": 1}),
    "equilibrium, wide": wide("equilibrium", GAME | {"threshold": 0.0, "cut_off": 41}, epsilon=8.0),
    "equilibrium, prior, wide": wide("equilibrium", {"prior": "own"}),
    "multiplicative_weights, wide": wide("multiplicative_weights", {"rounds": 2}),
}
# Counts that are smaller than the noise: nearly every interval is cut.
SPARSE = {
    f"{name}, sparse": case(name, asked={"one": compile_workload(WIDE, WIDE_SCHEMA)}, histogram=EVEN % 8)
    for name in ("laplace", "gaussian", "projection", "histogram")
}
SESSIONS: dict[str, Callable[[float], Play]] = {
    "online": session("online", 8, math.inf, {"updates": 3}),
    "online, prior": session("online", 8, math.inf, {"prior": "own"}),
    "online_private": session("online_private", 4, 16.0),
    "online_private, prior": session("online_private", 4, 16.0, {"prior": "own"}),
    "low_sensitivity": partial(statistics_of, "none"),
    "low_sensitivity, prior": partial(statistics_of, "own"),
}
# The uniform distribution errs by 0.4 of one cell, and no test is to notice an error below 0.42.
SKEWED = np.array([13_000, 2_000, 2_000, 3_000], dtype=np.int64)
UNNOTICED: dict[str, object] = {"threshold": 0.42, "prior": "none"}
# No pair of attributes tells that all records have an even sum: a prior errs by an eighth of every cell of three.
EVEN_SUMS = np.array([5_000, 0, 0, 5_000, 0, 5_000, 5_000, 0], dtype=np.int64)
OF_THREE = Schema.from_json('{"a": 2, "b": 2, "c": 2}')
CELLS: list[Statement] = [
    (attribute("a") == "0") & (attribute("b") == "0") & (attribute("c") == each) for each in "01"
]
STATISTICS: dict[str, object] = {"sensitivity": "1/20000", "prior": "own", "threshold": 0.13}
WORST: dict[str, Callable[[float], Play]] = {
    "small_db, halves": partial(rounds_of, halves()),
    "online, unnoticed": session("online", 8, math.inf, UNNOTICED, histogram=SKEWED),
    "online, prior, unnoticed": session(
        "online", 4, math.inf, {"threshold": 0.13, "prior": "own"}, (OF_THREE, CELLS), EVEN_SUMS
    ),
    "online, prior, cells": session("online", 6, math.inf, {"prior": "own"}, TABLES, MANY_CELLS),
    "online_private, unnoticed": session("online_private", 4, 16.0, UNNOTICED, histogram=SKEWED),
    "online_private, prior, cells": session("online_private", 3, 16.0, {"prior": "own"}, TABLES, MANY_CELLS),
    "low_sensitivity, prior, unnoticed": session(
        "low_sensitivity", 2, 16.0, STATISTICS, (OF_THREE, CELLS), EVEN_SUMS
    ),
}
TIGHT: dict[str, Callable[[float], Play]] = {
    **{name: partial(rounds_of, made) for name, made in KNOWN_LAW.items()},
    **WORST,
}
PLAYS: dict[str, Callable[[float], Play]] = {
    **{name: partial(rounds_of, made) for name, made in (ROUNDS | SPARSE).items()},
    **SESSIONS,
    "grant": grants_of,
    **TIGHT,
}
