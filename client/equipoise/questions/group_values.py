"""What the groups of a question are called in its answer."""

from __future__ import annotations

from typing import cast

from equipoise.frames import Kind
from equipoise.queries.schema import Schema
from equipoise.questions.attribute_values import labels_as_numbers
from equipoise.questions.measures import Key


def values_of_key(key: Key, schema: Schema) -> list[str | float | None]:
    """Returns the values of a key, in the order of its categories or buckets.

    Missing values are None. Labels that are numbers are numbers, integers where all are whole. Bins, and values
    that are not listed, are called as the schema calls them.
    """
    if key.buckets:
        return _whole([bucket.label for bucket in key.buckets])
    attribute = schema.attribute(key.attribute)
    numbers = labels_as_numbers(attribute) if not attribute.unknown else None
    real = attribute.categories[: attribute.size - bool(attribute.none)]
    missing = attribute.missing
    alone = missing and missing != attribute.unknown and missing not in attribute.categories[: attribute.bins]
    return _whole(
        [None if alone and each == missing else each if numbers is None else numbers[each] for each in real]
    )


def kind_of_key(key: Key, schema: Schema) -> Kind:
    """Returns what the values of a key are."""
    attribute = schema.attribute(key.attribute) if key.attribute else None
    if attribute is not None and attribute.edges:
        return "text" if attribute.unknown else "range"  # what is not listed has no place among the bins
    known = [each for each in values_of_key(key, schema) if each is not None]
    if any(isinstance(each, str) for each in known):
        return "text"
    return "integer" if all(isinstance(each, int) for each in known) else "number"


def _whole(values: list[str | float | None]) -> list[str | float | None]:
    """The values, as integers where all are whole numbers."""
    if all(each is None or (isinstance(each, float) and each.is_integer()) for each in values):
        return [None if each is None else int(cast("float", each)) for each in values]
    return values
