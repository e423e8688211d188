"""What a statement of a grant asks, however it is spelled: which counts, and of which table they are sums.

Two statements have the same meaning where they ask for the same counts: the order of a marginal's attributes, a
condition that is written otherwise or as the opposite of its opposite, and one that everybody satisfies make no
difference. The number of all records is public, so a condition and its opposite have one meaning, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes

MAX_CELLS = 1 << 16  # of the table whose sums a meaning is; a statement about a larger one means what it says
MAX_AXES = 6


@dataclass(frozen=True, eq=False)
class Told:
    """Counts as sums of the cells of one table: those of a cell along `axes`, where the mask along the rest is 1.

    Attributes:
        sizes: of all attributes of the schema.
        axes: along which every category has a count of its own, ascending.
        rest: the other axes of the table, ascending; none of a whole marginal.
        mask: int64, 0 or 1, one dimension for each of `axes` and then for each of `rest`; without a rest all is 1.
    """

    sizes: tuple[int, ...]
    axes: Axes
    rest: Axes
    mask: NDArray[np.int64]

    @cached_property
    def table(self) -> Axes:
        """The axes of the table that tells all counts, ascending."""
        return tuple(sorted((*self.axes, *self.rest)))

    @property
    def whole(self) -> bool:
        """Whether it is a marginal of all records."""
        return bool(self.axes) and not self.rest and bool(self.mask.all())

    @cached_property
    def squares(self) -> tuple[tuple[Axes, ...], list[tuple[int, ...]], NDArray[np.intp]]:
        """What variances depend on: for every set U of `rest`, the squares of the mask's sums down to U, summed.

        Returns:
            The sets; the different rows of their numbers; and for every count the number of its row.
        """
        if self.whole:  # each count is one cell
            return ((),), [(1,)], np.zeros(self.mask.size, dtype=np.intp)
        sets = tuple(subsets(self.rest))
        first = len(self.axes)
        sums = []
        for kept in sets:
            away = tuple(first + place for place, axis in enumerate(self.rest) if axis not in kept)
            inner = tuple(range(first, first + len(kept)))
            sums.append((self.mask.sum(axis=away) ** 2).sum(axis=inner).reshape(-1))
        rows, which = np.unique(np.stack(sums, axis=1), axis=0, return_inverse=True)
        return sets, [tuple(row) for row in rows.tolist()], which.reshape(-1)


@dataclass(frozen=True, eq=False)
class Meaning:
    """What one statement asks.

    Attributes:
        key: 32 bytes, which statements of the same meaning share.
        moved: by how much its counts move together where one record is replaced: the square of the L2 norm.
        counts: how many it has.
        order: of a table, where each axis of the key's table stands in the statement; None otherwise.
        opposite: whether the key's counts are those of the records that do not satisfy the condition.
        told: its counts as sums of a table's cells, in the key's order; None where they are not taken apart.
        told_opposite: whether `told` is about the records that do not satisfy the condition.
    """

    key: bytes
    moved: int
    counts: int
    order: tuple[int, ...] | None = None
    opposite: bool = False
    told: Told | None = None
    told_opposite: bool = False


def places_of(meaning: Meaning) -> NDArray[np.intp]:
    """Returns for each count of a statement its place in the order of the meaning's key: int64[k]."""
    places = np.arange(meaning.counts)
    if meaning.order is None or meaning.told is None:
        return places
    shape = meaning.told.mask.shape[: len(meaning.order)]
    return places.reshape(shape).transpose(meaning.order).reshape(-1)


def subsets(axes: Axes) -> Iterator[Axes]:
    """Yields all subsets, small ones first.

    Args:
        axes: ascending.
    """
    return itertools.chain.from_iterable(itertools.combinations(axes, count) for count in range(len(axes) + 1))


def meaning_of(asked: CompiledWorkload, question: bytes) -> Meaning:
    """Returns what a statement asks.

    Args:
        asked: the statement, compiled alone.
        question: its bytes, which say what it asks where its counts are not taken apart: those of more than
            65,536 cells or of more than 6 attributes together, and those that add up values.
    """
    moved, counts = asked.statement_sensitivity(0), asked.query_count
    plain = Meaning(_key("statement", question), moved, counts)
    if asked.weighted.any():
        return plain
    if asked.marginals:
        said = _telling(asked.marginals[0].axes, asked.schema_sizes)
    else:
        said = _telling(asked.restricted[0].axes, asked.schema_sizes) if asked.restricted else ()
    table = tuple(sorted(said)) if asked.marginals else asked.statement_tables()[0]
    if len(table) > MAX_AXES or math.prod(asked.schema_sizes[axis] for axis in table) > MAX_CELLS:
        return plain
    told = _reduced(asked, tuple(sorted(said)), table)
    if told.axes:
        order = tuple(told.axes.index(axis) for axis in said)
        return Meaning(_key("table", *_key_of(told)), moved, counts, order, told=told)
    few = 2 * int(told.mask.sum()) <= told.mask.size
    least = told if few else Told(told.sizes, (), told.rest, 1 - told.mask)
    first = bool(least.mask.size) and 2 * int(least.mask.sum()) == least.mask.size and bool(least.mask.flat[0])
    named = Told(told.sizes, (), told.rest, 1 - least.mask) if first else least
    return Meaning(
        _key("condition", *_key_of(named)),
        moved,
        counts,
        opposite=few == first,
        told=least,
        told_opposite=not few,
    )


def _reduced(asked: CompiledWorkload, axes: Axes, table: Axes) -> Told:
    """Returns the sums that a statement's counts are, over no more axes than they depend on."""
    rest = tuple(axis for axis in table if axis not in axes)
    if asked.marginals:
        mask = np.ones([asked.schema_sizes[axis] for axis in axes], dtype=np.int64)
    else:
        mask = _indicator(asked, table).transpose([table.index(axis) for axis in (*axes, *rest)])
    for axis in rest:
        place = len(axes) + rest.index(axis)
        one = mask.take([0], axis=place)
        if (mask == one).all():
            mask, rest = one.squeeze(place), tuple(other for other in rest if other != axis)
    return Told(asked.schema_sizes, axes, rest, np.ascontiguousarray(mask))


def _indicator(asked: CompiledWorkload, table: Axes) -> NDArray[np.int64]:
    """Returns which cells of a table satisfy a statement's condition: int64, 0 or 1, a dimension for each axis."""
    sizes = asked.schema_sizes
    mask = np.zeros([sizes[axis] for axis in table], dtype=np.int64)
    for group in asked.groups:
        boxes = group.table(np.arange(len(group.queries)), group.coefficients, asked.vectors)
        mask += _spread(boxes, group.axes, table, sizes)
    for tables in asked.restricted:
        for vectors, coefficient in zip(tables.vectors, tables.coefficients.tolist(), strict=True):
            box = np.full((), coefficient, dtype=np.int64)
            for axis, number in zip(tables.box_axes, vectors, strict=True):
                box = box[..., None] * asked.vectors[axis].rows(np.array([number], dtype=np.int32))[0].astype(
                    np.int64
                )
            mask += _spread(box, tables.box_axes, table, sizes)
    return mask


def _spread(box: NDArray[np.int64], axes: Axes, table: Axes, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Returns a table over some axes with a dimension for each axis of a larger one, of size 1 for the others."""
    return box.reshape([sizes[axis] if axis in axes else 1 for axis in table])


def _telling(axes: Axes, sizes: tuple[int, ...]) -> Axes:
    """Axes of one category tell nothing apart."""
    return tuple(axis for axis in axes if sizes[axis] > 1)


def _key_of(told: Told) -> tuple[bytes, ...]:
    """Returns the bytes that say which sums these are."""
    mask = b"" if told.whole else np.packbits(told.mask.reshape(-1).astype(np.uint8)).tobytes()
    # Hashed, so written in full: a number of numpy's would be written otherwise by each version of it.
    axes, rest = tuple(map(int, told.axes)), tuple(map(int, told.rest))
    return f"({axes}, {rest})".encode(), mask


def _key(kind: str, *parts: bytes) -> bytes:
    """Returns the hash of a kind and of parts, each with its length, so that no two lists of parts share one."""
    digest = sha256(kind.encode())
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.digest()
