"""Compiles statements to a workload: linear queries over a schema's universe, for both sides of the wire.

>>> from equipoise import Attribute, Marginal, Schema, attribute
>>> schema = Schema((Attribute("sex", ("f", "m")), Attribute("smokes", ("no", "yes"))))
>>> workload = compile_workload([attribute("sex") == "f", Marginal(("smokes",))], schema)
>>> workload.counts(np.array([10, 20, 30, 40]))
array([30, 40, 60])
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.box_terms import Terms, Vectors
from equipoise.queries.compiled_workload import MAX_WEIGHT, CompiledWorkload, MarginalRange
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.predicate_compiler import Boxes, PredicateCompiler
from equipoise.queries.predicates import Marginal, Statement, Statistic
from equipoise.queries.schema import Schema

__all__ = ["CompiledWorkload", "compile_alone", "compile_workload", "concatenate"]

MAX_CELLS = 1 << 20  # of one marginal
MAX_QUERIES = 1 << 24  # of one workload
MAX_VECTOR_BITS = 1 << 31  # of all different vectors of a workload: 256 MB


def compile_workload(statements: Sequence[Statement], schema: Schema) -> CompiledWorkload:
    """Compiles statements against a schema.

    Raises `InvalidArgument` naming what is wrong, such as `statements[3].conditions[0].attribute`, and for
    statistics, which are no linear queries (`equipoise.queries.statistics`).
    """
    predicates = PredicateCompiler(schema)
    builder = _Builder(schema.sizes)
    for i, statement in enumerate(statements):
        builder.add(statement, predicates, f"statements[{i}]")
    return builder.build()


def compile_alone(statement: Statement, schema: Schema, path: str = "statement") -> CompiledWorkload:
    """Compiles one statement as a workload of its own. Raises `InvalidArgument` naming what is below `path`."""
    builder = _Builder(schema.sizes)
    builder.add(statement, PredicateCompiler(schema), path)
    return builder.build()


def concatenate(workloads: Sequence[CompiledWorkload]) -> CompiledWorkload:
    """The statements of several workloads over the same schema, in order, as one workload."""
    if not workloads or any(each.schema_sizes != workloads[0].schema_sizes for each in workloads):
        raise ValueError("there must be workloads, all over the same schema")
    vectors, renumberings = zip(
        *(_joined([each.vectors[axis] for each in workloads]) for axis in range(len(workloads[0].schema_sizes))),
        strict=True,
    )
    shifts = np.concatenate([[0], np.cumsum([each.query_count for each in workloads])])
    found: dict[Axes, list[Terms]] = {}
    marginals: list[MarginalRange] = []
    for i, each in enumerate(workloads):
        shift = int(shifts[i])
        marginals.extend(MarginalRange(shift + part.first_query, part.axes) for part in each.marginals)
        for group in each.groups:
            numbers = np.empty_like(group.vectors)
            for place, axis in enumerate(group.axes):
                numbers[:, place] = renumberings[axis][i][group.vectors[:, place]]
            found.setdefault(group.axes, []).append(
                Terms(group.axes, group.queries + shift, group.coefficients, numbers)
            )
    offsets = [each.statement_offsets[1:] + shift for each, shift in zip(workloads, shifts[:-1], strict=True)]
    return CompiledWorkload(
        workloads[0].schema_sizes,
        np.concatenate([np.zeros(1, dtype=np.int64), *offsets]),
        tuple(marginals),
        tuple(_one_group(groups) for groups in found.values()),
        vectors,
    )


class _Builder:
    """Collects boxes and marginals as lists, and makes arrays of them at the end."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._offsets = [0]
        self._marginals: list[MarginalRange] = []
        self._numbers: tuple[dict[int, int], ...] = tuple({} for _ in sizes)
        self._groups: dict[Axes, tuple[list[int], list[int], list[int]]] = {}
        self._vector_bits = 0

    def add(self, statement: Statement, predicates: PredicateCompiler, path: str) -> None:
        if isinstance(statement, Marginal):
            self.add_marginal(_marginal_axes(statement, predicates, path))
            return
        if isinstance(statement, Statistic):
            raise InvalidArgument(path, "is a statistic; only sessions of low_sensitivity answer those")
        boxes = predicates.compile(statement, path)
        if sum(map(abs, boxes.values())) > MAX_WEIGHT:
            raise InvalidArgument(path, "is too complex; split it into several statements")
        self.add_predicate(boxes)

    def add_marginal(self, axes: Axes) -> None:
        self._marginals.append(MarginalRange(self._offsets[-1], axes))
        self._advance(math.prod(self._sizes[axis] for axis in axes))

    def add_predicate(self, boxes: Boxes) -> None:
        query = self._offsets[-1]
        for box, coefficient in boxes.items():
            queries, coefficients, vectors = self._groups.setdefault(tuple([axis for axis, _ in box]), ([], [], []))
            queries.append(query)
            coefficients.append(coefficient)
            for axis, mask in box:
                numbers = self._numbers[axis]
                number = numbers.get(mask)
                if number is None:
                    number = numbers[mask] = len(numbers)
                    self._vector_bits += self._sizes[axis]
                vectors.append(number)
        if self._vector_bits > MAX_VECTOR_BITS:
            raise InvalidArgument("statements", "hold too many conditions; send them in several workloads")
        self._advance(1)

    def build(self) -> CompiledWorkload:
        vectors = []
        for size, numbers in zip(self._sizes, self._numbers, strict=True):
            width = (size + 7) // 8
            packed = b"".join(mask.to_bytes(width, "little") for mask in numbers)
            vectors.append(Vectors(size, np.frombuffer(packed, dtype=np.uint8).reshape(-1, width)))
        groups = tuple(
            Terms(
                axes,
                np.array(queries, dtype=np.int64),
                np.array(coefficients, dtype=np.int64),
                np.array(numbers, dtype=np.int32).reshape(len(queries), len(axes)),
            )
            for axes, (queries, coefficients, numbers) in self._groups.items()
        )
        offsets = np.array(self._offsets, dtype=np.int64)
        return CompiledWorkload(self._sizes, offsets, tuple(self._marginals), groups, tuple(vectors))

    def _advance(self, queries: int) -> None:
        self._offsets.append(self._offsets[-1] + queries)
        if self._offsets[-1] > MAX_QUERIES:
            raise InvalidArgument("statements", f"hold more than {MAX_QUERIES:,} queries together")


def _marginal_axes(statement: Marginal, predicates: PredicateCompiler, path: str) -> Axes:
    axes = predicates.axes(statement.attributes, f"{path}.attributes")
    cells = math.prod(predicates.schema.sizes[axis] for axis in axes)
    if cells > MAX_CELLS:
        raise InvalidArgument(f"{path}.attributes", f"make {cells:,} cells; at most {MAX_CELLS:,} are allowed")
    return axes


def _joined(parts: list[Vectors]) -> tuple[Vectors, list[NDArray[np.int64]]]:
    """The different vectors of all parts, and for each part the new numbers of its vectors."""
    stacked = np.concatenate([part.bits for part in parts])
    if not len(stacked):
        return parts[0], [np.zeros(0, dtype=np.int64) for _ in parts]
    bits, numbers = np.unique(stacked, axis=0, return_inverse=True)
    return Vectors(parts[0].size, bits), np.split(numbers.reshape(-1), np.cumsum([len(p.bits) for p in parts])[:-1])


def _one_group(groups: list[Terms]) -> Terms:
    return Terms(
        groups[0].axes,
        np.concatenate([group.queries for group in groups]),
        np.concatenate([group.coefficients for group in groups]),
        np.concatenate([group.vectors for group in groups]),
    )
