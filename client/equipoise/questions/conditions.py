"""Conditions as SQL means them: comparisons that are true, false or neither, where a value is missing.

A workload's predicates are two-valued sets of records. `predicate_of` gives the set for which a condition is
*true*: missing values are in neither `x >= 5` nor `NOT x >= 5`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, reduce

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.questions.attribute_values import FALSE, NULL, TRUE, Constant, compared, regions_of, undecided


@dataclass(frozen=True)
class Compare:
    """`attribute operator constant`; the operator is one of `= <> < <= > >=` and `like`."""

    attribute: str
    operator: str
    constant: Constant


@dataclass(frozen=True)
class IsMissing:
    """The attribute has no value."""

    attribute: str


@dataclass(frozen=True)
class Both:
    """AND."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Either:
    """OR."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Negated:
    """NOT: true where the part is false, and neither where that is neither."""

    part: Condition


@dataclass(frozen=True)
class IsTrue:
    """The part is true; false where it is false or neither."""

    part: Condition


@dataclass(frozen=True)
class Always:
    """True, false, or neither where `value` is None, whatever the record."""

    value: bool | None


Condition = Compare | IsMissing | Both | Either | Negated | IsTrue | Always
RecordSet = Predicate | bool
"""The records for which something holds: a predicate, or all of them, or none."""


def predicate_of(condition: Condition, schema: Schema) -> RecordSet:
    """Returns the records for which the condition is true.

    Args:
        condition: about attributes of the schema.
        schema: of the table.

    Raises:
        InvalidArgument: an attribute or category is unknown, or categories hold records of both sorts.
    """
    return _records(condition, True, schema)


def all_of(parts: tuple[RecordSet, ...]) -> RecordSet:
    """Returns the records that are in every part."""
    if any(part is False for part in parts):
        return False
    rest = tuple(dict.fromkeys(each for part in parts if not isinstance(part, bool) for each in _flat(part, AllOf)))
    return rest[0] if len(rest) == 1 else AllOf(rest) if rest else True


def any_of(parts: tuple[RecordSet, ...]) -> RecordSet:
    """Returns the records that are in one part at least."""
    if any(part is True for part in parts):
        return True
    rest = tuple(dict.fromkeys(each for part in parts if not isinstance(part, bool) for each in _flat(part, AnyOf)))
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


def _flat(part: Predicate, kind: type[AllOf] | type[AnyOf]) -> tuple[Predicate, ...]:
    return part.conditions if isinstance(part, kind) else (part,)


def _records(condition: Condition, wanted: bool, schema: Schema) -> RecordSet:
    """The records for which the condition is true, or those for which it is false."""
    names = _attributes(condition)
    if not names:
        return _everywhere(condition) == (TRUE if wanted else FALSE)
    if len(names) == 1:
        return _of_one_attribute(condition, wanted, schema.attribute(next(iter(names))))
    match condition:
        case Negated(part):
            return _records(part, not wanted, schema)
        case IsTrue(part):
            truth = _records(part, True, schema)
            return truth if wanted else none_of(truth)
        case Both(parts):
            sets = tuple(_records(part, wanted, schema) for part in _by_attribute(parts, Both))
            return all_of(sets) if wanted else any_of(sets)
        case Either(parts):
            sets = tuple(_records(part, wanted, schema) for part in _by_attribute(parts, Either))
            return any_of(sets) if wanted else all_of(sets)
    raise AssertionError(f"{condition} is about several attributes")


def _by_attribute(parts: tuple[Condition, ...], kind: type[Both] | type[Either]) -> list[Condition]:
    """The parts, those about one and the same attribute joined: together they may fall on edges."""
    single: dict[str, list[Condition]] = {}
    others: list[Condition] = []
    for part in parts:
        names = _attributes(part)
        if len(names) == 1:
            single.setdefault(next(iter(names)), []).append(part)
        else:
            others.append(part)
    return [each[0] if len(each) == 1 else kind(tuple(each)) for each in single.values()] + others


@lru_cache(maxsize=1 << 14)  # files of many statements repeat their conditions
def _of_one_attribute(condition: Condition, wanted: bool, attribute: Attribute) -> RecordSet:
    """Decides each category by every value that may be in it."""
    chosen = []
    goal = TRUE if wanted else FALSE
    for place, values in regions_of(attribute, _constants(condition)):
        possible = 0
        for value in values:
            possible |= _truth(condition, attribute, value)
        if possible == goal:
            chosen.append(place)
        elif possible & goal:
            raise undecided(attribute, place, _constants(condition))
    return category_set(attribute, tuple(chosen))


def _truth(condition: Condition, attribute: Attribute, value: object) -> int:
    """Which of TRUE, FALSE and NULL the condition may be for a value, as a sum of these."""
    match condition:
        case Compare(_, operator, constant):
            return compared(attribute, value, operator, constant)
        case IsMissing():
            return TRUE if value is None else FALSE
        case Always(known):
            return NULL if known is None else TRUE if known else FALSE
        case Negated(part):
            return _not(_truth(part, attribute, value))
        case IsTrue(part):
            inner = _truth(part, attribute, value)
            return (inner & TRUE) | (FALSE if inner & (FALSE | NULL) else 0)
        case Both(parts):
            return reduce(_and, (_truth(part, attribute, value) for part in parts))
        case Either(parts):
            return _not(reduce(_and, (_not(_truth(part, attribute, value)) for part in parts)))
    raise InvalidArgument("condition", f"{condition!r} is none")


def _not(possible: int) -> int:
    return (possible & NULL) | (FALSE if possible & TRUE else 0) | (TRUE if possible & FALSE else 0)


def _and(one: int, other: int) -> int:
    """AND of what two parts may be: false if one is, else neither if one is neither, else true."""
    false = (one | other) & FALSE
    null = (one & NULL and other & (TRUE | NULL)) or (other & NULL and one & (TRUE | NULL))
    return false | (NULL if null else 0) | (one & other & TRUE)


def _everywhere(condition: Condition) -> int:
    """The truth of a condition that is about no attribute."""
    return _truth(condition, Attribute("none", ("none",)), None)


@lru_cache(maxsize=1 << 14)
def _attributes(condition: Condition) -> frozenset[str]:
    match condition:
        case Compare(name, _, _) | IsMissing(name):
            return frozenset((name,))
        case Negated(part) | IsTrue(part):
            return _attributes(part)
        case Both(parts) | Either(parts):
            return frozenset().union(*map(_attributes, parts))
    return frozenset()


def _constants(condition: Condition) -> tuple[Constant, ...]:
    match condition:
        case Compare(_, _, constant):
            return (constant,)
        case Negated(part) | IsTrue(part):
            return _constants(part)
        case Both(parts) | Either(parts):
            return tuple(each for part in parts for each in _constants(part))
    return ()
