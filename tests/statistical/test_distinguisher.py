"""The sparse distinguisher: its exact law keeps to epsilon, and what it finds is as far apart as it says."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from unittest.mock import patch

import numpy as np
from harness.exact_game import masks_workload
from statistical.exact_sparse_vector import first_positive_law
from statistical.sparse_distinguisher import detectable_difference, distinguish

from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.mechanisms.sparse_vector import SequentialSparseVector, SparseVector

EPSILON, FAILURE = Fraction(1, 2), Fraction(1, 10**6)
OTHER = np.array([1, 1, 1, 1], dtype=np.int64)
STATEMENTS = [masks_workload([mask], 4) for mask in (1, 3, 10, 6, 14)]


def scores_tested(histogram: list[int]) -> tuple[SparseVector, tuple[int, ...]]:
    """The sparse vector and the scores that the distinguisher makes, up to the last statement."""
    vectors, scores = list[SparseVector](), list[int]()

    def negative(tests: SequentialSparseVector, _: int, score: int) -> bool:
        vectors.append(tests.vector)
        scores.append(score)
        return False

    with patch.object(SequentialSparseVector, "positive", negative):
        assert (
            distinguish(DenseCounts(np.array(histogram)), OTHER, STATEMENTS, EPSILON, Fraction(1, 2), bytes(32))
            is None
        )
    return vectors[0], tuple(scores)


def test_what_it_names_hides_a_record_and_the_charge_is_not_idle() -> None:
    """Over all twelve neighbours of a table whose differences lie around the threshold."""
    table, worst = [300, 100, 100, 100], 0.0
    vector, scores = scores_tested(table)
    law = first_positive_law(vector, scores)
    for place, target in permutations(range(4), 2):
        other = list(table)
        other[place], other[target] = other[place] - 1, other[target] + 1
        near = first_positive_law(vector, scores_tested(other)[1])
        losses = [abs(math.log(p / q)) for p, q in zip(law, near, strict=True) if min(p, q) > 1e-9]
        assert len(losses) >= len(STATEMENTS)
        worst = max(worst, *losses)
    assert EPSILON / 4 < worst <= EPSILON


def test_it_finds_what_differs_and_nothing_else() -> None:
    """But for a probability of 10^-6 in each of 60 runs."""
    far = detectable_difference(EPSILON, len(STATEMENTS), FAILURE) >> SCORE_BITS
    for run in range(20):
        seed = run.to_bytes(32)
        # The tables are alike; or differ by a little less than F; or by a little more than 3 F on the last.
        assert distinguish(DenseCounts(OTHER * 10**6), OTHER, STATEMENTS, EPSILON, FAILURE, seed) is None
        little = OTHER * 10**6 + np.array([far - 1, 1 - far, 0, 0])
        assert distinguish(DenseCounts(little), OTHER, STATEMENTS, EPSILON, FAILURE, seed) is None
        much = OTHER * 10**6 + np.array([3 * far + 4, -3 * far - 4, 0, 0])
        found = distinguish(DenseCounts(much), OTHER, [STATEMENTS[1], STATEMENTS[0]], EPSILON, FAILURE, seed)
        assert found == 1
