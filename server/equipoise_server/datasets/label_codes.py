"""The spellings by which a table's values are recognised as categories."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.queries.csv_labels import csv_label


def label_codes(labels: Sequence[str]) -> dict[str, int]:
    """Return the category's position for each accepted spelling, labels first.

    A further spelling is accepted unless it is itself a label. Truth values are accepted in any case, because one
    program may write `True` to CSV and `true` to Parquet. Labels are accepted as this system's own CSV files have
    them.
    """
    codes = {label: code for code, label in enumerate(labels)}
    folded = [label.lower() for label in labels]
    for word in ("true", "false"):
        if folded.count(word) == 1:
            for spelling in (word, word.title(), word.upper()):
                codes.setdefault(spelling, folded.index(word))
    for code, label in enumerate(labels):
        codes.setdefault(csv_label(label), code)
    return codes
