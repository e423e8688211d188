"""How much pairs of attributes tell of one another, and the tree of those that tell most (Chow & Liu 1968).

It sees noisy tables only: post-processing. Sums are correctly rounded (`math.fsum`) and all else is elementwise
arithmetic of doubles, so that every machine finds the same tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes

TERMS = 16  # of the series of a logarithm: its rest is below 2^-50


def mutual_information(table: NDArray[np.float64]) -> float:
    """Return the mutual information of two attributes, in nats, of a table of numbers that are not negative."""
    total = math.fsum(table.ravel().tolist())
    if not total:
        return 0.0
    rows = np.array([math.fsum(row) for row in table.tolist()])
    columns = np.array([math.fsum(column) for column in table.T.tolist()])
    present = table > 0
    # What is together over what independence says: `n p_ij / (p_i p_j)`, where n is the table's sum.
    ratio = table[present] / np.multiply.outer(rows, columns)[present] * total
    return max(0.0, math.fsum((table[present] * logarithms(ratio)).tolist()) / total)


def logarithms(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return natural logarithms of normal numbers above 0, the same bits on every machine; good to 2^-48.

    `log(m 2^e) = e log 2 + 2 artanh((m - 1) / (m + 1))` with m from the root of 1/2 to that of 2, by the series of
    artanh.
    """
    mantissas, exponents = np.frexp(numbers)
    small = mantissas < math.sqrt(0.5)
    mantissas, exponents = np.where(small, 2 * mantissas, mantissas), exponents - small
    part = (mantissas - 1) / (mantissas + 1)
    square = part * part
    series = np.zeros_like(part)
    for term in range(TERMS - 1, -1, -1):
        series = series * square + 1 / (2 * term + 1)
    return np.asarray(exponents * math.log(2) + 2 * part * series)


def dependence_tree(attributes: int, information: Mapping[Axes, float]) -> list[tuple[int, int | None]]:
    """Return each attribute with the one that it hangs on, which comes before it; None for the first of a tree.

    The trees have the largest sum of information that any have (Prim 1957). Pairs that are not given, or tell
    nothing, join no tree.

    Args:
        attributes: how many there are.
        information: of pairs, ascending, at least 0.
    """
    best: dict[int, tuple[float, int | None]] = dict.fromkeys(range(attributes), (0.0, None))
    order: list[tuple[int, int | None]] = []
    while best:
        # The smallest number of those that tell most, so that equal ones leave no choice.
        chosen = max(best, key=lambda attribute: (best[attribute][0], -attribute))
        order.append((chosen, best.pop(chosen)[1]))
        for other, (most, _) in best.items():
            told = information.get((min(chosen, other), max(chosen, other)), 0.0)
            if told > most:
                best[other] = told, chosen
    return order
