"""Errors as people read them: beside the fraction the records, and how much of a typical cell these are."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.rounds import Share


def error_in_words(error: float, records: int, cells: float = 1) -> str:
    """Return an error as a fraction, in records, and as a part of a typical cell.

    Args:
        error: a fraction of the records.
        records: how many there are.
        cells: of a typical statement; a typical cell of it has one in so many of the records. 1: there are no
            marginals, and no cells to compare with.
    """
    words = f"{error:.4g} of the records ({error * records:,.4g} records"
    if cells > 1:
        words += f", {error * cells:.3g} of a typical cell, which has {records / cells:,.4g}"
    return words + ")"


def typical_cells(shares: Iterable[Share]) -> float:
    """Return how many queries a statement of these shares has in the mean; 1 where there are none."""
    asked = [(share.statements, share.queries) for share in shares]
    statements = sum(each for each, _ in asked)
    return sum(each for _, each in asked) / statements if statements else 1.0
