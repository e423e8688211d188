"""What a table's columns hold, for whoever writes its schema. Everything here is private."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MAX_LABELS = 1000  # of a column, that are listed


class Values(Enum):
    """What all values of a column are."""

    LABELS = "labels"
    WHOLE = "whole numbers"
    NUMBERS = "numbers"
    DATES = "dates"


@dataclass(frozen=True)
class Column:
    """What one column holds.

    `labels`: its different values as text, most frequent first; empty where they are more than `MAX_LABELS`. `low`
    and `high`: the smallest and the largest number, or date in seconds since 1970; None of labels. `missing`:
    whether there are nulls, or NaN. A column without any value has no labels.
    """

    name: str
    values: Values
    labels: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    missing: bool = False
