"""Workloads that Hypothesis draws, and a naive reference that reads the predicate at every record."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Sum

Record = tuple[str, ...]
Linear = Predicate | Marginal | Sum
EDGES = (-1.5, 0.0, 2.0, 7.0)
SCHEMA = Schema(
    (
        Attribute("colour", ("red", "green", "blue")),
        Attribute("delay", (*bin_labels(EDGES), "missing"), EDGES, missing="missing"),
        Attribute("only", ("one",)),
        Attribute("day", tuple("abcdefghij")),
    )
)
RECORDS: list[Record] = list(itertools.product(*(each.categories for each in SCHEMA.attributes)))


def holds(predicate: Predicate, record: Record) -> bool:
    """What a predicate means, said once more without boxes, masks or arrays."""
    match predicate:
        case Among(name, categories):
            return record[SCHEMA.names.index(name)] in categories
        case Interval(name, low, high):
            lows = dict(zip(bin_labels(EDGES), itertools.pairwise(EDGES), strict=True))
            ends = lows.get(record[SCHEMA.names.index(name)])
            return ends is not None and low <= ends[0] and ends[1] <= high
        case AllOf(conditions):
            return all(holds(each, record) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, record) for each in conditions)
        case Not(condition):
            return not holds(condition, record)


def weight(statement: Sum, record: Record) -> int:
    """Where a record's delay, as its bin's middle, stands within the sum's range, in units of 2^-16."""
    lows = dict(zip(bin_labels(EDGES), itertools.pairwise(EDGES), strict=True))
    ends = lows.get(record[SCHEMA.names.index("delay")])
    low = EDGES[0] if statement.low is None else statement.low
    high = EDGES[-1] if statement.high is None else statement.high
    if ends is None:
        return 0
    middle = sum(min(max(end, low), high) for end in ends) / 2
    return round((middle - low) / (high - low) * 2**16)


def naive_matrix(statements: list[Linear]) -> NDArray[np.int64]:
    """Every query at every record: 0 or 1, or of sums the weight in units of 2^-16."""
    rows: list[list[int]] = []
    for statement in statements:
        if isinstance(statement, Sum):
            rows.extend(naive_sums(statement))
        elif isinstance(statement, Marginal):
            axes = [SCHEMA.names.index(name) for name in statement.attributes]
            for cell in itertools.product(*(SCHEMA.attributes[axis].categories for axis in axes)):
                where = statement.where
                inside = [where is None or holds(where, record) for record in RECORDS]
                same = [tuple(record[axis] for axis in axes) == cell for record in RECORDS]
                rows.append([int(both) for both in map(all, zip(inside, same, strict=True))])
        else:
            rows.append([int(holds(statement, record)) for record in RECORDS])
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(RECORDS))


def naive_sums(statement: Sum) -> list[list[int]]:
    axes = [SCHEMA.names.index(name) for name in statement.by]
    return [
        [
            weight(statement, record)
            * (statement.where is None or holds(statement.where, record))
            * (tuple(record[axis] for axis in axes) == cell)
            for record in RECORDS
        ]
        for cell in itertools.product(*(SCHEMA.attributes[axis].categories for axis in axes))
    ]


amongs = st.sampled_from(SCHEMA.attributes).flatmap(
    lambda each: st.lists(st.sampled_from(each.categories), min_size=1).map(lambda c: Among(each.name, tuple(c)))
)
intervals = st.tuples(
    st.sampled_from((-math.inf, *EDGES, math.inf)), st.sampled_from((-math.inf, *EDGES, math.inf))
).map(lambda ends: Interval("delay", min(ends), max(ends)))
predicates: st.SearchStrategy[Predicate] = st.recursive(
    amongs | intervals,
    lambda inner: st.lists(inner, min_size=1, max_size=4).flatmap(
        lambda parts: st.sampled_from([AllOf(tuple(parts)), AnyOf(tuple(parts)), Not(parts[0])])
    ),
    max_leaves=8,
)
names = st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True)
constants = predicates.flatmap(lambda each: st.sampled_from([AnyOf((each, Not(each))), AllOf((Not(each), each))]))
marginals = st.builds(Marginal, names.map(tuple), st.none() | predicates | constants)
sums = st.builds(
    lambda by, where, ends: Sum("delay", tuple(by), where, min(ends), max(ends)),
    st.lists(st.sampled_from([name for name in SCHEMA.names if name != "delay"]), unique=True),
    st.none() | predicates | constants,
    st.lists(st.sampled_from(EDGES), min_size=2, max_size=2, unique=True),
)
statements_of_all_kinds = predicates | predicates | constants | marginals
# Some have one statement, some the same one several times.
workloads = st.lists(statements_of_all_kinds, max_size=6) | st.lists(
    statements_of_all_kinds, min_size=1, max_size=3
).flatmap(lambda few: st.lists(st.sampled_from(few), min_size=1, max_size=6))
seeds = st.integers(0, 2**32 - 1)
