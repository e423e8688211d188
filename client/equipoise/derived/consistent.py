"""Values that a table can have, made of unbiased ones: none below 0, and the cells of a whole table sum to all.

Unbiased values may lie below 0, and the cells of a table need not sum to all records. Each statement's values are
moved to the nearest ones that a table can have: a set that is convex and holds the truth, so the mean squared error
never grows (a projection onto a convex set moves no two points apart). What is gained is paid by a bias: values
near 0 become larger. So sums over many cells are better taken of the unbiased values, whose errors cancel.
Intervals and standard errors are about the measurement, and stay as they are. Nothing is charged and nothing is
asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.statements import Marginal, Statement
from equipoise.results import Results


def consistent(results: Results) -> NDArray[np.float64]:
    """Return for every answer the nearest value that a table can have, with the other answers of its statement.

    The cells of a marginal sum to 1, or to at most 1 where it has a condition. Every other value lies between 0
    and 1. Different statements are not made to agree with each other.

    Args:
        results: with labels, which say what the cells of one statement are.

    Returns:
        Fractions of the records (of a statistic, of its range), float64[queries].

    Raises:
        InvalidArgument: the results have no labels.
    """
    if results.labels is None:
        raise InvalidArgument("statements", "must be given: they say which answers belong together")
    values, first = np.clip(results.values, 0.0, 1.0), 0
    for statement in results.labels.statements:
        last = first + len(results.labels.cells(statement))
        if isinstance(statement, Marginal):
            values[first:last] = nearest_table(results.values[first:last], statement)
        first = last
    return values


def nearest_table(values: NDArray[np.float64], statement: Statement) -> NDArray[np.float64]:
    """Return the values of a marginal's cells that a table can have, with the least sum of squared differences.

    Args:
        values: float64[cells], fractions of the records.
        statement: the marginal. With a condition its cells may sum to less than 1.
    """
    positive: NDArray[np.float64] = np.maximum(values, 0.0)
    if isinstance(statement, Marginal) and statement.where is not None and positive.sum() <= 1:
        return positive
    # All that stay above 0 lose the same amount (Held, Wolfe and Crowder 1974, proposition 2.2 and its algorithm).
    falling = np.sort(values)[::-1]
    amounts = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    kept = int(np.count_nonzero(falling > amounts))
    nearest: NDArray[np.float64] = np.maximum(values - amounts[kept - 1], 0.0)
    return nearest
