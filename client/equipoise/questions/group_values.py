"""What the groups of a question are called in its answer."""

from __future__ import annotations

from equipoise.queries.schema import Schema
from equipoise.questions.attribute_values import labels_as_numbers
from equipoise.questions.measures import Key


def values_of_key(key: Key, schema: Schema) -> list[str | float | None]:
    """Returns the values of a key, in the order of its categories or buckets.

    Missing values are None. Labels that are numbers are numbers. Bins, and values that are not listed, are called
    as the schema calls them.
    """
    if key.buckets:
        return [bucket.label for bucket in key.buckets]
    attribute = schema.attribute(key.attribute)
    numbers = labels_as_numbers(attribute) if not attribute.unknown else None
    real = attribute.categories[: attribute.size - bool(attribute.none)]
    missing = attribute.missing
    alone = missing and missing != attribute.unknown and missing not in attribute.categories[: attribute.bins]
    return [None if alone and each == missing else each if numbers is None else numbers[each] for each in real]
