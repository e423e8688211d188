"""Which statements does the synopsis serve badly? One sparse vector for one analyst.

AboveThreshold (Dwork & Roth 2014, Algorithm 1) restarted after each positive with fresh threshold noise, stopped
after `cut_off` positives. Only the signs of the tests leave it: a numeric answer from the test noise would need
a budget of its own. Scores, threshold and noise are integers, so the noise is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
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
