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
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.weighed_queries import WeighedQueries
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, canonical_object, key
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior

DIRECTION_BITS = 16  # a direction's unit is 2^-16


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
    """A predicate, or all cells of a marginal: at most one holds for a record. The scale is (`records`, 1).

    `queries`: its own over the records that the hypothesis has weights of.
    `known`: a prior's measurement, and the largest half-width up to which it answers; None without a prior.
    """

    queries: WeighedQueries
    data: Counts
    records: int
    known: tuple[MeasuredPrior, int] | None = None

    @property
    def l1_sensitivity(self) -> int:
        """1 for a predicate; 2 for a marginal, one cell of which loses the record while another gains it."""
        return self.queries.compiled.statement_sensitivity(0)

    def truth(self) -> NDArray[np.int64]:
        """Counts."""
        return self.data.count(self.queries.compiled)

    def multiset_answers(self, multiset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the share of the multiset's records."""
        return on_grid(self.queries.counts(multiset), int(multiset.sum()))

    def prior_answers(self, expected: NDArray[np.int64]) -> Answers | None:
        """Return what a prior's measurement tells within its half-width."""
        return prior_answers_within(self.known, self.queries.compiled, expected)

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each record's cell decides, or none does."""
        return self.queries.transpose(signs) << DIRECTION_BITS


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
