"""Derived statistics of noisy rounds: all truths lie in their intervals at once, in all but `beta` of the rounds.

A round fails where any mean, sum, share, median or variance of any group lies outside its interval. Rounds fail
with probability `BETA` at most, so the test raises a false alarm with probability `ALARM` at most, by the exact
binomial law. The records' own values are drawn within their bins, so that the error of binning counts, too.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise.derived import Bounded, answers_to, mean, mean_of_counts, quantile, share, total, variance
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.numeric_values import numeric_values
from equipoise.queries.predicates import Interval
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.results import Labels, Results
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS

ALARM, BETA, ROUNDS, RECORDS = 1e-9, 0.2, 60, 3_000
EDGES = (-30.0, 0.0, 15.0, 60.0, 400.0)
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK", "LGA")),
        Attribute("delay", (*bin_labels(EDGES), "cancelled"), EDGES, missing="cancelled"),
    )
)
VALUES = numeric_values(SCHEMA.attributes[1], high=60)
ASKED: list[Statement] = [
    Sum("delay", ("origin",), high=60),
    Marginal(("origin",), where=Interval("delay", -30, 400)),
    Marginal(("origin",)),
    Marginal(("origin", "delay")),
]


def table() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Each record's origin, its bin, and its value, clamped; those of the last bin are cancelled."""
    random = np.random.default_rng(5)
    origins, bins = random.integers(0, 3, RECORDS), random.choice(5, RECORDS, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    lows = np.array([*EDGES[:-1], 0.0])[bins]
    highs = np.array([*EDGES[1:], 0.0])[bins]
    # Most values are near the lower end of their bin, so that its middle is wrong.
    return origins, bins, np.minimum(lows + (highs - lows) * random.beta(1, 20, RECORDS), 60)


def told(results: Results) -> list[Bounded]:
    weighed, counted, every, bins = (answers_to(results, place, RECORDS) for place in range(4))
    return [
        mean(weighed, counted, VALUES),
        total(weighed, counted, VALUES),
        share(counted, every),
        mean_of_counts(bins, VALUES),
        quantile(bins, VALUES, 0.5),
        variance(bins, VALUES),
    ]


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["gaussian", "laplace", "projection"])
def test_all_derived_truths_lie_in_their_intervals_at_once(name: str) -> None:
    origins, bins, delays = table()
    workload = compile_workload(ASKED, SCHEMA)
    setting = PublicParameters(
        records=RECORDS,
        universe_size=15,
        shares=(Share("a", 4, workload.query_count, workload.l1_sensitivity),),
        unit="query",
        data_budget=Budget(1.0, 1e-8),
        analyst_budget=Budget(1.0, 1e-8),
        beta=BETA,
        options={},
        attributes=SCHEMA.sizes,
    )
    histogram = np.bincount(origins * 5 + bins, minlength=15).astype(np.int64)
    groups = [delays[(origins == place) & (bins < 4)] for place in range(3)]
    truths = [
        np.array([each.mean() for each in groups]),
        np.array([each.sum() for each in groups]),
        np.array([len(each) / (origins == place).sum() for place, each in enumerate(groups)]),
        np.array([each.mean() for each in groups]),
        np.array([np.median(each) for each in groups]),
        np.array([each.var() for each in groups]),
    ]
    plan, broken, missed = MECHANISMS[name].plan(setting), 0, 0
    for number in range(ROUNDS):
        outcome = MECHANISMS[name].run(
            setting,
            plan,
            DenseCounts(histogram, SCHEMA.sizes),
            {"a": workload},
            number.to_bytes(32),
            lambda *_: None,
        )
        found = told(Results("r", outcome.answers["a"], Labels(SCHEMA, tuple(ASKED))))
        broken += any(outside(each, truth) for each, truth in zip(found, truths, strict=True))
        # The told means themselves are wrong by the error of binning: were they taken for exact, rounds would fail.
        missed += any(
            outside(narrowed(each), truth) for each, truth in itertools.islice(zip(found, truths, strict=True), 1)
        )
    assert broken <= binom.isf(ALARM, ROUNDS, BETA)
    assert missed > binom.isf(ALARM, ROUNDS, BETA)


def outside(found: Bounded, truth: NDArray[np.float64]) -> bool:
    assert not np.isnan(found.lows).any()
    return bool(((truth < found.lows - 1e-9) | (truth > found.highs + 1e-9)).any())


def narrowed(found: Bounded) -> Bounded:
    """Without the error of binning, as if every record were in the middle of its bin."""
    error = float(VALUES.error)
    return Bounded(found.values, found.lows + error, found.highs - error)
