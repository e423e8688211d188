"""The spellings by which a table's values are recognised as categories."""

from __future__ import annotations

from equipoise.queries.csv_labels import csv_label
from equipoise.queries.schema import Attribute


def label_codes(attribute: Attribute) -> dict[str, int]:
    """Return the category's position for each accepted spelling: its label, and the codes that stand for it.

    A further spelling is accepted unless it is itself one of these. Truth values are accepted in any case, because
    one program may write `True` to CSV and `true` to Parquet. Labels and codes are accepted as this system's CSV
    files write them.
    """
    listed = {label: place for place, label in enumerate(attribute.categories)}
    listed |= {code: listed[label] for code, label in attribute.codes}
    spellings = dict(listed)
    for word in ("true", "false"):
        places = {place for value, place in listed.items() if value.lower() == word}
        if len(places) == 1:
            for spelling in (word, word.title(), word.upper()):
                spellings.setdefault(spelling, *places)
    for value, place in listed.items():
        spellings.setdefault(csv_label(value), place)
    return spellings
