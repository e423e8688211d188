"""Tables of answers as the pages show them: a part of the rows as a table, and as a chart with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.console.charts import Bars, interval_bars
from equipoise.console.rendering import Table, plain_table
from equipoise.frames import Frame
from equipoise.frames import shown as shown_value

MAX_ROWS = 200  # of a table on one page


@dataclass(frozen=True)
class AnsweredTable:
    """The answer to one question. `more`: how many rows are not shown."""

    title: str
    frame: Frame
    table: Table
    chart: Bars | None
    more: int


def answered_table(title: str, frame: Frame, first: int = 0, most: int = MAX_ROWS) -> AnsweredTable:
    """Returns rows of a table, with a chart of its first column of numbers.

    Args:
        title: what the table answers.
        frame: the whole table.
        first: the first row that is shown, from 0.
        most: how many rows are shown.
    """
    part = Frame({name: values[first : first + most] for name, values in frame.columns.items()})
    rows = [[*map(shown_value, row)] for row in part.rows()]
    heads = [name.replace("_", " ") for name in part.names]
    return AnsweredTable(
        title, frame, plain_table(heads, rows), _chart(part), max(0, len(frame) - first - len(part))
    )


def _chart(frame: Frame) -> Bars | None:
    """A bar for each row, called by its texts; None where nothing has an interval."""
    drawn = next((name for name in frame.names if f"{name}_low" in frame.columns), None)
    low, high = f"{drawn}_low", f"{drawn}_high"
    if drawn is None and "low" in frame.columns:
        drawn, low, high = "value", "low", "high"
    if drawn is None or not len(frame):
        return None
    numbers = [np.asarray(frame[name], dtype=float).tolist() for name in (drawn, low, high)]
    texts = [
        name
        for name, values in frame.columns.items()
        if not isinstance(values, np.ndarray) and name != "method" and not name.endswith("_method")
    ]
    named = list(zip(*(frame[name] for name in texts), strict=True)) or [()] * len(frame)
    labels = [" / ".join(filter(None, map(shown_value, row))) for row in named]
    if "query" in frame.columns:
        labels = [_place(frame, row, label) for row, label in enumerate(labels)]
    return interval_bars(labels, *numbers)


def _place(frame: Frame, row: int, cell: str) -> str:
    """What an answer of a workload is called: the number of its statement, and its cell."""
    statement = int(np.asarray(frame["statement"])[row])
    if statement < 0:
        return f"query {int(np.asarray(frame['query'])[row])}"
    return f"statement {statement}: {cell}" if cell else f"statement {statement}"
