"""The errors that are told of means, shares and the like before asking are those that answers then have."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise import Attribute, Client, Schema, dummy_table
from equipoise.queries.schema_checks import bin_labels

EDGES = tuple(float(each) for each in range(0, 101, 10))
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK", "LGA")),
        Attribute("late", ("no", "yes")),
        Attribute("delay", bin_labels(EDGES), EDGES),
    )
)
TABLE = dummy_table(SCHEMA, 6_000)  # about as many of each
TEXT = """
SELECT origin, AVG(delay) AS mean FROM t GROUP BY origin;
SELECT AVG(delay) AS mean FROM t;
SELECT origin, COUNT_IF(late = 'yes') / COUNT(*) AS share FROM t GROUP BY origin;
SELECT origin, ROUND(100.0 * COUNT_IF(late = 'yes') / COUNT(*), 0) AS share FROM t GROUP BY origin;
SELECT SUM(delay) AS total, COUNT(*) AS n FROM t WHERE late = 'yes';
SELECT origin, VAR_POP(delay) AS spread FROM t GROUP BY origin;
SELECT AVG(delay) / 2 - 1 AS half FROM t WHERE late = 'no'
"""


@pytest.mark.full
@pytest.mark.slow
def test_the_error_and_the_interval_of_a_mean_are_those_of_answers() -> None:
    text = TEXT.replace(", 0) AS share", ", 6) AS share")  # whose errors can be measured
    errors: dict[tuple[int, str], list[float]] = {}
    reaches: dict[tuple[int, str], list[float]] = {}
    for seed in range(60):
        client = Client.local(TABLE, SCHEMA, epsilon=0.5, seed=seed)
        questions = client.sql("r", text)
        for number, (noisy, true) in enumerate(
            zip(client.frames("r", questions), client.truth(questions), strict=True), start=1
        ):
            for name in (each for each in true.names if f"{each}_low" in noisy.names):
                told, exact, low, high = (
                    np.asarray(frame[column], dtype=float)
                    for frame, column in (
                        (noisy, name),
                        (true, name),
                        (noisy, f"{name}_low"),
                        (noisy, f"{name}_high"),
                    )
                )
                errors.setdefault((number, name), []).extend(np.abs(told - exact).tolist())
                reaches.setdefault((number, name), []).extend(np.maximum(high - told, told - low).tolist())
    explained = client.explain_numbers("r", questions).to_dicts()
    assert len(explained) == len(errors) == 8
    for row in explained:
        place = int(str(row["question"])), str(row["number"])
        assert float(np.mean(errors[place])) == pytest.approx(row["expected_error"], rel=0.3), place
        assert float(np.mean(reaches[place])) == pytest.approx(row["half_width"], rel=0.3), place


def test_a_group_of_fewer_records_has_a_mean_that_errs_more() -> None:
    client = Client.local(TABLE, SCHEMA, epsilon=0.5)
    all_of_it, by_origin = (
        client.explain_numbers("r", client.sql("r", text)).to_dicts()[0]
        for text in ("SELECT AVG(delay) FROM t", "SELECT origin, AVG(delay) FROM t GROUP BY origin")
    )
    assert (all_of_it["records"], by_origin["records"]) == (6_000.0, 2_000.0)
    assert float(str(by_origin["expected_error"])) > 2 * float(str(all_of_it["expected_error"])) > 0


def test_rounding_does_not_hide_an_error_and_a_median_has_none_that_is_told() -> None:
    client = Client.local(TABLE, SCHEMA, epsilon=0.5)
    plain, rounded, middle, public = (
        client.explain_numbers("r", client.sql("r", f"SELECT {number} AS x, COUNT(*) AS n FROM t")).to_dicts()
        for number in ("AVG(delay)", "ROUND(AVG(delay), -2)", "MEDIAN(delay)", "COUNT_IF(late = 'no')")
    )
    assert plain[0]["expected_error"] == rounded[0]["expected_error"]
    assert middle[0]["expected_error"] is None
    assert float(str(middle[0]["half_width"])) >= 5.0
    assert public[1]["number"] == "n"
    assert public[1]["expected_error"] == public[1]["half_width"] == 0.0
