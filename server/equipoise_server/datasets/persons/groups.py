"""What a source tells of the persons in a table: as much as dealing needs, and no more ids than that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument

BLOCK = 1 << 18  # groups that a source gives at once, and those of the last person


@dataclass(frozen=True)
class PersonColumn:
    """The column of ids, and who is *settled*: the records of such persons follow from their rows without their id.

    `most_rows`: persons with at most so many rows; None: persons whose rows are all in the same categories.
    """

    name: str
    most_rows: int | None

    def absent(self, columns: int = 0) -> InvalidArgument:
        """Return what is said where the table has no such column, or several."""
        problem = f"{columns} columns" if columns else "no column"
        return InvalidArgument("person", f"the table has {problem} named {self.name!r}")

    def unfit(self, kind: object) -> InvalidArgument:
        """Return what is said of a column whose values can be written as text in several ways."""
        problem = f"is of type {kind}; ids must be text, whole numbers or UUIDs: register a view that makes such"
        return InvalidArgument("person", f"column {self.name!r} {problem}")


@dataclass(frozen=True, eq=False)
class Settled:
    """The rows of all settled persons together, as groups of equal rows.

    `packed`: the groups' words (`packed_codes`), int64[groups] each. `rows`: of each group; `persons`: how many
    persons have rows in it. `count`: how many settled persons there are. `nameless`: rows of the table with no id.
    """

    packed: Sequence[NDArray[np.int64]]
    rows: NDArray[np.int64]
    persons: NDArray[np.int64]
    count: int
    nameless: int


@dataclass(frozen=True, eq=False)
class Unsettled:
    """All rows of some persons that are not settled.

    `ids`: whose each group is, as text; those of one person stand together. `packed`, `rows`: as in `Settled`.
    """

    ids: Sequence[str]
    packed: Sequence[NDArray[np.int64]]
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowsAPerson:
    """How many persons have how many rows, which is private; both int64, ascending rows. `nameless`: as above."""

    rows: NDArray[np.int64]
    persons: NDArray[np.int64]
    nameless: int

    @classmethod
    def of(cls, found: Iterable[tuple[int, int, int | None]]) -> RowsAPerson:
        """Return what an engine found: a number of rows, the persons with so many, and such rows without an id."""
        numbers = [(int(rows), int(persons), int(nameless or 0)) for rows, persons, nameless in found]
        kept = np.array([each[:2] for each in numbers if each[1]], dtype=np.int64).reshape(-1, 2)
        return cls(kept[:, 0], kept[:, 1], sum(nameless for *_, nameless in numbers))


def whole_persons(fetched: Iterable[Sequence[Sequence[object]]]) -> Iterator[Unsettled]:
    """Yield blocks of whole persons from lists of rows: an id, words and a number of rows, person by person."""
    pending: list[Sequence[object]] = []
    for rows in fetched:
        pending.extend(rows)
        begin = len(pending)  # of the last person, of whom more may follow
        while begin and pending[begin - 1][0] == pending[-1][0]:
            begin -= 1
        if begin:
            yield _block(pending[:begin])
            pending = pending[begin:]
    if pending:
        yield _block(pending)


def _block(rows: Sequence[Sequence[object]]) -> Unsettled:
    *packed, counts = np.array([tuple(row)[1:] for row in rows], dtype=np.int64).T
    return Unsettled([str(row[0]) for row in rows], packed, counts)
