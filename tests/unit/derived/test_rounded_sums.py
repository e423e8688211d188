"""Sums of values hold what rounding took of the weights that were told."""

from __future__ import annotations

from equipoise.derived import Bounded, total
from equipoise.queries.numeric_values import numeric_values
from equipoise.queries.schema import Attribute


def test_a_sum_covers_the_part_of_a_record_that_rounding_took() -> None:
    """Three records of the middle grade, of weight a half, and one of the highest: 1.5 + 1, told as 2."""
    found = total(Bounded.exact(2), Bounded.exact(4), numeric_values(Attribute("grade", ("3", "1", "2"))))
    assert found.lows <= 2 + 2 + 2 + 3 <= found.highs
