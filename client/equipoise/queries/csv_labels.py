"""Labels in CSV files: a text that a spreadsheet would run as a formula is written so that it is only read.

Spreadsheets take a cell that begins with `=`, `+`, `-`, `@`, one of these in full width, a tab or the end of a line
for a formula, which can read other cells and call programs. Labels come from whoever wrote the schema.
"""

from __future__ import annotations

import re

BEGIN_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n")
_NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def csv_label(label: str) -> str:
    """Returns a label as it is written to a CSV file.

    Args:
        label: A category of a schema, or several that are joined.

    Returns:
        The label; with an apostrophe before it where a spreadsheet would run it. Numbers stay as they are.
    """
    return f"'{label}" if label.startswith(BEGIN_FORMULAS) and not _NUMBER.fullmatch(label) else label
