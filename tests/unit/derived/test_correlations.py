"""How far the interval of a correlation reaches: to what records that may be there would make of it."""

from __future__ import annotations

import numpy as np

from equipoise.derived import Bounded, correlation
from equipoise.queries.numeric_values import numeric_values
from equipoise.queries.schema import Attribute

ONE = numeric_values(Attribute("one", ("0", "1", "100")))
OTHER = numeric_values(Attribute("other", ("1", "2", "3")))


def test_a_record_that_may_be_there_and_makes_values_differ_more_is_in_the_interval() -> None:
    """It is far away in one attribute, and has the mean of the other: what varies together stays the same."""
    certain = np.array([[10.0, 0, 0], [0, 0, 10], [0, 0, 0]])
    far = np.zeros((3, 3))
    far[2, 1] = 1
    for told in (certain, certain + far):
        found = correlation(Bounded(told, certain, certain + far), ONE, OTHER)
        for records in (certain, certain + far):
            rows, columns = (
                np.repeat(place, records.astype(int).flat) for place in np.indices((3, 3)).reshape(2, -1)
            )
            truth = np.corrcoef(np.array([0, 1, 100])[rows], np.array([1, 2, 3])[columns])[0, 1]
            assert found.lows - 1e-9 <= truth <= found.highs + 1e-9
    assert found.lows > 0
