"""One exact test for a sample against a law: every bin's count against the tails of its binomial law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom


def deviates(counts: NDArray[np.int64], law: NDArray[np.float64], false_alarm: float) -> bool:
    """Whether any bin holds more or fewer draws than chance allows.

    Over random seeds a sample of the law is rejected with probability at most `false_alarm`, whatever the size of
    the bins: each count is binomial, each of its two tails gets an equal part of `false_alarm`, and these add up
    (no independence and no normal approximation is used). Probabilities of the law are right to about 10^-12.
    """
    draws = int(counts.sum())
    level = false_alarm / (2 * len(law))
    mass = np.clip(law, 0.0, 1.0)
    few = np.asarray(binom.cdf(counts, draws, mass))
    many = np.asarray(binom.sf(counts - 1, draws, mass))
    return bool(min(few.min(), many.min()) < level)
