"""Conditions as SQL means them: comparisons that are true, false or neither, where a value is missing.

A workload's predicates are two-valued sets of records. `RecordSets` gives the set for which a condition is
*true*: missing values are in neither `x >= 5` nor `NOT x >= 5`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.schema import Attribute
from equipoise.questions.attribute_values import Constant


@dataclass(frozen=True, eq=False)
class Compare:
    """`attribute operator constant`; the operator is one of `= <> < <= > >=` and `like`."""

    attribute: str
    operator: str
    constant: Constant


@dataclass(frozen=True, eq=False)
class IsMissing:
    """The attribute has no value."""

    attribute: str


@dataclass(frozen=True, eq=False)
class Both:
    """AND."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Either:
    """OR."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Negated:
    """NOT: true where the part is false, and neither where that is neither."""

    part: Condition


@dataclass(frozen=True, eq=False)
class IsTrue:
    """The part is true; false where it is false or neither."""

    part: Condition


@dataclass(frozen=True, eq=False)
class Always:
    """True, false, or neither where `value` is None, whatever the record."""

    value: bool | None


Condition = Compare | IsMissing | Both | Either | Negated | IsTrue | Always
RecordSet = Predicate | bool
"""The records for which something holds: a predicate, or all of them, or none."""


def all_of(parts: tuple[RecordSet, ...]) -> RecordSet:
    """Returns the records that are in every part."""
    if False in parts:
        return False
    rest = _each_once(parts, AllOf)
    return rest[0] if len(rest) == 1 else AllOf(rest) if rest else True


def any_of(parts: tuple[RecordSet, ...]) -> RecordSet:
    """Returns the records that are in one part at least."""
    if True in parts:
        return True
    rest = _each_once(parts, AnyOf)
    return rest[0] if len(rest) == 1 else AnyOf(rest) if rest else False


def none_of(part: RecordSet) -> RecordSet:
    """Returns the records that are not in the part."""
    if isinstance(part, bool):
        return not part
    return part.condition if isinstance(part, Not) else Not(part)


def category_set(attribute: Attribute, chosen: tuple[int, ...]) -> RecordSet:
    """Returns the records in the categories at these ascending places; the one of nothing is never among them."""
    real = attribute.size - bool(attribute.none)
    if len(chosen) in (0, real):
        return bool(chosen)
    bins = attribute.bins
    if bins and chosen[-1] < bins and chosen[-1] - chosen[0] == len(chosen) - 1:
        low, high = attribute.edges[chosen[0]], attribute.edges[chosen[-1] + 1]
        return Interval(
            attribute.name, low if chosen[0] else -math.inf, high if chosen[-1] + 1 < bins else math.inf
        )
    return Among(attribute.name, tuple(attribute.categories[place] for place in chosen))


def _each_once(parts: tuple[RecordSet, ...], kind: type[AllOf] | type[AnyOf]) -> tuple[Predicate, ...]:
    """The predicates, those of a predicate of this kind one by one."""
    flat: list[Predicate] = []
    for part in parts:
        if isinstance(part, kind):
            flat += part.conditions
        elif not isinstance(part, bool):
            flat.append(part)
    return tuple(dict.fromkeys(flat))
