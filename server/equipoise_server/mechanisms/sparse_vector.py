"""The sparse vector technique: finds the scores above a threshold, all at once or in turn, with or without answers.

AboveThreshold (Dwork & Roth 2014, Algorithm 1) is restarted after each positive with fresh threshold noise, and
stopped after `cut_off` positives. Only the signs of the tests are released; answers need fresh noise and cost more
(`NumericSparseVector`). Scores, threshold and noise are integers, so the noise is exact.

Known variants are not private (Lyu, Su & Li 2017): without noise on the scores, without a stop, or with the noisy
score itself released where it is positive, only a charge that grows with the number of tests holds.
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
        """The distribution of the noise on the threshold."""
        return DiscreteLaplace(self.epsilon / (THRESHOLD_FACTOR * self.sensitivity))

    @property
    def test_noise(self) -> DiscreteLaplace:
        """The distribution of the noise on each score."""
        return DiscreteLaplace(self.epsilon / (TEST_FACTOR * self.sensitivity))

    def detect(
        self, scores: NDArray[np.int64], order: NDArray[np.int64], stream: KeyedStream
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Test scores in a given order until `cut_off` of them are positive.

        Args:
            scores: the score of each statement, int64[m].
            order: the order of the tests, as indices of statements, int64[m].
            stream: the randomness of all tests and thresholds.

        Returns:
            `(positive, tested)`, two flags for each statement, bool[m]. A statement that was tested and is not
            positive scored below the threshold, up to both noises.
        """
        # All noise is drawn at once, even if it is not used, so that the work does not depend on the outcome.
        thresholds = self.threshold + self.threshold_noise.draw(self.cut_off, stream)
        noisy = scores + self.test_noise.draw(len(scores), stream)
        return first_positives(noisy, order, thresholds.tolist())


@dataclass(frozen=True)
class NumericSparseVector:
    """A sparse vector that also answers its positives, each with fresh discrete Laplace noise.

    `answer_epsilon`: the epsilon of one answer, whose value has the scores' sensitivity.

    Formal guarantees: with `cut_off` positives it is `cut_off (epsilon + answer_epsilon)`-DP, and satisfies
    `cut_off (epsilon^2 + answer_epsilon^2) / 2`-zCDP, up to the truncation of its noise and however many
    statements are tested: a composition of `cut_off` AboveThresholds and as many answers
    (`accounting.sparse_vector_rho`, `accounting.laplace_rho`), charged in full.
    """

    detection: SparseVector
    answer_epsilon: Fraction

    @property
    def answer_noise(self) -> DiscreteLaplace:
        """The distribution of the noise on each answer."""
        return DiscreteLaplace(self.answer_epsilon / self.detection.sensitivity)

    def answer(
        self,
        scores: NDArray[np.int64],
        values: NDArray[np.int64],
        order: NDArray[np.int64],
        tests: KeyedStream,
        answers: KeyedStream,
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """Test scores as `SparseVector.detect` does, and answer the positives with noise.

        Args:
            scores: the score of each statement, int64[m].
            values: the exact value of each statement, int64[m].
            order: the order of the tests, as indices of statements, int64[m].
            tests: the stream of the tests.
            answers: the stream of the answers, which must differ from `tests`.

        Returns:
            `(positive, tested, answered)`. `answered` has one number for each positive statement, in the order of
            the statements.
        """
        positive, tested = self.detection.detect(scores, order, tests)
        noise = self.answer_noise.draw(self.detection.cut_off, answers)
        return positive, tested, values[positive] + noise[: np.count_nonzero(positive)]


class SequentialSparseVector:
    """A sparse vector whose scores come one at a time; each may be chosen after all earlier signs were seen.

    The noise of a threshold is drawn from a stream that the threshold's number names, the noise of a test from a
    stream that its slot names. So the sign in a slot is a function of the streams, the slot, the score and the
    positives before it, and of no earlier draw that was lost. A threshold is drawn at the first test that needs it,
    from the streams as they are then. Each positive may be the end of an AboveThreshold of its own epsilon and
    threshold. The guarantee is that of `SparseVector`, with the sum of the costs: its proof allows adaptive scores,
    and these parameters are fixed before the first test.
    """

    def __init__(self, vectors: Sequence[SparseVector], derive: Callable[..., KeyedStream], purpose: str) -> None:
        """Start before the first test.

        Args:
            vectors: the public parameters until the first positive, the second one, and so on; `cut_off` is not
                read.
            derive: returns the stream of some labels.
            purpose: the first label, which no other user of `derive` has.
        """
        self._vectors, self._derive, self._purpose = vectors, derive, purpose
        self._noises = {vector: (vector.threshold_noise, vector.test_noise) for vector in set(vectors)}
        self._last_slot = -1
        self.positives = 0
        self._threshold: int | None = None

    @property
    def used_up(self) -> bool:
        """Whether all positives are used up, so that no further test is allowed."""
        return self.positives >= len(self._vectors)

    @property
    def vector(self) -> SparseVector:
        """The parameters in force, while there are any."""
        return self._vectors[self.positives]

    def positive(self, slot: int, score: int) -> bool:
        """Test one score. Raises `ValueError` where the positives are used up, or slots do not ascend."""
        if self.used_up:
            raise ValueError("the positives are used up")
        if slot <= self._last_slot:
            raise ValueError("each slot has one test, and slots ascend")
        self._last_slot = slot
        if self._threshold is None:
            self._threshold = self._fresh_threshold()
        _, tests = self._noises[self.vector]
        noise = int(tests.draw(1, self._stream("tests", slot))[0])
        positive = score + noise >= self._threshold
        if positive:
            self.positives += 1
            self._threshold = None
        return positive

    def _fresh_threshold(self) -> int:
        thresholds, _ = self._noises[self.vector]
        noise = thresholds.draw(1, self._stream("thresholds", self.positives))
        return self.vector.threshold + int(noise[0])

    def _stream(self, purpose: str, place: int) -> KeyedStream:
        return self._derive(self._purpose, purpose, str(place))


def first_positives(
    noisy: NDArray[np.int64], order: NDArray[np.int64], thresholds: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Compare noisy scores in order, with the next threshold after each positive. This part is deterministic.

    Args:
        noisy: int64[k], scores with noise.
        order: int64[k], in which order they are compared.
        thresholds: with noise; after the last positive nothing is compared.

    Returns:
        Which are positive, and which were compared: bool[k] each.
    """
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
