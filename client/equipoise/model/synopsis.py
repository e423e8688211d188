"""The synopsis of a round: synthetic records, the same for every analyst.

It is a private output already, so whatever is computed from it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import VerificationFailed
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.fixed_point import on_grid

CELL_BYTES = 4  # of one record


def _no_cells() -> NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Synopsis:
    """Synthetic records in the order of their release.

    Attributes:
        cells: int64[records], the number of each record's cell of the universe, in C order over the schema's
            attributes. Empty where a mechanism makes no synopsis.
    """

    cells: NDArray[np.int64] = field(default_factory=_no_cells)

    def __len__(self) -> int:
        """Returns the number of records."""
        return len(self.cells)

    @classmethod
    def from_categories(cls, categories: NDArray[np.int64], sizes: tuple[int, ...]) -> Synopsis:
        """Returns the synopsis with these records, the inverse of `categories`.

        Args:
            categories: int64[records, attributes], category numbers.
            sizes: how many categories each attribute has.

        Raises:
            ValueError: a category number is not one of its attribute's.
        """
        return cls(np.asarray(np.ravel_multi_index(tuple(categories.T), sizes), dtype=np.int64))

    def categories(self, sizes: tuple[int, ...]) -> NDArray[np.int64]:
        """Returns the category numbers of all records, int64[records, attributes].

        Args:
            sizes: how many categories each attribute of the schema has, `Schema.sizes`.

        Example:
            >>> import numpy as np
            >>> from equipoise.model.synopsis import Synopsis
            >>> Synopsis(np.array([0, 5])).categories((2, 3)).tolist()
            [[0, 0], [1, 2]]
        """
        return np.stack(np.unravel_index(self.cells, sizes), axis=1).astype(np.int64, copy=False)

    @classmethod
    def from_bytes(cls, data: bytes, universe_size: int) -> Synopsis:
        """Returns the synopsis of which these are the bytes, the inverse of `to_bytes`.

        Raises:
            VerificationFailed: the bytes end within a record, or a record is not of the universe.
        """
        if len(data) % CELL_BYTES:
            raise VerificationFailed("the synopsis ends in the middle of a record")
        cells = np.frombuffer(data, dtype="<u4").astype(np.int64)
        if int(cells.max(initial=0)) >= universe_size:
            raise VerificationFailed("the synopsis holds records that the schema does not have")
        return cls(cells)

    def to_bytes(self) -> bytes:
        """Returns the bytes that are stored and committed to: 4 for each cell number, little endian."""
        return self.cells.astype("<u4").tobytes()

    def counts(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Returns how many records each query of the workload counts, int64[queries]."""
        return workload.record_counts(self.cells)

    def answers(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Returns the answer to each query: its share of the records in units of 2^-40, int64[queries].

        The synopsis must have records.
        """
        return on_grid(self.counts(workload), len(self))


@dataclass(frozen=True, eq=False)
class SynopsisPart:
    """The next records of a synopsis that is read in parts, and how many records the whole has."""

    synopsis: Synopsis
    total: int
