"""A compiled workload: linear queries that can be applied to a histogram, to records, and transposed.

Its operations are over the whole universe, in which every possible record has a place; over any other list of
records they are those of `listed_workload`.

The matrix of all queries over the universe is never built. A predicate is a signed sum of boxes (`box_terms`), a
marginal is summed and spread along its axes, and one of some records only is a signed sum of such tables in boxes
(`restricted_tables`). All results are exact integers, the same on every machine.

Formal guarantees: with q(x) in {0, 1} the value of query q at universe cell x,
`counts(h)[q] = sum_x h[x] q(x)`, `record_counts(cells)[q] = sum_b q(cells[b])`, and
`transpose(c)[x] = sum_q c[q] q(x)`, without rounding. Weighted queries have q(x) in [0, 1], counts that are rounded
down to whole records (`axis_weights`), and an exact transpose in units of 2^-16 alone (`unit_transpose`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import WHOLE, check_unweighted, in_units, whole_sums
from equipoise.queries.box_terms import EXACT, Terms, Vectors, check_coefficients, check_some, check_total
from equipoise.queries.marginal_tables import Axes, AxisSets, Table
from equipoise.queries.marginals import MarginalRange, Marginals
from equipoise.queries.restricted_tables import RestrictedTables, weighted_queries
from equipoise.queries.universe_sums import (
    combine_over_universe,
    combine_some_over_universe,
    sum_over_universe,
)

MAX_WEIGHT = 256  # sum of |coefficients| of one predicate's boxes
MAX_COEFFICIENTS = EXACT // MAX_WEIGHT  # 2^45: keeps every partial sum of `transpose` within 2^53
WORD = 64  # records that `record_counts` treats at once
MANY_RECORDS = 32 * WORD  # from here on their histogram is cheaper
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CompiledWorkload:
    """Statements compiled against a schema; made by `compile_workload` and `concatenate`.

    Query numbers run through the statements in order; those of statement i are `statement_offsets[i]` to
    `statement_offsets[i + 1]`. `statement_sensitivities`, int64[statements]: by how much a statement's counts move
    together, at most, when one record is replaced. Universe cells number records, the last attribute varying
    fastest. `digest`: the SHA-256 of the submitted bytes, to which noise is bound; empty where there are none.
    """

    schema_sizes: tuple[int, ...]
    statement_offsets: NDArray[np.int64]
    statement_sensitivities: NDArray[np.int64]
    marginals: tuple[MarginalRange, ...]
    groups: tuple[Terms, ...]
    vectors: tuple[Vectors, ...]
    restricted: tuple[RestrictedTables, ...] = ()
    digest: bytes = b""

    @property
    def statement_count(self) -> int:
        """The number of statements."""
        return len(self.statement_offsets) - 1

    @property
    def query_count(self) -> int:
        """The number of linear queries, k."""
        return int(self.statement_offsets[-1])

    @property
    def compiled(self) -> CompiledWorkload:
        """Itself, as what works over the whole universe."""
        return self

    @property
    def size(self) -> int:
        """The number of records that can exist, `|X|`."""
        return math.prod(self.schema_sizes)

    def categories(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Returns the categories of some universe cells: int64[places] for each attribute."""
        return tuple(np.asarray(each, dtype=np.int64) for each in np.unravel_index(places, self.schema_sizes))

    @property
    def empty(self) -> bool:
        """Whether there is no statement."""
        return self.statement_count == 0

    @cached_property
    def weighted(self) -> NDArray[np.bool_]:
        """Which queries count records by weights, bool[k]."""
        return weighted_queries(self.restricted, self.query_count)

    @property
    def weighted_statements(self) -> set[int]:
        """Which statements have weighted queries."""
        return set((np.searchsorted(self.statement_offsets, np.flatnonzero(self.weighted), "right") - 1).tolist())

    @cached_property
    def marginal_queries(self) -> Marginals:
        """Which queries are cells of marginals."""
        return Marginals(self.schema_sizes, self.marginals)

    def counts(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Applies every query to an `int64[|X|]` histogram: int64[k], sums over the records.

        Raises `ValueError` if the histogram has another length, or absolute values that sum to more than 2^53.
        """
        if histogram.shape != (self.size,):
            raise ValueError(f"the histogram must have {self.size} cells")
        check_total(histogram, EXACT)
        own = histogram.astype(np.int64, copy=False)
        return whole_sums(lambda cells: sum_over_universe(self, cells), own, self.weighted)

    def expectations(self, distribution: NDArray[np.float64]) -> NDArray[np.float64]:
        """Applies every query to a `float64[|X|]` distribution: float64[k], to the rounding of its sums.

        A function of private outputs or public things only: floating sums differ a little between machines.
        """
        sums = sum_over_universe(self, distribution.astype(np.float64, copy=False))
        return np.where(self.weighted, sums / WHOLE, sums)

    def record_counts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums every query over records given as universe cells, int64[B], maybe repeated: int64[k]."""
        if len(cells) and not 0 <= int(cells.min()) <= int(cells.max()) < self.size:
            raise ValueError(f"cells must be at least 0 and below {self.size:,}")
        if len(cells) > MANY_RECORDS and self.size <= EXACT >> 20:
            return self.counts(np.bincount(cells, minlength=self.size).astype(np.int64, copy=False))
        result = np.zeros(self.query_count, dtype=np.int64)
        categories = self.categories(cells) if len(cells) else ()
        for start in range(0, len(cells), WORD):
            some = slice(start, start + WORD)
            words = {axis: each.words(categories[axis][some]) for axis, each in enumerate(self.vectors)}
            everyone = np.uint64((1 << len(cells[some])) - 1)
            for group in self.groups:
                counted = np.bitwise_count(group.selected(words) & everyone) * group.coefficients
                np.add.at(result, group.queries, counted)
        if len(cells):
            self.marginal_queries.add_record_counts(np.array(categories), result)
            for each in self.restricted:
                each.add_record_counts(np.array(categories), self.vectors, result)
        return np.where(self.weighted, result // WHOLE, result)

    def transpose(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the combination of all queries with int64[k] coefficients, over the universe: `int64[|X|]`.

        Exact; raises `ValueError` if they sum to more than 2^45 in absolute value, or a query is weighted.
        """
        check_unweighted(self.weighted)
        check_coefficients(coefficients, self.query_count, MAX_COEFFICIENTS)
        return self._spread(combine_over_universe, coefficients)

    def unit_transpose(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        """`transpose` in units of 2^-16, of weighted queries too; coefficients may sum to 2^29 at most."""
        check_coefficients(coefficients, self.query_count, MAX_COEFFICIENTS // WHOLE)
        return self._spread(combine_over_universe, in_units(coefficients, self.weighted))

    def combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """`transpose` of float64[k] coefficients: `float64[|X|]`, to the rounding of its sums."""
        return self._spread(combine_over_universe, np.where(self.weighted, coefficients / WHOLE, coefficients))

    def transpose_sparse(self, queries: Whole, coefficients: Whole) -> Whole:
        """`transpose` where only some queries, int64[j], have coefficients, int64[j]; repeated queries add up."""
        check_some(queries, coefficients, self.query_count, MAX_COEFFICIENTS)
        check_unweighted(self.weighted[queries])
        return self._spread(combine_some_over_universe, queries, coefficients)

    def unit_transpose_sparse(self, queries: Whole, coefficients: Whole) -> Whole:
        """`unit_transpose` where only some queries, int64[j], have coefficients, int64[j]; repeated ones add up."""
        check_some(queries, coefficients, self.query_count, MAX_COEFFICIENTS // WHOLE)
        return self._spread(combine_some_over_universe, queries, in_units(coefficients, self.weighted[queries]))

    def _spread(self, combine: Callable[..., None], *parts: Table) -> Table:
        universe = np.zeros(self.size, dtype=parts[-1].dtype)
        combine(self, *parts, universe)
        return universe

    def statement_sensitivity(self, statement: int) -> int:
        """Returns how much a statement's counts can move, in sum, when a record is replaced: its kind says it."""
        if 0 <= statement < self.statement_count:
            return int(self.statement_sensitivities[statement])
        raise ValueError(f"statement must be at least 0 and below {self.statement_count:,}, not {statement}")

    @property
    def l1_sensitivity(self) -> int:
        """How much all counts together can move, in sum, when one record is replaced."""
        return int(self.statement_sensitivities.sum())

    def statement_tables(self) -> list[Axes]:
        """For each statement the axes, ascending, of the table that all of its queries are linear functions of.

        Attributes of a single category, which tell nothing apart, are left out.
        """
        return self._axis_sets().of(self.statement_offsets[:-1])

    def _axis_sets(self) -> AxisSets:
        found = AxisSets(self.query_count, self.schema_sizes)
        for group in self.groups:
            found.add(group.queries, group.axes)
        for marginal in self.marginals:
            found.add(marginal.first_query, marginal.axes)
        for tables in self.restricted:
            found.add(tables.first_queries, tables.table_axes)
        return found

    @cached_property
    def ways(self) -> int:
        """The most attributes that one statement is about together, as a share declares them; at least 1."""
        return self._axis_sets().largest(self.statement_offsets[:-1]) or 1

    def covered(self) -> NDArray[np.int64]:
        """Return for how many records of the universe each query is above 0: int64[k].

        Exact; raises `ValueError` for universes of more than 2^53 records.
        """
        if self.size > EXACT:
            raise ValueError("a universe of more than 2^53 records is too large to count in")
        result = np.zeros(self.query_count, dtype=np.int64)
        selected = [each.covered() for each in self.vectors]
        for group in self.groups:
            np.add.at(result, group.queries, group.covered(selected, self.schema_sizes))
        for span in map(self.marginal_queries.queries_of, self.marginals):
            result[span] = self.size // (span.stop - span.start)
        for each in self.restricted:
            each.add_covered(selected, self.vectors, result)
        return result

    def supports(self) -> NDArray[np.int64]:
        """Returns the records of the universe that each query covers or leaves out, whichever are fewer: int64[k].

        So a query and its complement have the same support. The rest is as `covered`.
        """
        covered = self.covered()
        return np.minimum(covered, self.size - covered)

    @cached_property
    def support(self) -> int:
        """The largest support of any query; 0 without queries, and in universes of more than 2^53 records."""
        return 0 if self.size > EXACT else int(self.supports().max(initial=0))

    def sensitivities(self) -> tuple[float, float, float]:
        """Upper bounds on how much all counts together can move when one record is replaced: L1, L2, Linf norms.

        Every query moves by at most 1, so L2 is the root of L1, here rounded up.
        """
        l1 = self.l1_sensitivity
        return (float(l1), math.nextafter(math.sqrt(l1), math.inf), 1.0) if l1 else (0.0, 0.0, 0.0)
