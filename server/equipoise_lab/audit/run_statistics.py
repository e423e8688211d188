"""What viewers see of a run, as a few parts that come up often enough to be compared between samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers
from equipoise_lab.audit.clopper_pearson import Outcome
from equipoise_server.mechanisms.interface import Outcome as Released

GROUPS = 16  # of the numbers that sum up a run
GROUPS_OF_ANSWERS = 4  # of a single answer: each gives its sample's noise to all of them together
MAX_ANSWERS = 32  # that are looked at one by one

# Numbers of a run, as they are; and what is compared as it is.
RunStatistics = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]


def statistics_of(released: Released, viewers: Sequence[str], margin: NDArray[np.int64]) -> RunStatistics:
    """Return what the viewers hold together, in numbers.

    Args:
        released: The outcome of a run.
        viewers: The analysts who pool what they see.
        margin: int64[cells of the universe], by which the synopsis is weighed.

    Returns:
        First the sum of all values; that of the widths of all intervals; by how much the synopsis leans to
        `margin`,
        in its first and second half; and every value, of the first so many answers. Then how many answers were
        given
        in each way.
    """
    own = Answers.join(released.answers[name] for name in viewers)
    half = len(released.synopsis) // 2
    numbers = (
        int(own.values.sum()),
        int((own.highs - own.lows).sum()),
        int(margin[released.synopsis.cells[:half]].sum()),
        int(margin[released.synopsis.cells[half:]].sum()),
        *own.values[:MAX_ANSWERS].tolist(),
    )
    ways = Counter(own.methods.tolist())
    return numbers, tuple(sorted(ways.items()))


class QuantileBins:
    """Ranges of each number that are about equally frequent in the runs given, so that values are seen again.

    An audit gives the runs that choose its event, and no others: then the ranges are part of that choice.
    """

    def __init__(self, runs: Sequence[RunStatistics]) -> None:
        columns = np.array([numbers for numbers, _ in runs], dtype=np.int64).T
        self._edges = [
            _edges(column, GROUPS if place < 4 else GROUPS_OF_ANSWERS) for place, column in enumerate(columns)
        ]

    def outcome(self, run: RunStatistics) -> Outcome:
        """Return the number of the range in which each number lies; and the ways of answering."""
        numbers, ways = run
        placed = zip(self._edges, numbers, strict=True)
        return (*(int(np.searchsorted(edges, number, side="right")) for edges, number in placed), ways)


def _edges(column: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Values at which a new range begins. A value as frequent as a range has one of its own."""
    ascending = np.sort(column)
    cuts = ascending[np.arange(1, groups) * len(ascending) // groups]
    return np.unique(np.concatenate([cuts, cuts + 1]))
