"""Which of many numbers lie above a threshold? The sparse vector: all at once or in turn, with answers or without.

AboveThreshold (Dwork & Roth 2014, Algorithm 1) restarted after each positive with fresh threshold noise, stopped
after `cut_off` positives. Only the signs of the tests leave it; whoever wants numbers pays for fresh noise
(`NumericSparseVector`). Scores, threshold and noise are integers, so the noise is exact.

What makes it private is easily lost (Lyu, Su & Li 2017): without noise on the scores, without a stop, or with the
noisy score itself told where it is positive, no charge that does not grow with the number of tests holds.
`tests/statistical/test_sparse_vector_variants.py` shows each of the three failing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

THRESHOLD_FACTOR = 2  # threshold noise has scale 2 sensitivity / epsilon
TEST_FACTOR = 4  # each test's noise has scale 4 sensitivity / epsilon


@dataclass(frozen=True)
class SparseVector:
    """Public parameters: epsilon of one AboveThreshold, and the sensitivity of the integer scores.

    Formal guarantees: with `cut_off` positives it satisfies `cut_off epsilon^2 / 2`-zCDP, up to the
    truncation of its noise, however many statements are tested (`accounting.sparse_vector_rho`).
    """

    epsilon: Fraction
    sensitivity: int
    threshold: int
    cut_off: int

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """The law of the noise on the threshold."""
        return DiscreteLaplace(self.epsilon / (THRESHOLD_FACTOR * self.sensitivity))

    @property
    def test_noise(self) -> DiscreteLaplace:
        """The law of the noise on each score."""
        return DiscreteLaplace(self.epsilon / (TEST_FACTOR * self.sensitivity))

    def detect(
        self, scores: NDArray[np.int64], order: NDArray[np.int64], stream: KeyedStream
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tests `scores` (int64, one a statement) in the given order until the cut-off is used up.

        Returns `(positive, tested)`, a flag each for every statement. A statement that was tested and is not
        positive scored below the threshold, up to both noises.
        """
        # All noise is drawn at once, used or not, so that the work does not depend on the outcome.
        thresholds = self.threshold + self.threshold_noise.draw(self.cut_off, stream)
        noisy = scores + self.test_noise.draw(len(scores), stream)
        return first_positives(noisy, order, thresholds.tolist())


@dataclass(frozen=True)
class NumericSparseVector:
    """A sparse vector whose positives are answered, each with discrete Laplace noise of its own.

    `answer_epsilon`: of one answer, whose value moves by the scores' sensitivity.

    Formal guarantees: with `cut_off` positives it is `cut_off (epsilon + answer_epsilon)`-DP, and satisfies
    `cut_off (epsilon^2 + answer_epsilon^2) / 2`-zCDP, up to the truncation of its noise and however many
    statements are tested: a composition of `cut_off` AboveThresholds and as many answers
    (`accounting.sparse_vector_rho`, `accounting.laplace_rho`), charged in full.
    """

    detection: SparseVector
    answer_epsilon: Fraction

    @property
    def answer_noise(self) -> DiscreteLaplace:
        """The law of the noise on each answer."""
        return DiscreteLaplace(self.answer_epsilon / self.detection.sensitivity)

    def answer(
        self,
        scores: NDArray[np.int64],
        values: NDArray[np.int64],
        order: NDArray[np.int64],
        tests: KeyedStream,
        answers: KeyedStream,
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """`SparseVector.detect` on `scores`, and the positives' `values` (int64, one a statement) with noise.

        Returns `(positive, tested, answered)`; `answered` has one number for each positive statement, in the order
        of the statements. `tests` and `answers` are two streams: fresh noise is what an answer costs.
        """
        positive, tested = self.detection.detect(scores, order, tests)
        noise = self.answer_noise.draw(self.detection.cut_off, answers)
        return positive, tested, values[positive] + noise[: np.count_nonzero(positive)]


class SequentialSparseVector:
    """A sparse vector whose scores come one at a time; each may be chosen by who has seen all earlier signs.

    A threshold's noise is drawn from a stream that its number names, a test's from one that its slot names: so the
    sign in a slot is a function of the streams, the slot, the score and the positives before it, and of nothing
    that was drawn and lost. A threshold is drawn at the first test that needs it, from the streams as they are
    then. The guarantee is that of `SparseVector`, whose proof lets the scores be chosen so.
    """

    def __init__(self, vector: SparseVector, derive: Callable[..., KeyedStream], purpose: str) -> None:
        """`derive`: the stream of some labels. `purpose`: the first label, which nothing else has among them."""
        self._vector, self._derive, self._purpose = vector, derive, purpose
        self._threshold_noise, self._test_noise = vector.threshold_noise, vector.test_noise
        self._last_slot = -1
        self.positives = 0
        self._threshold: int | None = None

    @property
    def used_up(self) -> bool:
        """Whether all positives are, so that nothing more may be tested."""
        return self.positives >= self._vector.cut_off

    def positive(self, slot: int, score: int) -> bool:
        """Tests one score. Raises `ValueError` where nothing more may be tested, or not in this slot."""
        if self.used_up:
            raise ValueError("the positives are used up")
        if slot <= self._last_slot:
            raise ValueError("each slot has one test, and slots ascend")
        self._last_slot = slot
        if self._threshold is None:
            self._threshold = self._fresh_threshold()
        noise = int(self._test_noise.draw(1, self._stream("tests", slot))[0])
        positive = score + noise >= self._threshold
        if positive:
            self.positives += 1
            self._threshold = None
        return positive

    def _fresh_threshold(self) -> int:
        noise = self._threshold_noise.draw(1, self._stream("thresholds", self.positives))
        return self._vector.threshold + int(noise[0])

    def _stream(self, purpose: str, place: int) -> KeyedStream:
        return self._derive(self._purpose, purpose, str(place))


def first_positives(
    noisy: NDArray[np.int64], order: NDArray[np.int64], thresholds: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The deterministic part: compare in order, move to the next threshold after each positive."""
    positive = np.zeros(len(noisy), dtype=np.bool_)
    tested = np.zeros(len(noisy), dtype=np.bool_)
    ordered = noisy[order]
    start = 0
    for threshold in thresholds:
        above = np.flatnonzero(ordered[start:] >= threshold)
        if len(above) == 0:
            tested[order[start:]] = True
            break
        stop = start + int(above[0])
        tested[order[start : stop + 1]] = True
        positive[order[stop]] = True
        start = stop + 1
    return positive, tested
