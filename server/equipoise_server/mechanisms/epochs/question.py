"""The interface of a private session's statements: values on the data, and on any multiset of a finite universe.

For linear queries the universe is the set of possible records. For other statements its elements are whole
databases, and the value on several databases is the mean (`low_sensitivity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers
from equipoise.queries.axis_weights import WEIGHT_BITS
from equipoise.queries.fixed_point import GRID_BITS, on_grid
from equipoise.queries.weighed_queries import WeighedQueries
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, canonical_object, key
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior

DIRECTION_BITS = WEIGHT_BITS  # a direction's unit is 2^-16


@canonical_object
class Scale:
    """In what a session's true answers are counted, the same for all its statements and public.

    An answer of 1 is `units`, below 2^40. Replacing a record moves every answer by at most `sensitivity` of them,
    which is at most 2^12, so that noise of every scale can be drawn.
    """

    units: int = key("units", COUNT)
    sensitivity: int = key("sensitivity", COUNT)


class Question(Protocol):
    """One statement, with one or more cells."""

    @property
    def l1_sensitivity(self) -> int:
        """At most by how much all cells' true answers move, as a sum of squares, in units of `sensitivity^2`."""
        ...

    def truth(self) -> NDArray[np.int64]:
        """Return the true answers, int64[cells] between 0 and `units`. Only this method reads the data."""
        ...

    def multiset_answers(self, multiset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what a multiset, int64[|X|] how often each element, answers: int64[cells] in units of 2^-40."""
        ...

    def prior_answers(self, expected: NDArray[np.int64]) -> Answers | None:
        """Return the answers that follow from what was published before the session; None where they do not.

        That depends on the statement and on what was published before, and on no other statement. So others see no
        more of it than of one that is never positive.

        `expected`: int64[cells], what the hypothesis answers, in units of 2^-40.
        """
        ...

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:
        """`sum_c signs[c] q_c(x)` over the universe, int64[|X|] in units of 2^-16.

        `signs`: int64[cells], each 0 or all the same one of 1 and -1. Its range is at most 2^16.
        """
        ...


@dataclass(frozen=True, eq=False)
class LinearQuestion:
    """A predicate, a marginal or a sum: at most one of its cells has a part of a record. Scale: (`records`, 1).

    Theorem: sums are answered and hidden as counts are, although they are rounded down to whole records, so that
    they are not linear. Proof. The data are seen through `truth` alone, in tests and in answers with noise, and one
    replaced record moves each of its whole numbers by at most 1, in at most `l1_sensitivity` cells
    (`axis_weights`). That an answer is within its half-width of the truth rests on what was tested, on its noise,
    or on what was measured before (`residuals.direct`), not on how the hypothesis answers. What is learnt rests on
    `direction`, which has no rounding: weights are whole units of 2^-16, and all signs are the same, so that it
    lies between 0 and 2^16 or between -2^16 and 0 at every record, as a count's does. That is all that the
    analysts' cost counts with (`cost.drawing_rho`).

    `queries`: its own over the records that the hypothesis has weights of.
    `known`: a prior's measurement, and the largest half-width up to which it answers; None without a prior.
    """

    queries: WeighedQueries
    data: Counts
    records: int
    known: tuple[MeasuredPrior, int] | None = None

    @property
    def l1_sensitivity(self) -> int:
        """1 for a single number; 2 for a table, one cell of which loses the record while another gains it."""
        return self.queries.compiled.statement_sensitivity(0)

    def truth(self) -> NDArray[np.int64]:
        """Counts."""
        return self.data.count(self.queries.compiled)

    def multiset_answers(self, multiset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the share of the multiset's records; of a sum as finely as the grid allows."""
        total = int(multiset.sum())
        bits = max(0, GRID_BITS - total.bit_length()) if self.queries.compiled.weighted.any() else 0
        bits = min(bits, WEIGHT_BITS)
        return on_grid(self.queries.counts(multiset << bits), total << bits)

    def prior_answers(self, expected: NDArray[np.int64]) -> Answers | None:
        """Return what a prior's measurement tells within its half-width."""
        return prior_answers_within(self.known, self.queries.compiled, expected)

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each record's cell says, by its weight in it."""
        return self.queries.unit_transpose(signs)


def prior_answers_within(
    known: tuple[MeasuredPrior, int] | None, statement: CompiledWorkload, expected: NDArray[np.int64]
) -> Answers | None:
    """Return what a prior's measurement tells of a statement; None without one, or where it tells too little.

    Args:
        known: the prior's measurement, and the largest half-width up to which it answers.
        statement: one statement of `cells` queries.
        expected: int64[cells], what the hypothesis answers, in units of 2^-40.
    """
    if known is None or not known[0].holds(statement):
        return None
    prior, half_width = known
    answers = prior.answers(statement, expected)
    return answers if int((answers.highs - answers.lows).max()) <= 2 * half_width else None
