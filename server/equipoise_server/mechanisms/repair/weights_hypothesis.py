"""The hypothesis of private multiplicative weights: what it starts from, and how it moves to what is measured.

It is a function of public weights and of noisy answers. Sums of its weights are exact, so it is the same on every
machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.model.synopsis import Synopsis
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.randomness.exponential import UNIT_BITS, exponentials

TOTAL_BITS = 52  # integer weights of a hypothesis sum to less: their sums are exact
PASSES = 2  # over everything measured, after each measurement
MAX_GAP = 600 << UNIT_BITS  # within the range of `exponentials`


class Fit:
    """A hypothesis `start exp(potential)` over the universe, moved towards measured answers.

    Public: a function of the starting weights and of what was measured. Half the gap between a measured answer and
    the hypothesis's own is added to the potential of the query's records. Earlier measurements are then used
    again wherever the gap exceeds `guard` (units of 2^-40): beyond twice the noise that one carries such a step
    brings the hypothesis closer to the data, and costs no privacy.
    """

    def __init__(self, workload: CompiledWorkload, start: NDArray[np.float64], guard: int) -> None:
        self._workload, self._start, self._guard = workload, start, guard
        self._measured: dict[int, int] = {}
        self._potential = np.zeros(len(start), dtype=np.int64)
        self._weights, self._unit = rounded_weights(start)

    def answers(self) -> NDArray[np.int64]:
        """Return what the hypothesis answers to every query: int64[k] in units of 2^-40."""
        answers: NDArray[np.int64] = np.rint(self._workload.counts(self._weights) * self._unit).astype(np.int64)
        return answers

    def measured(self, query: int, answer: int) -> None:
        """Takes in one measured answer, in units of 2^-40. A query measured again counts with its last answer."""
        self._measured.pop(query, None)
        self._measured[query] = answer
        self._move(query, answer, 0)
        for _ in range(PASSES):
            for earlier, value in self._measured.items():
                self._move(earlier, value, self._guard)

    def _move(self, query: int, answer: int, guard: int) -> None:
        cells = self._workload.transpose_sparse(np.array([query], dtype=np.int64), np.ones(1, dtype=np.int64))
        expected = int(np.rint(int(self._weights[cells != 0].sum()) * self._unit))
        gap = answer - expected
        if abs(gap) > guard:
            self._potential += cells * np.int64(gap << (UNIT_BITS - GRID_BITS - 1))
            self._potential -= self._potential.max()
            # Beyond 600 nats below the heaviest cell nothing is left to tell apart.
            np.maximum(self._potential, -MAX_GAP, out=self._potential)
            self._weights, self._unit = rounded_weights(self._start * exponentials(self._potential))


def starting_weights(synopsis: Synopsis, universe: int) -> NDArray[np.float64]:
    """Half the synopsis, half uniform: float64[|X|], integers."""
    return (len(synopsis) + universe * np.bincount(synopsis.cells, minlength=universe)).astype(np.float64)


def rounded_weights(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Weights as integers, int64[|X|], and what one of them is worth as an answer, in units of 2^-40.

    For 1 to 2^26 cells rounding moves an answer by at most |X| 2^-49 (1 + 2^-52) + 2^-40. Proof. Let v be the
    weights on the first scale: their largest is M = 2^51 / L with L the power of two above |X| (up to a factor
    1 - 2^-53, dropped here), and their floors sum to t >= M - 1. With t + |X| of b bits the final scale is 2^k
    times that, k = 52 - b, exactly; the final reals sum to V >= 2^k max(t, M), and their floors to less than 2^52.
    Each floor takes less than 1, so the share of any set of cells moves by less than |X| / V. If t >= |X| then
    V >= 2^51 t / (t + |X|) >= 2^50. Otherwise t + |X| < 2 |X|. For |X| < 2^26 that needs 2^25 <= M <= |X|, so
    k >= 25 and V >= 2^25 M >= 2^50. For |X| = 2^26, M = 2^24 and k >= 25 give V >= 2^49. Turning shares into
    units of 2^-40 adds less than one of these.
    """
    scale = 2.0 ** (TOTAL_BITS - 1 - len(weights).bit_length()) / float(weights.max())
    # A few heavy cells leave room in the total: a second, finer rounding uses it.
    total = int(np.floor(weights * scale).astype(np.int64).sum())
    scale *= 2.0 ** (TOTAL_BITS - (total + len(weights)).bit_length())
    integers = np.floor(weights * scale).astype(np.int64)
    return integers, 2.0**GRID_BITS / int(integers.sum())
