"""The nearest table is that of the values as they were told, with what lies below 0, and not of cut ones."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.derived import consistent
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.results import Labels, Results


@pytest.mark.parametrize(
    ("told", "nearest"),
    [
        ([0.2, -0.1, 0.3], [0.4, 0.1, 0.5]),  # all cells are raised alike, the lowest one too
        ([1.5, -0.5, 0.9], [0.8, 0.0, 0.2]),  # and lowered alike
    ],
)
def test_what_a_cell_is_below_0_or_above_1_counts_for_the_others(told: list[float], nearest: list[float]) -> None:
    units, nothing = np.rint(np.array(told) * ONE).astype(np.int64), np.zeros(3, np.int64)
    methods = np.full(3, AnswerMethod.GAUSSIAN, np.uint8)
    answers = Answers(units, methods, nothing, nothing + ONE, nothing + 1)
    labels = Labels(Schema.from_json('{"a": 3}'), (Marginal(("a",)),))
    assert consistent(Results("r-1", answers, labels)) == pytest.approx(nearest)
