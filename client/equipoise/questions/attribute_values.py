"""The values that a category may hold, and what a comparison says of each of them.

A bin holds all numbers from its lower edge up to its upper one, so a condition is about whole bins only if it says
the same of each number in them. It is tried at every constant of the condition, and between two neighbouring ones.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute
from equipoise.queries.schema_checks import edge_text

TRUE, FALSE, NULL = 1, 2, 4
Constant = float | str
"""What attributes are compared with: numbers, seconds that stand for dates, and labels."""
_OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Unlisted:
    """Some label that the schema does not list."""


UNLISTED = _Unlisted()


@lru_cache(maxsize=1024)
def labels_as_numbers(attribute: Attribute) -> dict[str, float] | None:
    """Returns the numbers that the labels are, if all are numbers; None of binned attributes, and of others."""
    if attribute.edges:
        return None
    listed = [each for each in attribute.categories if each not in special_categories(attribute)]
    if not listed or not all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", each) for each in listed):
        return None
    return {each: float(each) for each in listed}


def regions_of(attribute: Attribute, constants: tuple[Constant, ...]) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yields the place of each category of records, with values of every sort that it may hold.

    None is a missing value. The constants are those that the values will be compared with.
    """
    numbers = labels_as_numbers(attribute)
    points = tuple(sorted({float(each) for each in constants if not isinstance(each, str)}))
    for place, label in enumerate(attribute.categories):
        if label == attribute.none and attribute.none:
            continue
        values: tuple[object, ...] = ()
        if place < attribute.bins:
            low, high = map(float, attribute.edges[place : place + 2])
            values += _between(
                -math.inf if attribute.clamp and place == 0 else low,
                math.inf if attribute.clamp and place == attribute.bins - 1 else high,
                points,
            )
        elif not attribute.edges and label not in special_categories(attribute):
            values += (label if numbers is None else numbers[label],)
        if label == attribute.missing and attribute.missing:
            values += (None,)
        if label == attribute.unknown and attribute.unknown:
            values += (UNLISTED,) if not attribute.edges else _outside(attribute, points)
        yield place, values


def compared(attribute: Attribute, value: object, sign: str, constant: Constant) -> int:
    """Returns what a comparison of a value with a constant may be: a sum of TRUE, FALSE and NULL."""
    if value is None:
        return NULL
    if value is UNLISTED:
        if sign in ("=", "<>") and constant in listed_values(attribute):
            return FALSE if sign == "=" else TRUE
        return TRUE | FALSE
    if sign == "like":
        return TRUE if _pattern(str(constant)).fullmatch(str(value)) else FALSE
    held = _OPERATORS[sign]
    if isinstance(value, float):
        return TRUE if held(value, constant) else FALSE
    return TRUE if held(str(value), str(constant)) else FALSE


def undecided(attribute: Attribute, place: int, constants: tuple[Constant, ...]) -> InvalidArgument:
    """Returns the refusal of a condition that part of a category's records satisfy, or may satisfy.

    Args:
        attribute: which the condition is about.
        place: the category's.
        constants: all that the attribute is compared with.
    """
    label = attribute.categories[place]
    if place >= attribute.bins or not attribute.edges:
        others = "values outside of the bins" if attribute.edges else "values that are not listed"
        advice = (
            f"name both ends: from {_text(attribute, attribute.edges[0])} "
            f"to below {_text(attribute, attribute.edges[-1])}"
            if attribute.edges
            else "list the values with IN or NOT IN"
        )
        return InvalidArgument(attribute.name, f"{label!r} holds {others}, of which some may satisfy it; {advice}")
    low, high = attribute.edges[place : place + 2]
    inside = next((each for each in constants if not isinstance(each, str) and low <= each < high), low)
    shown = _text(attribute, float(inside))
    nearest = (
        f"`>= {_text(attribute, low)}` or `>= {_text(attribute, high)}`, and `<` the same instead of `<=` and `=`"
    )
    if attribute.clamp and not low <= float(inside) < high:
        nearest = "the first bin holds all that is below it, and the last all that is above"
    return InvalidArgument(
        attribute.name,
        f"{shown} would part the bin from {_text(attribute, low)} to {_text(attribute, high)}; write {nearest}",
    )


def _text(attribute: Attribute, edge: float) -> str:
    """An edge as SQL has it."""
    return f"'{edge_text(edge, True)}'" if attribute.dates else edge_text(edge)


def special_categories(attribute: Attribute) -> tuple[str, ...]:
    """Returns the categories that stand for no value of their own."""
    return tuple(each for each in (attribute.missing, attribute.unknown, attribute.none) if each)


def listed_values(attribute: Attribute) -> set[object]:
    """Returns the values that the schema lists: labels, or the numbers that they are."""
    numbers = labels_as_numbers(attribute)
    if numbers is not None:
        return set(numbers.values())
    return {each for each in attribute.categories if each not in special_categories(attribute)}


def _between(low: float, high: float, points: tuple[float, ...]) -> tuple[float, ...]:
    """The lower end, each point above it and below the upper one, and a number between any two of all these."""
    inside = [each for each in points if low < each < high]
    ends = [low, *inside, high]
    middles = [_middle(one, other) for one, other in pairwise(ends)]
    kept = [each for each in (*ends[:-1], *middles) if low <= each < high]
    return tuple(kept)


def _outside(attribute: Attribute, points: tuple[float, ...]) -> tuple[float, ...]:
    low, high = float(attribute.edges[0]), float(attribute.edges[-1])
    return (*_between(-math.inf, low, points), *_between(high, math.inf, points), math.inf)


def _middle(one: float, other: float) -> float:
    """A number between two others, which may be infinite; one of them where no float is between them."""
    if math.isinf(one) and math.isinf(other):
        return 0.0
    if math.isinf(one):
        return other - 1 - abs(other)
    if math.isinf(other):
        return one + 1 + abs(one)
    return one / 2 + other / 2


@lru_cache(maxsize=1024)
def _pattern(like: str) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    return re.compile("".join(signs.get(sign) or re.escape(sign) for sign in like), re.DOTALL)
