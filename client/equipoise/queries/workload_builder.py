"""Builds compiled workloads from statements, one by one or many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.axis_weights import AxisWeights
from equipoise.queries.box_terms import Terms, Vectors
from equipoise.queries.boxes import EVERYTHING, Boxes
from equipoise.queries.compiled_workload import MAX_WEIGHT, CompiledWorkload
from equipoise.queries.joined_workloads import one_group
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.marginals import MarginalRange
from equipoise.queries.restricted_tables import RestrictedTables

MAX_QUERIES = 1 << 24  # of one workload
MAX_VECTOR_BITS = 1 << 31  # of all different vectors of a workload: 256 MB


class WorkloadBuilder:
    """Collects the queries of statements over a universe of attributes of some `sizes`, for one workload."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        """A workload of no statements."""
        self._sizes = sizes
        self._queries = 0
        self._offsets = [0]
        self._sensitivities: list[int] = []
        self._marginals: list[MarginalRange] = []
        self._numbers: tuple[dict[int, int], ...] = tuple({} for _ in sizes)
        self._groups: dict[Axes, tuple[list[int], list[int], list[int]]] = {}
        self._restricted: dict[tuple[Axes, Axes, AxisWeights | None], tuple[list[int], list[int], list[int]]] = {}
        self._conjunctions: dict[Axes, list[tuple[NDArray[np.int64], NDArray[np.int32]]]] = {}
        self._vector_bits = 0

    def add_table(self, axes: Axes) -> None:
        """Adds a query for each cell of the table over `axes`, the last of which varies fastest."""
        self._marginals.append(MarginalRange(self._queries, axes))
        self._queries += math.prod(self._sizes[axis] for axis in axes)

    def add_restricted_table(self, axes: Axes, boxes: Boxes, path: str) -> None:
        """Adds the queries of `add_table`, each of them times a sum of boxes. Raises as `add_boxes`."""
        if boxes == EVERYTHING:
            self.add_table(axes)
            return
        self._add_restricted(axes, boxes, None, path)

    def add_weighted_table(self, axes: Axes, boxes: Boxes, weights: AxisWeights, path: str) -> None:
        """Adds the queries of `add_restricted_table`, each record counted by its weight; one query for no axes.

        Args:
            axes: of the cells, without that of the weights.
            boxes: of the records that count.
            weights: of each category of an axis.
            path: what errors call the statement.
        """
        inside: Boxes = {}
        for box, coefficient in boxes.items():
            masks = dict(box)
            masks[weights.axis] = masks.get(weights.axis, weights.counted) & weights.counted
            if masks[weights.axis]:
                key = tuple(sorted(masks.items()))
                inside[key] = inside.get(key, 0) + coefficient
        self._add_restricted(axes, inside, weights, path)

    def _add_restricted(self, axes: Axes, boxes: Boxes, weights: AxisWeights | None, path: str) -> None:
        check_weight(boxes, path)
        for box, coefficient in boxes.items():
            key = axes, tuple([axis for axis, _ in box]), weights
            first_queries, coefficients, vectors = self._restricted.setdefault(key, ([], [], []))
            first_queries.append(self._queries)
            coefficients.append(coefficient)
            vectors.extend(self._numbers_of(box))
        self._queries += math.prod(self._sizes[axis] for axis in axes)

    def add_boxes(self, boxes: Boxes, path: str) -> None:
        """Adds one query, a sum of boxes. Raises `InvalidArgument`, for `path` where the sum is too long."""
        check_weight(boxes, path)
        for box, coefficient in boxes.items():
            queries, coefficients, vectors = self._groups.setdefault(tuple([axis for axis, _ in box]), ([], [], []))
            queries.append(self._queries)
            coefficients.append(coefficient)
            vectors.extend(self._numbers_of(box))
        self._queries += 1

    def reserve(self, count: int, l1_sensitivity: int) -> int:
        """Makes so many statements of one query each, and returns the first query's number.

        The count of each moves by at most `l1_sensitivity`. What they ask is added by `add_conjunctions`. Raises
        `InvalidArgument` beyond the most queries.
        """
        first, self._queries = self._queries, self._queries + count
        if self._queries > MAX_QUERIES:
            raise InvalidArgument("statements", f"hold more than {MAX_QUERIES:,} queries together")
        self._offsets.extend(range(first + 1, self._queries + 1))
        self._sensitivities.extend([l1_sensitivity] * count)
        return first

    def vector_number(self, axis: int, mask: int) -> int:
        """Returns the number of a vector over an axis, among all of the workload's. Raises `InvalidArgument`."""
        return self._numbers_of(((axis, mask),))[0]

    def add_conjunctions(self, axes: Axes, queries: NDArray[np.int64], vectors: NDArray[np.int32]) -> None:
        """Makes each of some queries a product of vectors over the same axes.

        Args:
            axes: ascending.
            queries: int64[n], numbers of queries.
            vectors: int32[n, axes], numbers of these axes' vectors.
        """
        self._conjunctions.setdefault(axes, []).append((queries, vectors))

    def end_statement(self, l1_sensitivity: int) -> None:
        """Makes one statement of what was added since the last one; its counts move by `l1_sensitivity` at most."""
        if self._queries > MAX_QUERIES:
            raise InvalidArgument("statements", f"hold more than {MAX_QUERIES:,} queries together")
        self._offsets.append(self._queries)
        self._sensitivities.append(l1_sensitivity)

    def build(self) -> CompiledWorkload:
        """Returns all statements as one workload."""
        vectors = []
        for size, numbers in zip(self._sizes, self._numbers, strict=True):
            width = (size + 7) // 8
            packed = b"".join(mask.to_bytes(width, "little") for mask in numbers)
            vectors.append(Vectors(size, np.frombuffer(packed, dtype=np.uint8).reshape(-1, width)))
        groups = tuple(self._group(axes) for axes in {**self._groups, **self._conjunctions})
        return CompiledWorkload(
            self._sizes,
            np.array(self._offsets, dtype=np.int64),
            np.array(self._sensitivities, dtype=np.int64),
            tuple(self._marginals),
            groups,
            tuple(vectors),
            tuple(
                RestrictedTables(
                    self._sizes,
                    axes,
                    box_axes,
                    np.array(queries, dtype=np.int64),
                    np.array(coefficients, dtype=np.int64),
                    np.array(numbers, dtype=np.int32).reshape(len(queries), len(box_axes)),
                    weights,
                )
                for (axes, box_axes, weights), (queries, coefficients, numbers) in self._restricted.items()
            ),
        )

    def _group(self, axes: Axes) -> Terms:
        """All terms over some axes, by ascending queries."""
        queries, coefficients, numbers = self._groups.get(axes, ([], [], []))
        group = Terms(
            axes,
            np.array(queries, dtype=np.int64),
            np.array(coefficients, dtype=np.int64),
            np.array(numbers, dtype=np.int32).reshape(len(queries), len(axes)),
        )
        added = self._conjunctions.get(axes)
        if not added:
            return group
        more = [Terms(axes, each, np.ones(len(each), dtype=np.int64), vectors) for each, vectors in added]
        joined = one_group([group, *more])
        order = np.argsort(joined.queries, kind="stable")
        return Terms(axes, joined.queries[order], joined.coefficients[order], joined.vectors[order])

    def _numbers_of(self, box: Sequence[tuple[int, int]]) -> list[int]:
        """Returns the number of each of the box's vectors, among all vectors over its axis."""
        statement_numbers = []
        for axis, mask in box:
            numbers = self._numbers[axis]
            number = numbers.get(mask)
            if number is None:
                number = numbers[mask] = len(numbers)
                self._vector_bits += self._sizes[axis]
                if self._vector_bits > MAX_VECTOR_BITS:
                    raise InvalidArgument("statements", "hold too many conditions; send them in several workloads")
            statement_numbers.append(number)
        return statement_numbers


def check_weight(boxes: Boxes, path: str) -> None:
    """Raises `InvalidArgument` where sums over the boxes might not be exact."""
    if sum(map(abs, boxes.values())) > MAX_WEIGHT:
        raise InvalidArgument(path, "is too complex; split it into several statements")
