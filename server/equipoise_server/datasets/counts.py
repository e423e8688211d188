"""The interface to a private table: it gives numbers of records, whatever the representation of the table.

Rounds, sessions and mechanisms pass a `Counts` on and do not know its representation. A mechanism asks for no more
than it needs: `dense` is possible only for a universe that is small enough to be enumerated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes


class Counts(Protocol):
    """The records of one table, as counts over the universe of its schema. Everything here is exact and private.

    Universe cells number the possible records with the last attribute varying fastest.
    """

    @property
    def universe_size(self) -> int:
        """`|X|`: the number of possible records, of any size."""
        ...

    @property
    def records(self) -> int:
        """`n`: the number of records in the table."""
        ...

    def count(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Count the records of every query: int64[k]. Raises `ValueError` for a workload over another universe."""
        ...

    def marginals(self, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
        """Yield each of the wanted axis sets, all different, with its table: int64, a dimension for each axis.

        They come in whatever order is cheapest.
        """
        ...

    def occupied(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield blocks of distinct records, and how often each is there, int64[b].

        Records are category numbers, int64[b, attributes], in ascending order, the first attribute counting most.
        """
        ...

    def dense(self) -> NDArray[np.int64]:
        """Return the number of records in every cell of the universe, int64[|X|]. Callers must not write to it.

        Raises `ValueError` for a universe that is too large.
        """
        ...
