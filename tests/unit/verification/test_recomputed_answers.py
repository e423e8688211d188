"""Answers that follow from the synopsis are computed again, also those that are moved into their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import VerificationFailed
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single
from equipoise.results import Results
from equipoise.verification.answer_checks import check_recomputed

WORKLOAD = compile_single(Marginal(("a",)), Schema((Attribute("a", ("0", "1", "2")),)))
SYNOPSIS = Synopsis.of_cells(np.array([0, 0, 1, 2]), (3,))  # a half and two quarters
EIGHTH = ONE // 8
LOWS, HIGHS = np.array([EIGHTH, 3 * EIGHTH, 0]), np.array([3 * EIGHTH, 7 * EIGHTH, 4 * EIGHTH])
MOVED = [3 * EIGHTH, 3 * EIGHTH, 2 * EIGHTH]  # down to the end of its interval, up to it, and not at all


def results(values: list[int], method: AnswerMethod) -> Results:
    methods = np.full(3, method, dtype=np.uint8)
    return Results("aa", Answers(np.array(values), methods, LOWS, HIGHS, np.zeros(3, dtype=np.int64)))


def test_fitted_values_are_the_synopsis_s_moved_into_their_intervals() -> None:
    said = check_recomputed(results(MOVED, AnswerMethod.FITTED), WORKLOAD, SYNOPSIS)
    assert said == "3 of 3 answers"


@pytest.mark.parametrize("query", range(3))
def test_a_fitted_value_that_is_moved_within_its_interval_is_found(query: int) -> None:
    values = [value - (place == query == 0) + (place == query > 0) for place, value in enumerate(MOVED)]
    assert LOWS[query] <= values[query] <= HIGHS[query]
    with pytest.raises(VerificationFailed, match=f"query {query} was answered"):
        check_recomputed(results(values, AnswerMethod.FITTED), WORKLOAD, SYNOPSIS)


def test_fitted_values_need_a_synopsis() -> None:
    with pytest.raises(VerificationFailed, match="query 0 is said to be answered by a synopsis, but there is none"):
        check_recomputed(results(MOVED, AnswerMethod.FITTED), WORKLOAD, None)
