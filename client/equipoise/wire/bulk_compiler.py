"""Compiles a workload's bytes without an object for each statement, where most of them are conjunctions.

A large workload asks for very many conjunctions of conditions on different attributes, of which there are few: as
many as a schema has categories and intervals. So where the conditions of all statements lie is found for many
statements at once, each different condition is read and compiled once, by those who read and compile any other, and
what is left are numbers. Whatever is encoded in another way, or is something else, is read and compiled one by one.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import Among, Interval
from equipoise.queries.schema import Schema
from equipoise.queries.statements.condition import CONDITION
from equipoise.queries.workload_builder import WorkloadBuilder
from equipoise.queries.workload_compiler import add_statement
from equipoise.wire.statements import read_statement
from equipoise.wire.workloads import checked_outline

# The tags of Statement.predicate, Predicate.all and Predicate.All.conditions, each before a length.
_PREDICATE, _ALL, _CONDITION = 1 << 3 | 2, 3 << 3 | 2, 1 << 3 | 2
_SHORT = 128  # lengths below this have one byte
_MAX_CONDITIONS = 8
_AT_ONCE = 1 << 16  # statements: their conditions' bytes are held together
_WORD = 8  # bytes

Slab = tuple[int, int]
"""A condition on one attribute: its axis, and the mask of its categories."""


def compile_workload_bytes(data: bytes, schema: Schema, max_statements: int | None = None) -> CompiledWorkload:
    """Compiles a serialized Workload, as `compile_workload` compiles what `workload_from_bytes` reads of it.

    Args:
        data: The workload's bytes.
        schema: Of the table.
        max_statements: How many are allowed; None for any number.

    Returns:
        A workload with the same queries in the same order.

    Raises:
        InvalidArgument: As those two functions do, naming the first statement that is wrong.
        BudgetExhausted: There are more than `max_statements`.
    """
    outlined = checked_outline(data, max_statements)
    spans = np.array([outlined.starts, outlined.stops], dtype=np.int64).T
    compiler, workload = PredicateCompiler(schema), WorkloadBuilder(schema.sizes)
    bulk = _Bulk(data, compiler)
    for start in range(0, len(spans), _AT_ONCE):
        part = spans[start : start + _AT_ONCE]
        rows, conditions = bulk.conjunctions(part)
        compiler.count_products(int((conditions >= 0).sum()))
        first = np.zeros(len(part), dtype=np.int64)  # query of each conjunction
        done = 0
        single = np.ones(len(part), dtype=np.bool_)
        single[rows] = False
        for other in np.flatnonzero(single).tolist():
            first[done:other] = workload.reserve(other - done, CONDITION.l1_sensitivity) + np.arange(other - done)
            path = f"statements[{start + other}]"
            begin, end = part[other].tolist()
            add_statement(read_statement(data[begin:end], path), workload, compiler, path)
            done = other + 1
        first[done:] = workload.reserve(len(part) - done, CONDITION.l1_sensitivity) + np.arange(len(part) - done)
        bulk.add(first[rows], conditions, workload)
    return workload.build()


@dataclass
class _Found:
    """Conditions of statements: of which statement each is, and where its bytes lie."""

    statement: NDArray[np.int64]
    place: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]


class _Bulk:
    """The different conditions of a workload, numbered in the order in which they were found."""

    def __init__(self, data: bytes, compiler: PredicateCompiler) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        # The eight bytes that begin at each place, the first of them the lowest; beyond the end there are zeros.
        self._words = np.ndarray(len(data) + 1, dtype="<u8", buffer=data + bytes(_WORD), strides=(1,))
        self._compiler = compiler
        self._known: dict[bytes, int] = {}
        self._slabs: list[Slab | None] = []
        self._keys = _key_words()

    def conjunctions(self, spans: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Finds the statements, int64[n, 2] of where each begins and ends, that can be compiled together.

        Returns their rows, ascending, and their conditions' numbers, int64[rows, conditions], each row by ascending
        axes and filled up with -1.
        """
        simple, found = self._layout(spans)
        numbers = np.full((len(spans), _MAX_CONDITIONS), -1, dtype=np.int64)
        numbers[found.statement, found.place] = self._numbered(found)
        axes = np.array([-1 if slab is None else slab[0] for slab in self._slabs] or [-1], dtype=np.int64)
        last = np.iinfo(np.int64).max
        there = numbers >= 0
        axis_of = np.where(there, axes[numbers], last)
        order = np.argsort(axis_of, axis=1, kind="stable")
        axis_of, numbers = (np.take_along_axis(each, order, axis=1) for each in (axis_of, numbers))
        different = ((np.diff(axis_of, axis=1) > 0) | (axis_of[:, 1:] == last)).all(axis=1)
        rows = np.flatnonzero(simple & (axis_of[:, 0] >= 0) & (axis_of[:, 0] < last) & different)
        return rows, numbers[rows]

    def add(self, queries: NDArray[np.int64], conditions: NDArray[np.int64], workload: WorkloadBuilder) -> None:
        """Adds the conjunctions that `conjunctions` found, as these queries, int64[rows]."""
        if not len(queries):
            return
        slabs = self._slabs
        vectors = np.full(len(slabs), -1, dtype=np.int32)
        axis_of = np.zeros(len(slabs), dtype=np.uint8)  # a schema has at most 256 attributes
        for number in _different(conditions[conditions >= 0]):
            slab = slabs[number]
            assert slab is not None
            vectors[number] = workload.vector_number(*slab)
            axis_of[number] = slab[0]
        # Eight attributes are one number. No attribute is there twice, so that the first one can stand for none.
        whole = axis_of[np.where(conditions >= 0, conditions, conditions[:, :1])]
        sets, group_of = np.unique(np.ascontiguousarray(whole).view(np.uint64).reshape(-1), return_inverse=True)
        for group, packed in enumerate(sets):
            chosen = np.flatnonzero(group_of == group)
            axes = tuple(sorted(set(packed.tobytes())))
            workload.add_conjunctions(axes, queries[chosen], vectors[conditions[chosen, : len(axes)]])

    def _layout(self, spans: NDArray[np.int64]) -> tuple[NDArray[np.bool_], _Found]:
        """Which statements are nothing but `all` of some conditions, with short lengths; and those conditions."""
        data, (start, stop) = self._bytes, (spans[:, 0], spans[:, 1])
        simple = stop - start >= 4
        head = np.where(simple, start, 0)
        if not len(data):
            return simple, _Found(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        at = [data[np.minimum(head + i, len(data) - 1)].astype(np.int64) for i in range(4)]
        size = stop - start
        simple &= (at[0] == _PREDICATE) & (at[1] < _SHORT) & (at[1] == size - 2)
        simple &= (at[2] == _ALL) & (at[3] < _SHORT) & (at[3] == size - 4)
        where, parts = np.where(simple, start + 4, stop), []
        for place in range(_MAX_CONDITIONS):
            going = np.flatnonzero(simple & (where < stop))
            if not len(going):
                break
            begin = where[going] + 2
            whole = begin <= stop[going]
            tag, length = (data[np.minimum(begin - back, len(data) - 1)].astype(np.int64) for back in (2, 1))
            whole &= (tag == _CONDITION) & (length < _SHORT) & (begin + length <= stop[going])
            simple[going[~whole]] = False
            going, begin, length = going[whole], begin[whole], length[whole]
            where[going] = begin + length
            parts.append(_Found(going, np.full(len(going), place), begin, length))
        simple &= where == stop
        columns = ("statement", "place", "begin", "length")
        joined = [np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(p, c) for p in parts)]) for c in columns]
        kept = simple[joined[0]]
        return simple, _Found(*(column[kept] for column in joined))

    def _numbered(self, found: _Found) -> NDArray[np.int64]:
        """The number of each condition, int64[conditions]; equal bytes have one number."""
        numbers = np.zeros(len(found.begin), dtype=np.int64)
        for length in _different(found.length):
            chosen = np.flatnonzero(found.length == length)
            words, begin = -(-max(length, 1) // _WORD), found.begin[chosen]
            rows = self._words[begin[:, None] + _WORD * np.arange(words)]
            rows[:, -1] &= np.uint64((1 << 8 * (length - _WORD * (words - 1))) - 1)
            keys = (rows * self._keys[:words]).sum(axis=1, dtype=np.uint64)
            _, first, key_of = np.unique(keys, return_index=True, return_inverse=True)
            number_of_key = np.array([self._number(at, length) for at in begin[first].tolist()])
            numbers[chosen] = number_of_key[key_of]
            for i in np.flatnonzero((rows != rows[first[key_of]]).any(axis=1)).tolist():
                numbers[chosen[i]] = self._number(int(begin[i]), length)  # another with the same key
        return numbers

    def _number(self, begin: int, length: int) -> int:
        condition = self._data[begin : begin + length]
        number = self._known.get(condition)
        if number is None:
            number = self._known[condition] = len(self._slabs)
            self._slabs.append(self._slab(condition))
        return number

    def _slab(self, condition: bytes) -> Slab | None:
        """What a condition says of one attribute; None where it is malformed, or always or never true, or more."""
        try:
            statement = read_statement(bytes([_PREDICATE, len(condition)]) + condition, "")
            return self._compiler.slab(statement) if isinstance(statement, Among | Interval) else None
        except InvalidArgument:
            return None  # whoever reads its statement one by one says what is wrong


def _different(numbers: NDArray[np.int64]) -> list[int]:
    """The different ones of many small numbers, ascending."""
    return np.flatnonzero(np.bincount(numbers)).tolist()


def _key_words() -> NDArray[np.uint64]:
    """What conditions' words are multiplied by: drawn anew, so that nobody can choose conditions of one key."""
    return np.frombuffer(secrets.token_bytes(_WORD * (_SHORT // _WORD)), dtype=np.uint64)
