"""What SQL computes from noisy answers: all that is shown lies in its intervals, in all but `beta` of the trials.

A trial fails where any number of any row of any question lies outside of its interval: means, totals, shares,
differences, quotients with divisors near 0, variances, medians, and the rows that ORDER BY and LIMIT have chosen by
their noisy values. Trials fail with probability `BETA` at most, so the test raises a false alarm with probability
`ALARM` at most, by the exact binomial law. The truth is numpy's, of the values within their bins.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise import Attribute, Client, Schema
from equipoise.derived import Bounded, correlation
from equipoise.frames import Frame
from equipoise.queries.numeric_values import numeric_values
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal

ALARM, BETA, TRIALS, RECORDS = 1e-9, 0.2, 60, 4_000
EDGES = (0.0, 10.0, 20.0, 40.0, 80.0)
SCHEMA = Schema(
    (
        Attribute("shop", tuple("abcdefgh")),
        Attribute("spent", bin_labels(EDGES), EDGES),
        Attribute("items", tuple(map(str, range(5)))),
    )
)
TEXT = """
SELECT shop, AVG(spent) AS mean, SUM(items) AS total, VAR_POP(spent) AS variance, MEDIAN(spent) AS middle FROM t
GROUP BY shop;
SELECT shop, COUNT_IF(items = 4) / COUNT(*) AS share, COUNT_IF(spent >= 20) - COUNT_IF(items = 0) AS difference,
COUNT_IF(spent >= 20) / COUNT_IF(items = 4) AS ratio FROM t GROUP BY shop;
SELECT shop, COUNT(*) AS n FROM t GROUP BY shop ORDER BY n DESC LIMIT 3
"""
NEAR_ZERO = "SELECT COUNT_IF(shop = 'a') / COUNT_IF(shop = 'h') AS ratio FROM t"
Truths = dict[str, dict[str, float]]


def table() -> dict[str, NDArray[np.generic]]:
    """Shops of very different sizes, the last with a handful of records; most values low in their bins."""
    random = np.random.default_rng(11)
    shops = random.choice(8, RECORDS, p=[0.3, 0.28, 0.2, 0.1, 0.06, 0.04, 0.019, 0.001])
    places = random.choice(4, RECORDS, p=[0.4, 0.3, 0.2, 0.1])
    lows, highs = np.array(EDGES[:-1])[places], np.array(EDGES[1:])[places]
    spent = lows + (highs - lows) * random.beta(1, 10, RECORDS)
    items = np.minimum(places + random.integers(0, 2, RECORDS), 4)
    return {"shop": np.array(SCHEMA.attributes[0].categories)[shops], "spent": spent, "items": items}


def truths(data: dict[str, NDArray[np.generic]]) -> Truths:
    found: Truths = {}
    for shop in SCHEMA.attributes[0].categories:
        spent, items = (np.asarray(data[name][data["shop"] == shop], float) for name in ("spent", "items"))
        rare = int((items == 4).sum())
        found[shop] = {
            "mean": float(spent.mean()),
            "total": float(items.sum()),
            "variance": float(spent.var()),
            "middle": float(np.median(spent)),
            "share": rare / len(items),
            "difference": float((spent >= 20).sum() - (items == 0).sum()),
            "ratio": float((spent >= 20).sum()) / rare if rare else np.nan,
            "n": float(len(items)),
        }
    return found


def missed(frame: Frame, truth: Truths) -> bool:
    """Whether any number is outside of its interval; those without one say nothing."""
    for row in frame.to_dicts():
        for name, exact in truth[str(row["shop"])].items():
            ends = (row.get(f"{name}_{end}") for end in ("low", "high"))
            low, high = (np.nan if end is None else float(str(end)) for end in ends)
            if exact < low - 1e-9 or exact > high + 1e-9:
                return True
    return False


def narrowed(frame: Frame) -> Frame:
    """The mutant whose intervals are an eighth as wide, about the same values."""
    columns = dict(frame.columns)
    for name in frame.names:
        if f"{name}_low" in columns:
            values = np.asarray(columns[name], float)
            for end in ("low", "high"):
                reach = np.asarray(columns[f"{name}_{end}"], float) - values
                columns[f"{name}_{end}"] = values + reach / 8
    return Frame(columns)


def test_everything_that_is_shown_lies_in_its_interval_at_once() -> None:
    data = table()
    exact, failed, caught, chosen = truths(data), 0, 0, 0
    largest = sorted(exact, key=lambda shop: -exact[shop]["n"])[:3]
    for seed in range(TRIALS):
        client = Client.local(data, SCHEMA, epsilon=2.0, beta=BETA, seed=seed)
        frames = client.frames("r", client.sql("r", TEXT))
        failed += any(missed(frame, exact) for frame in frames)
        caught += any(missed(narrowed(frame), exact) for frame in frames)
        chosen += list(frames[2]["shop"]) == largest
        assert len(frames[2]) == 3
    assert failed <= binom.isf(ALARM, TRIALS, BETA)
    assert caught > binom.isf(ALARM, TRIALS, BETA)
    # Which rows LIMIT keeps is decided by noisy numbers: here the noise is small beside the gaps.
    assert chosen > TRIALS // 2


def test_a_quotient_whose_divisor_may_be_zero_has_no_interval() -> None:
    """Four records are within the noise of none, so no bound of the quotient can be right: none is told."""
    client = Client.local(table(), SCHEMA, epsilon=0.05, seed=3)
    (frame,) = client.frames("r", client.sql("r", NEAR_ZERO))
    (row,) = frame.to_dicts()
    assert row["ratio_low"] is None or np.isnan(float(str(row["ratio_low"])))
    assert row["ratio_high"] is None or np.isnan(float(str(row["ratio_high"])))


@pytest.mark.parametrize("seed", range(6))
def test_a_correlation_is_within_its_interval_and_this_tells_something(seed: int) -> None:
    data = table()
    client = Client.local(data, SCHEMA, epsilon=8.0, seed=seed)
    answers = client.results("r", [Marginal(("spent", "items"))])
    shape = (4, 5)
    told = Bounded(*(each.reshape(shape) * RECORDS for each in (answers.values, answers.lows, answers.highs)))
    found = correlation(told, numeric_values(SCHEMA.attributes[1]), numeric_values(SCHEMA.attributes[2]))
    exact = float(np.corrcoef(np.asarray(data["spent"], float), np.asarray(data["items"], float))[0, 1])
    assert float(found.lows) <= exact <= float(found.highs)
    assert -1 <= float(found.lows) < float(found.highs) <= 1
