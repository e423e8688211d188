"""What may be asked of a private table: numbers of records, however the table is held.

Rounds, sessions and mechanisms hand a `Counts` on and never what is behind it. A mechanism asks for no more than it
needs: `dense` can only be had over a universe that is small enough to be enumerated.
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
        """`|X|`: how many different records there can be."""
        ...

    @property
    def records(self) -> int:
        """`n`: how many records there are."""
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
        """Yield blocks of universe cells with a record, int64[b], and the records in each, int64[b]; ascending."""
        ...

    def dense(self) -> NDArray[np.int64]:
        """Return the records in every cell of the universe: int64[|X|], which is not to be written to."""
        ...
