"""Queries over a numbered list of records that somebody keeps weights for.

Such a list is the whole universe, over which a `CompiledWorkload` works, or any records, over which a
`ListedWorkload` does. Whoever keeps weights need not know which.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload


class WeighedQueries(Protocol):
    """The k queries of some statements over a list of `size` records. Integers in, exact integers out."""

    @property
    def compiled(self) -> CompiledWorkload:
        """What was asked, whatever the records."""
        ...

    @property
    def size(self) -> int:
        """The number of records in the list."""
        ...

    @property
    def query_count(self) -> int:
        """The number of linear queries, k."""
        ...

    @property
    def statement_offsets(self) -> NDArray[np.int64]:
        """Where each statement's queries begin, and where the last one's end: int64[statements + 1]."""
        ...

    def categories(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return the categories of the records at some places of the list: int64[places] for each attribute."""
        ...

    def counts(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum every query over the records, each with its integer weight, int64[size]: int64[k].

        Raises `ValueError` for weights of another number, or whose absolute values sum to more than 2^53.
        """
        ...

    def expectations(self, distribution: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum every query over the records, each with its weight, float64[size]: float64[k], up to rounding."""
        ...

    def record_counts(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum every query over the records at some places of the list, maybe repeated: int64[k]."""
        ...

    def transpose(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of all queries, each times its coefficient, int64[k], at every record: int64[size].

        Raises `ValueError` for coefficients of another number, or that sum to more than 2^45 in absolute value.
        """
        ...

    def unit_transpose(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        """`transpose` in units of 2^-16: int64[size], also of weighted queries, and as exact.

        Raises `ValueError` for coefficients of another number, or that sum to more than 2^29 in absolute value.
        """
        ...

    def transpose_sparse(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        """`transpose` where only some queries, int64[j], have coefficients, int64[j]; repeated queries add up.

        Raises `ValueError` where one of these is weighted.
        """
        ...

    def unit_transpose_sparse(
        self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """`unit_transpose` where only some queries, int64[j], have coefficients, int64[j]; repeated ones add up."""
        ...

    def combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """`transpose` of float64[k] coefficients: float64[size], up to rounding."""
        ...
