"""What the pages show of a table's attributes: each column once."""

from __future__ import annotations

from equipoise.commands.printing import Columns
from equipoise.queries.schema import Attribute

SHOWN_CATEGORIES = 40


def _categories(attribute: Attribute) -> str:
    more = len(attribute.categories) - SHOWN_CATEGORIES
    listed = ", ".join(attribute.categories[:SHOWN_CATEGORIES])
    return f"{listed} and {more:,} more" if more > 0 else listed


ATTRIBUTES: Columns[Attribute] = {
    "attribute": lambda each: each.name,
    "categories": _categories,
    "in order": lambda each: {None: "", True: "yes", False: "no"}[each.ordered],
    "how many": lambda each: f"{len(each.categories):,}",
}
