"""A trial without a server: answers of the form that a round gives, with noise of the scale that it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise import Attribute, Client, Marginal, Schema, attribute, compile_workload, dummy_table
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.local.noise import Noise

SCHEMA = Schema((Attribute("origin", ("EWR", "JFK", "LGA")), Attribute("month", tuple(map(str, range(1, 13))))))
TABLE = dummy_table(SCHEMA, 5_000)
TEXT = "SELECT origin, COUNT(*) AS n FROM t GROUP BY origin; SELECT COUNT(*) AS n FROM t WHERE month <= 6"


@pytest.mark.full
@pytest.mark.slow
def test_intervals_hold_together_as_often_as_they_say_and_noise_is_as_large_as_expected() -> None:
    missed = 0
    errors: list[float] = []
    for seed in range(400):
        client = Client.local(TABLE, SCHEMA, beta=0.2, seed=seed)
        questions = client.sql("r", TEXT)
        wrong, pairs = 0, [*zip(client.frames("r", questions), client.truth(questions), strict=True)]
        for noisy, true in pairs:
            low, high, exact = (np.asarray(each, float) for each in (noisy["n_low"], noisy["n_high"], true["n"]))
            wrong += bool(((exact < low) | (exact > high)).any())
            errors += np.abs(np.asarray(noisy["n"], float) - exact).tolist()
        missed += wrong > 0
    assert missed <= 400 * 0.2
    expected = client.explain("r", questions)
    assert abs(np.mean(errors) / float(np.asarray(expected["expected_error"])[0]) - 1) < 0.1
    assert expected["questions"] == ["1", "2"]
    assert expected["statement"][1] == "SELECT COUNT(*) FROM t WHERE month IN (1, 2, 3, 4, 5, 6)"


def test_the_truth_is_exact_and_whole_numbers_are_whole() -> None:
    client = Client.local(TABLE, SCHEMA)
    (true,) = client.truth(client.sql("r", "SELECT month, COUNT(*) AS n, COUNT(*) * 2 AS m FROM t GROUP BY month"))
    assert set(true["n_method"]) == set(true["m_method"]) == {"exact"}
    assert [repr(each) for each in true["month"]] == [str(each) for each in range(1, 13)]
    assert true.kinds == {"month": "integer"}


def test_noise_costs_what_it_says() -> None:
    workload = compile_workload([Marginal(("origin",)), attribute("month") == "1"], SCHEMA)
    deviation = Noise(epsilon=0.5, delta=1e-6).deviation(workload)
    rho = 3 / (2 * deviation**2)  # a record that is replaced moves the marginal by 2 and the condition by 1
    assert math.isclose(rho + 2 * math.sqrt(rho * math.log(1e6)), 0.5)
    for wrong in ({"epsilon": 0.0}, {"delta": 1.0}, {"beta": 0.0}):
        with pytest.raises(InvalidArgument):
            Noise(**wrong)  # type: ignore[arg-type]


def test_sums_are_explained_as_sql_too() -> None:
    client = Client.local(TABLE, SCHEMA)
    texts = (
        "SELECT origin, AVG(month) AS n FROM t GROUP BY 1",
        "SELECT SUM(LEAST(GREATEST(month, 2), 9)) AS n FROM t",
    )
    expected = client.explain("r", client.sql("r", "; ".join(texts)))
    sums = [each for each in expected["statement"] if "SUM" in str(each)]
    assert sums == [
        "SELECT origin, SUM(month) FROM t GROUP BY origin",
        "SELECT SUM(LEAST(GREATEST(month, 2), 9)) FROM t",
    ]
    told = [row for row in expected.to_dicts() if "SUM" in str(row["statement"])]
    assert [row["unit"] for row in told] == ["month", "month"]
    counts = client.explain("r", client.sql("r", "SELECT COUNT(*) FROM t WHERE month = 1"))
    assert counts["unit"] == ["records"]
    # Of months from 1 to 12 a record weighs up to 11, and with the count that is needed, 12.
    dry = client.dry_run("r", client.sql("r", "; ".join(texts)).statements)
    assert told[0]["expected_error"] == pytest.approx(12 * dry.expected_error * 5_000)
    assert told[0]["half_width"] == pytest.approx(12 * dry.max_half_width * 5_000 + 11)
    assert float(str(told[0]["binning"])) < 1e-3  # months are exact but for the rounding of weights
    for each in sums:
        (again,) = client.sql("r", str(each))
        assert again.statements


def test_what_was_submitted_decides_what_can_be_read() -> None:
    client = Client.local(TABLE, SCHEMA)
    one, other = client.sql("r", TEXT), client.sql("r", "SELECT COUNT(*) FROM t WHERE month = 1")
    client.submit("r", one)
    client.wait("r")
    first, again = client.frames("r", one), client.frames("r", one, fractions=True)
    assert np.asarray(again[0]["n"], float).tolist() == (np.asarray(first[0]["n"], float) / 5_000).tolist()
    with pytest.raises(VerificationFailed, match="not the questions"):
        client.frames("r", other)
    assert len(client.frames("another", other)[0]) == 1
    labelled = client.results("r", one.statements)
    assert [answer.cell for answer in labelled][:2] == [("EWR",), ("JFK",)]
    with pytest.raises(InvalidArgument, match="statements"):
        client.results("r", other.statements)


def test_a_question_that_needs_no_data_is_answered_from_public_facts() -> None:
    client = Client.local(TABLE, SCHEMA)
    (frame,) = client.frames("r", client.sql("r", "SELECT COUNT(*) AS n FROM t"))
    assert frame.to_dicts() == [{"n": 5_000.0, "n_low": 5_000.0, "n_high": 5_000.0, "n_method": "public"}]
    assert len(client.explain("r", client.sql("r", "SELECT COUNT(*) FROM t"))) == 0
