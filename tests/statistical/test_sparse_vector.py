"""The sparse vector: its exact output law from the shipped noise, against epsilon; the sampler against that law.

The sampled comparison raises a false alarm with probability at most 1e-6 (Hoeffding, divided over the outcomes).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from harness.exact_game import hockey_stick
from statistical.exact_sparse_vector import NEGATIVE, POSITIVE, UNTESTED, exact_law

from equipoise_server.mechanisms import sparse_vector
from equipoise_server.mechanisms.sparse_vector import SparseVector, first_positives
from equipoise_server.randomness.stream import KeyedStream


def worst_loss(vector: SparseVector) -> float:
    """The largest log-likelihood ratio over extreme neighbours: all scores move one way, the last the other way.

    With one place the outcome "positive at the last statement" after many negatives is where a sparse vector
    leaks most; with more places the stretches repeat it.
    """
    statements = 30 if vector.cut_off == 1 else 6
    worst = 0.0
    for level, last, sign in itertools.product((0, vector.threshold, 3 * vector.threshold), (-1, 1), (-1, 1)):
        moves = [sign * vector.sensitivity] * (statements - 1) + [last * vector.sensitivity]
        law = exact_law(vector, (level,) * statements, vector.cut_off)
        near = exact_law(vector, tuple(level + move for move in moves), vector.cut_off)
        seen = [key for key in law if min(law[key], near[key]) > 1e-9]  # what the finite sum resolves
        worst = max(worst, *(abs(math.log(law[key] / near[key])) for key in seen))
    return worst


@pytest.mark.full
@pytest.mark.parametrize(("epsilon", "cut_off"), [(Fraction(1), 1), (Fraction(1, 2), 2), (Fraction(2), 1)])
def test_each_positive_costs_at_most_epsilon(epsilon: Fraction, cut_off: int) -> None:
    worst = worst_loss(SparseVector(epsilon, 2, 5, cut_off))
    assert worst <= cut_off * epsilon + 1e-9
    assert worst >= 0.45 * cut_off * epsilon  # the charge is not idle


@pytest.mark.full
@pytest.mark.parametrize(("factor", "value"), [("THRESHOLD_FACTOR", 0.5), ("TEST_FACTOR", 1)])
def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch, factor: str, value: float) -> None:
    monkeypatch.setattr(sparse_vector, factor, Fraction(value))
    assert worst_loss(SparseVector(Fraction(1), 2, 5, 1)) > 1


def test_the_sampler_has_the_exact_law() -> None:
    vector, scores, runs = SparseVector(Fraction(1), 2, 5, 2), (3, 8, 5, 6), 4_000
    law = exact_law(vector, scores, vector.cut_off)
    stream = KeyedStream.derive(b"\x01" * 32, "test")
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(runs):
        positive, tested = vector.detect(np.array(scores), np.arange(4), stream)
        seen[tuple(np.where(positive, POSITIVE, np.where(tested, NEGATIVE, UNTESTED)).tolist())] += 1
    assert set(seen) <= set(law)
    allowed = math.sqrt(math.log(2 * len(law) / 1e-6) / (2 * runs))
    for outcome, chance in law.items():
        assert abs(seen[outcome] / runs - chance) <= allowed
    # The comparison has power: the law of a test noise one half too small lies outside it.
    wrong = exact_law(SparseVector(Fraction(2), 2, 5, 2), scores, 2)
    assert hockey_stick(wrong, law, 0.0) > 2 * allowed


def test_first_positives_is_the_plain_loop() -> None:
    choose = np.random.default_rng(5)
    for _ in range(200):
        noisy, order = choose.integers(-5, 6, 7), choose.permutation(7)
        thresholds = choose.integers(-3, 7, int(choose.integers(1, 5))).tolist()
        positive, tested, left = np.zeros(7, bool), np.zeros(7, bool), list(thresholds)
        for statement in order:
            if not left:
                break
            tested[statement] = True
            if noisy[statement] >= left[0]:
                positive[statement] = True
                left.pop(0)
        got = first_positives(noisy, order, thresholds)
        assert got[0].tolist() == positive.tolist()
        assert got[1].tolist() == tested.tolist()


def test_no_places_test_nothing() -> None:
    vector = SparseVector(Fraction(1), 1, 0, 0)
    positive, tested = vector.detect(np.array([9, 9]), np.arange(2), KeyedStream.derive(b"\x02" * 32, "test"))
    assert not positive.any()
    assert not tested.any()
