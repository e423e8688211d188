"""A private distinguisher: a statement on which a secret table and a public one differ much, if there is any.

SparseDistinguish of Gupta, Roth & Ullman (2012): `online` for one update and a hypothesis that never moves. The
statements may come in any order, an opponent's too. So in `online` the analysts are the distinguisher: each
statement of theirs that tells hypothesis and table apart is the next one to learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, SynopsisCounts, score
from equipoise_server.mechanisms.sparse_vector import SequentialSparseVector, SparseVector
from equipoise_server.randomness.stream import KeyedStream


def detectable_difference(epsilon: Fraction, statements: int, failure: Fraction) -> int:
    """`F`: the error that `distinguish` finds, a count in units of 2^-16 records.

    But for a probability of `failure`, every statement that `distinguish` names differs by at least `F` on the two
    tables; and if some statement differs by `3 F` or more, it names one. Proof. Let `F` be the sum of what the
    threshold's noise and that of all tests exceed, on either side, with half of `failure` each. Within that, a
    positive statement differs by at least the threshold `2 F` less `F`, and one that differs by `3 F` is positive.
    With scales of `2 / epsilon` and `4 / epsilon`, `F` is about `4 (log k + log(2 / failure)) / epsilon` records.
    """
    vector = SparseVector(epsilon, 1 << SCORE_BITS, 0, 1)
    tested: int = vector.test_noise.quantile(failure / (4 * statements))
    return tested + vector.threshold_noise.quantile(failure / 4)


def distinguish(
    data: Counts,
    other: NDArray[np.int64],
    statements: Sequence[CompiledWorkload],
    epsilon: Fraction,
    failure: Fraction,
    seed: bytes,
) -> int | None:
    """The place of the first statement found to differ (`detectable_difference`); None where none is.

    `data`: the secret table; `other`: the public one, of any size. A statement differs by the
    largest distance of its cells' fractions, in records of the secret table. Epsilon-DP for the people in that one:
    it is one AboveThreshold (`accounting.sparse_vector_rho` with one positive).
    """
    threshold = 2 * detectable_difference(epsilon, len(statements), failure)
    vector = SparseVector(epsilon, 1 << SCORE_BITS, threshold, 1)
    derive, records = partial(KeyedStream.derive, seed), data.records
    tests = SequentialSparseVector([vector], derive, "distinguisher")
    for place, statement in enumerate(statements):
        expected = SynopsisCounts(statement.counts(other), int(other.sum()))
        if tests.positive(place, int(score(data.count(statement), records, expected).max())):
            return place
    return None
