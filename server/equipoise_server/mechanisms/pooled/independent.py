"""What the measured single attributes say of statements about others together, as if attributes were independent.

It sees released numbers only. Integers and elementwise products give every machine the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.product_terms import product_terms

UNIT = 2.0**20  # units of one record


def independent_counts(workload: CompiledWorkload, measured: Measured) -> NDArray[np.float64]:
    """Return the count of every query in a table of independent attributes: float64[k], from 0 to all records.

    Args:
        workload: any statements.
        measured: the residuals of a family that holds every attribute of two categories or more.
    """
    counts = np.zeros(workload.query_count)
    for terms in product_terms(workload):
        parts = terms.coefficients.astype(np.float64)
        for place, axis in enumerate(terms.axes):
            selected = terms.vectors[place] @ _weights(measured, axis)
            fractions = selected / max(1, int(_weights(measured, axis).sum()))
            parts *= fractions[terms.numbers[:, place]]
        np.add.at(counts, terms.queries, parts)
    return np.clip(counts, 0.0, 1.0) * measured.records


def _weights(measured: Measured, axis: int) -> NDArray[np.int64]:
    """Return the table of one attribute without negative counts, in units: int64[size]."""
    counts = measured.table((axis,)).counts()
    return np.rint(np.maximum(counts, 0.0) * UNIT).astype(np.int64)
