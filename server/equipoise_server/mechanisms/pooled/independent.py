"""What measured single attributes say of several together, as if attributes were independent.

It sees released numbers only. Whole numbers and elementwise products give every machine the same bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.product_terms import product_terms

EXACT_BITS = 52  # whole units of a table sum to less than 2^53, so that sums are exact in any order
BLOCK = 1 << 13  # boxes that are treated at once


def independent_counts(workload: CompiledWorkload, measured: Measured) -> NDArray[np.float64]:
    """Return the count of every query in a table of independent attributes: float64[k], from 0 to all records.

    Args:
        workload: any statements.
        measured: the residuals of a family that holds every attribute of two categories or more.
    """
    counts = np.zeros(workload.query_count)
    weights = {axes[0]: _weights(measured, axes[0]) for axes in measured.noise.family.sets if len(axes) == 1}
    for terms in product_terms(workload):
        for start in range(0, len(terms.queries), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(terms.queries)))
            parts = terms.coefficients[rows].astype(np.float64)
            for axis, taken in zip(terms.axes, terms.factors(rows), strict=True):
                parts *= taken @ weights[axis] / weights[axis].sum()
            np.add.at(counts, terms.queries[rows], parts)
    return np.clip(counts, 0.0, 1.0) * measured.records


def _weights(measured: Measured, axis: int) -> NDArray[np.float64]:
    """Return the table of one attribute, without negative counts, in whole units: float64[size]."""
    counts = np.maximum(measured.table((axis,)).counts(), 0.0)
    unit = 2.0 ** (EXACT_BITS - math.frexp(math.fsum(counts.tolist()) + 1)[1])
    return np.rint(counts * unit)
