"""Statistics: what is refused, by name, and what a round says to them."""

from __future__ import annotations

import math
import typing
from fractions import Fraction

import numpy as np
import pytest

from equipoise import CappedSum, CountDistinct, Marginal, Quantile, Statistic, Variance, attribute, median
from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements.quantile import CompiledQuantile
from equipoise.queries.statistics import Databases, grid_units
from equipoise.queries.workload_compiler import compile_statistic, compile_workload

EDGES = (0.0, 15.0, 60.0)
SCHEMA = Schema(
    (
        Attribute("carrier", ("AA", "UA")),
        Attribute("delay", (*bin_labels(EDGES), "cancelled"), EDGES, missing="cancelled"),
    )
)


def wrong(value: object) -> typing.Any:
    """What the types forbid, and callers without a type checker send."""
    return value


@pytest.mark.parametrize(
    ("statistic", "field", "problem"),
    [
        (Quantile("late", 0.5, 0.1), "attribute", "has no attribute 'late'"),
        (Quantile("carrier", 0.5, 0.1), "attribute", "'carrier' has no bins"),
        (Quantile("delay", math.nan, 0.1), "level", "from 0 to 1"),
        (Quantile("delay", -0.1, 0.1), "level", "from 0 to 1"),
        (Quantile("delay", wrong("0.5"), 0.1), "level", "from 0 to 1"),
        (Quantile("delay", 0.5, 0.0), "window", "above 0"),
        (Quantile("delay", 0.5, math.nan), "window", "from 0 to 1"),
        (Quantile("delay", 0.5, math.inf), "window", "from 0 to 1"),
        (Quantile("delay", 0.5, wrong(True)), "window", "from 0 to 1"),
        (Variance("carrier"), "attribute", "no bins"),
        (Variance(wrong(None)), "attribute", "no attribute None"),
        (CountDistinct(("carrier", "late")), "attributes[1]", "no attribute 'late'"),
        (CappedSum("carrier", 1.0), "attribute", "no bins"),
        (CappedSum("delay", 60.1), "cap", "from 0 to 60"),
        (CappedSum("delay", math.nan), "cap", "from 0 to 60"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(statistic: Statistic, field: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        compile_statistic(statistic, SCHEMA, "statements[2]")
    assert refused.value.field == f"statements[2].{field}"


@pytest.mark.parametrize(
    "statistic", [median("delay", 0.1), Variance("delay"), CountDistinct(("carrier",)), CappedSum("delay", 30.0)]
)
def test_rounds_answer_no_statistics(statistic: Statistic) -> None:
    with pytest.raises(InvalidArgument, match="only sessions of low_sensitivity answer statistics") as refused:
        compile_workload([attribute("carrier") == "AA", Marginal(("delay",)), statistic], SCHEMA)
    assert refused.value.field == "statements[2]"


def test_numbers_are_the_decimals_that_were_written() -> None:
    # The double next to 0.3 lies below it: taken exactly, it would average 2 of 10 records.
    tenths = compile_statistic(Quantile("delay", 0.5, 0.3), SCHEMA, "")
    assert isinstance(tenths, CompiledQuantile)
    assert (tenths.window, tenths.averaged(10)) == (Fraction(3, 10), 3)


def test_values_are_the_same_one_by_one_and_all_at_once() -> None:
    generator = np.random.default_rng(3)
    tables = generator.integers(0, 3, (40, SCHEMA.universe_size)) * generator.integers(0, 9)
    tables[:, 0] += 1
    lengths = [np.count_nonzero(table) for table in tables]
    together = Databases(
        SCHEMA.sizes,
        np.cumsum([0, *lengths[:-1]]),
        np.concatenate([np.flatnonzero(table) for table in tables]),
        tables[tables > 0],
    )
    for statistic in (Quantile("delay", 0.9, 0.2), Variance("delay"), CountDistinct(("delay", "carrier"))):
        compiled = compile_statistic(statistic, SCHEMA, "")
        alone = [
            int(compiled.values(Databases.of(SCHEMA.sizes, np.flatnonzero(table), table[table > 0]))[0])
            for table in tables
        ]
        assert compiled.values(together).tolist() == alone


def test_a_delta_below_a_unit_still_moves_one() -> None:
    assert [grid_units(Fraction(1, 2**41)), grid_units(Fraction(1, 2**40)), grid_units(Fraction(3, 2**41))] == [
        1,
        1,
        2,
    ]
