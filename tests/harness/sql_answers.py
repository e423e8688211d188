"""Compares answers of translated SQL with DuckDB's."""

from __future__ import annotations

import math


def same(one: object, other: object) -> bool:
    """Whether two numbers or labels are the same; a sum of nothing is 0 here, and nothing in SQL."""
    if isinstance(other, str) or isinstance(one, str):
        return one == other
    return math.isclose(number(one), number(other), rel_tol=1e-9, abs_tol=1e-9)


def number(each: object) -> float:
    """A number; 0 for what is none."""
    found = 0.0 if each is None else float(str(each))
    return found if math.isfinite(found) else 0.0


def compare(
    ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]], keys: int, ordered: bool, text: str
) -> None:
    """Fails where two tables of answers differ; without an order their rows are sorted, by their `keys` first."""

    def label(row: tuple[object, ...]) -> tuple[str, ...]:
        shown = repr([float(each) if isinstance(each, int) else each for each in row[:keys]])
        return shown, *(each if isinstance(each, str) else f"{number(each):.6f}" for each in row[keys:])

    if not ordered:
        ours, theirs = sorted(ours, key=label), sorted(theirs, key=label)
    assert len(ours) == len(theirs), text
    for row, other in zip(ours, theirs, strict=True):
        assert all(map(same, row, other)), (text, row, other)
