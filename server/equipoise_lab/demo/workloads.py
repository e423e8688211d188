"""The workloads of the airlines: each has some 2,100 dense predicates of its own and a few marginal tables.

Made from a fixed public seed, one stream an airline: nothing here is secret, and every demo asks the same.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from equipoise.model.rounds import Share
from equipoise.queries.predicates import AllOf, Among, AnyOf, Predicate
from equipoise.queries.schema import Attribute
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.results import Labels
from equipoise_lab.demo.table import AIRLINES, SCHEMA
from equipoise_server.randomness.stream import KeyedStream

PUBLIC_SEED = b"equipoise demo: airlines ask"
MIN_PREDICATES = 2_060
MORE_EACH = 10  # so that no two airlines ask equally many
SPARSEST, DENSEST = Fraction(1, 10), Fraction(6, 10)  # of the universe
_CHOICES = [chosen for count in (1, 2, 3) for chosen in itertools.combinations(SCHEMA.attributes, count)]

_MARGINALS = (
    Marginal(("origin",)),
    Marginal(("month",)),
    Marginal(("dep_delay",)),
    Marginal(("carrier", "origin")),
    Marginal(("origin", "month")),
    Marginal(("dep_delay", "distance")),
)


def workload_of(airline: str) -> tuple[Statement, ...]:
    """Return one airline's statements: dense predicates, then three of the marginals."""
    place = AIRLINES.index(airline)
    stream = KeyedStream.derive(PUBLIC_SEED, "workload", airline)
    # A dict keeps the order and drops what was drawn twice.
    predicates: dict[Predicate, None] = {}
    while len(predicates) < MIN_PREDICATES + MORE_EACH * place:
        predicate, coverage = _random_predicate(stream)
        if SPARSEST <= coverage <= DENSEST:
            predicates[predicate] = None
    marginals = tuple(_MARGINALS[(place + step) % len(_MARGINALS)] for step in (0, 1, 3))
    return (*predicates, *marginals)


def share_of(airline: str, statements: tuple[Statement, ...]) -> Share:
    """Return the share that an airline with these statements needs, and no more.

    Args:
        airline: the analyst's name.
        statements: its workload.
    """
    compiled = compile_workload(statements, SCHEMA)
    queries, sensitivity = compiled.query_count, compiled.l1_sensitivity
    return Share(airline, len(statements), queries, sensitivity, compiled.support)


def query_count(statements: tuple[Statement, ...]) -> int:
    """Return the number of linear queries: one a predicate, one a cell of a marginal."""
    return Labels(SCHEMA, statements).queries


def _random_predicate(stream: KeyedStream) -> tuple[Predicate, Fraction]:
    """Return a predicate on one to three attributes, all or any of them, and the part of the universe it covers."""
    chosen = _CHOICES[stream.below(len(_CHOICES))]
    conditions = tuple(_random_subset(stream, attribute) for attribute in chosen)
    sizes = zip((len(each.categories) for each in conditions), (each.size for each in chosen), strict=True)
    parts = [Fraction(covered, size) for covered, size in sizes]
    if len(chosen) == 1:
        return conditions[0], parts[0]
    if stream.below(2):
        return AllOf(conditions), math.prod(parts, start=Fraction(1))
    return AnyOf(conditions), 1 - math.prod((1 - part for part in parts), start=Fraction(1))


def _random_subset(stream: KeyedStream, attribute: Attribute) -> Among:
    """Some of the categories, but neither none nor all: the bits of a number say which."""
    bits = 1 + stream.below(2**attribute.size - 2)
    return Among(attribute.name, tuple(label for i, label in enumerate(attribute.categories) if bits >> i & 1))
