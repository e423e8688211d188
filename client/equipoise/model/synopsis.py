"""The synopsis of a round: synthetic records, the same for every analyst.

It is a private output already, so whatever is computed from it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import VerificationFailed
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.record_list import RecordList

MAX_COUNTED_CELLS = 1 << 26  # of a universe whose cells are counted; records of larger ones are


def record_bytes(sizes: Sequence[int]) -> int:
    """Returns the bytes of one record: 1, 2 or 4 for each attribute, as the largest of them needs.

    Args:
        sizes: how many categories each attribute has, `Schema.sizes`.
    """
    return _number_bytes(sizes) * len(sizes)


def _number_bytes(sizes: Sequence[int]) -> int:
    largest = max(sizes, default=1)
    return 1 if largest <= 1 << 8 else 2 if largest <= 1 << 16 else 4


def _no_codes() -> NDArray[Any]:
    return np.zeros((0, 0), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Synopsis:
    """Synthetic records in the order of their release. `Synopsis()` has none: a mechanism may make no synopsis.

    Attributes:
        sizes: how many categories each attribute has.
        codes: [attributes, records] of uint8, uint16 or int32, category numbers: a column for each record.
    """

    sizes: tuple[int, ...] = ()
    codes: NDArray[Any] = field(default_factory=_no_codes)

    def __len__(self) -> int:
        """Returns the number of records."""
        return int(self.codes.shape[1])

    @classmethod
    def of_cells(cls, cells: NDArray[np.int64], sizes: tuple[int, ...]) -> Synopsis:
        """Returns the synopsis of records given as cells of the universe, int64[records], in C order over `sizes`.

        Example:
            >>> import numpy as np
            >>> from equipoise.model.synopsis import Synopsis
            >>> Synopsis.of_cells(np.array([0, 5]), (2, 3)).categories.tolist()
            [[0, 0], [1, 2]]
        """
        return cls.from_categories(np.stack(np.unravel_index(cells, sizes), axis=1), sizes)

    @classmethod
    def from_categories(cls, categories: NDArray[np.int64], sizes: tuple[int, ...]) -> Synopsis:
        """Returns the synopsis with these records, the inverse of `categories`.

        Args:
            categories: int64[records, attributes], category numbers.
            sizes: how many categories each attribute has.

        Raises:
            ValueError: a category number is not one of its attribute's.
        """
        if len(categories) and ((categories < 0) | (categories >= np.array(sizes))).any():
            raise ValueError("a record has a category that its attribute does not have")
        kept = {1: np.uint8, 2: np.uint16, 4: np.int32}[_number_bytes(sizes)]
        return cls(sizes, np.ascontiguousarray(categories.T, dtype=kept))

    @property
    def categories(self) -> NDArray[np.int64]:
        """The category numbers of all records, int64[records, attributes]."""
        return np.ascontiguousarray(self.codes.T, dtype=np.int64)

    @property
    def cells(self) -> NDArray[np.int64]:
        """The cell of the universe of each record, int64[records], in C order over the attributes.

        Raises `ValueError` where there are more than 2^63 of them.
        """
        return np.asarray(np.ravel_multi_index(tuple(self.codes), self.sizes) if self.sizes else (), dtype=np.int64)

    def part(self, first: int, last: int) -> Synopsis:
        """Returns the records from `first` to before `last`."""
        return Synopsis(self.sizes, self.codes[:, first:last])

    @classmethod
    def from_bytes(cls, data: bytes, sizes: tuple[int, ...]) -> Synopsis:
        """Returns the synopsis of which these are the bytes, the inverse of `to_bytes`.

        Raises:
            VerificationFailed: the bytes end within a record, or a record is not of the universe.
        """
        if len(data) % record_bytes(sizes):
            raise VerificationFailed("the synopsis ends in the middle of a record")
        numbers = np.frombuffer(data, dtype=f"<u{_number_bytes(sizes)}").astype(np.int64)
        try:
            return cls.from_categories(numbers.reshape(-1, len(sizes)), sizes)
        except ValueError:
            raise VerificationFailed("the synopsis holds records that the schema does not have") from None

    def to_bytes(self) -> bytes:
        """Returns the bytes that are stored and committed to, record by record (`record_bytes`), little endian."""
        return self.codes.T.astype(f"<u{_number_bytes(self.sizes)}").tobytes()

    def counts(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Returns how many records each query of the workload counts, int64[queries]."""
        if math.prod(self.sizes) <= MAX_COUNTED_CELLS:
            return workload.record_counts(self.cells)
        listed = ListedWorkload(workload, RecordList(self.sizes, self.codes))
        return listed.counts(np.ones(len(self), dtype=np.int64))

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
