"""A weighted sum of a few queries that grows, read at single records instead of at all of a list.

What `WeighedQueries.transpose_sparse` gives for every record, this gives for the records one asks about: its cost
depends on how many queries were added and on how many records are read, not on how many there are.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.restricted_tables import RestrictedTables
from equipoise.queries.weighed_queries import WeighedQueries

BLOCK = 1 << 21  # terms times records that are held at once, a byte each

_Part = tuple[NDArray[np.int64], NDArray[np.int64]]


class Combination:
    """The function `sum_j coefficients[j] q_j(x)` of records x; queries are added to it as time goes by."""

    def __init__(self, queries: WeighedQueries) -> None:
        """The sum of none of `queries`."""
        self._queries, self._workload = queries, queries.compiled
        self.clear()

    def clear(self) -> None:
        """Makes it the sum of no queries again."""
        axes = range(len(self._workload.schema_sizes))
        self._terms = 0
        self._coefficients: list[NDArray[np.int64]] = []
        # For each axis the terms that constrain it, with the number of the vector that says how, or the category.
        self._by_vector: list[list[_Part]] = [[] for _ in axes]
        self._by_category: list[list[_Part]] = [[] for _ in axes]

    def add(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> None:
        """Adds queries, int64[j], with their coefficients, int64[j]; repeated queries add up."""
        if queries.shape != coefficients.shape or queries.ndim != 1:
            raise ValueError("there must be one coefficient for each query")
        if len(queries) and not 0 <= int(queries.min()) <= int(queries.max()) < self._workload.query_count:
            raise ValueError(f"queries must be at least 0 and below {self._workload.query_count:,}")
        self._add_terms(queries, coefficients)
        self._add_marginal_cells(queries, coefficients)
        for each in self._workload.restricted:
            self._add_restricted_cells(each, queries, coefficients)

    def at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the sum at some places of the list: int64[places], exact. The caller keeps it within int64."""
        coefficients = _joined(self._coefficients)
        result = np.zeros(len(places), dtype=np.int64)
        by_vector = [_joined_parts(parts) for parts in self._by_vector]
        by_category = [_joined_parts(parts) for parts in self._by_category]
        step = max(1, BLOCK // max(1, self._terms))
        for start in range(0, len(places), step):
            some = slice(start, start + step)
            categories = self._queries.categories(places[some])
            inside = np.ones((self._terms, len(categories[0])), dtype=np.uint8)
            for axis, each in enumerate(categories):
                terms, numbers = by_vector[axis]
                if len(terms):
                    inside[terms] &= self._workload.vectors[axis].at(numbers, each)
                terms, wanted = by_category[axis]
                if len(terms):
                    inside[terms] &= wanted[:, None] == each
            result[some] = coefficients @ inside
        return result

    def _add_terms(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> None:
        order, starts = self._terms_of_queries
        lengths = starts[queries + 1] - starts[queries]
        # The terms of each query, one after another.
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        terms = order[np.repeat(starts[queries], lengths) + within]
        numbers = np.searchsorted(self._first_terms, terms, side="right") - 1
        of_terms = np.repeat(coefficients, lengths)
        for number in np.unique(numbers).tolist():
            group = self._workload.groups[number]
            chosen = np.flatnonzero(numbers == number)
            rows = terms[chosen] - self._first_terms[number]
            places = self._new_terms(of_terms[chosen] * group.coefficients[rows])
            for place, axis in enumerate(group.axes):
                self._by_vector[axis].append((places, group.vectors[rows, place].astype(np.int64)))

    def _add_marginal_cells(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> None:
        firsts, lasts = self._marginal_ranges
        numbers = np.searchsorted(firsts, queries, side="right") - 1
        inside = (numbers >= 0) & (queries < lasts[numbers]) if len(firsts) else np.zeros(len(queries), dtype=bool)
        for number in np.unique(numbers[inside]).tolist():
            marginal = self._workload.marginals[number]
            chosen = np.flatnonzero(inside & (numbers == number))
            places = self._new_terms(coefficients[chosen])
            shape = tuple(self._workload.schema_sizes[axis] for axis in marginal.axes)
            categories = np.unravel_index(queries[chosen] - marginal.first_query, shape)
            for axis, each in zip(marginal.axes, categories, strict=True):
                self._by_category[axis].append((places, each))

    def _add_restricted_cells(
        self, group: RestrictedTables, queries: NDArray[np.int64], coefficients: NDArray[np.int64]
    ) -> None:
        tables, which = group.tables_of(queries)
        places = self._new_terms(coefficients[which] * group.coefficients[tables])
        categories = np.unravel_index(queries[which] - group.first_queries[tables], group.shape)
        for axis, each in zip(group.axes, categories, strict=True):
            self._by_category[axis].append((places, each))
        for place, axis in enumerate(group.box_axes):
            self._by_vector[axis].append((places, group.vectors[tables, place].astype(np.int64)))

    def _new_terms(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        places = np.arange(self._terms, self._terms + len(coefficients))
        self._coefficients.append(coefficients)
        self._terms += len(coefficients)
        return places

    @cached_property
    def _first_terms(self) -> NDArray[np.int64]:
        """The number of each group's first term, where terms are numbered through all groups."""
        return np.cumsum([0, *(len(group.queries) for group in self._workload.groups)])[:-1]

    @cached_property
    def _terms_of_queries(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All terms by ascending query, and where in them each query's terms begin: int64[k + 1]."""
        queries = np.concatenate([np.zeros(0, np.int64), *(group.queries for group in self._workload.groups)])
        counts = np.bincount(queries, minlength=self._workload.query_count)
        return np.argsort(queries, kind="stable").astype(np.int32), np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def _marginal_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first query of each marginal, ascending, and the query after its last one."""
        sizes = self._workload.schema_sizes
        firsts = np.array([marginal.first_query for marginal in self._workload.marginals], dtype=np.int64)
        counts = [int(np.prod([sizes[axis] for axis in each.axes])) for each in self._workload.marginals]
        return firsts, firsts + np.array(counts, dtype=np.int64)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Returns all parts as one array, which then stands in their place."""
    parts[:] = [np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)]
    return parts[0]


def _joined_parts(parts: list[_Part]) -> _Part:
    if parts:
        parts[:] = [(np.concatenate([terms for terms, _ in parts]), np.concatenate([each for _, each in parts]))]
        return parts[0]
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
