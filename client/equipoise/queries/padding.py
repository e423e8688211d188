"""Records of nothing: a schema with and without their category, and predicates that do not count them.

A record of nothing is in the last category, `Attribute.none`, of every attribute. All other records are in no such
category. So a condition on any one attribute tells the two apart.
"""

from __future__ import annotations

from dataclasses import replace

from equipoise.queries.boxes import Boxes
from equipoise.queries.schema import Attribute, Schema

NONE = "none"


def padded_schema(schema: Schema) -> Schema:
    """Returns the schema with a category for records of nothing in every attribute; itself where it has them."""
    return schema if schema.padded else Schema(tuple(map(_padded, schema.attributes)))


def schema_of_rows(schema: Schema) -> Schema:
    """Returns the schema without that category: what the rows of the table can be."""
    if not schema.padded:
        return schema
    return Schema(tuple(replace(each, categories=each.categories[:-1], none="") for each in schema.attributes))


def holds_nothing(boxes: Boxes, schema: Schema) -> bool:
    """Returns whether a predicate is true of records of nothing. `boxes`: a sum of boxes."""
    last = [size - 1 for size in schema.sizes]
    return sum(number for box, number in boxes.items() if all(mask >> last[axis] & 1 for axis, mask in box)) != 0


def _padded(attribute: Attribute) -> Attribute:
    label = NONE
    while label in attribute.categories:
        label += "_"
    return replace(attribute, categories=(*attribute.categories, label), none=label)
