"""Errors in words: the fraction, the records, and how much of a typical cell these are."""

from __future__ import annotations

import pytest

from equipoise.commands.errors_in_words import error_in_words, typical_cells
from equipoise.model.rounds import Share


def test_an_error_is_said_in_records_and_beside_a_typical_cell() -> None:
    assert error_in_words(0.0125, 4000) == "0.0125 of the records (50 records)"
    told = error_in_words(0.0005, 4000, 20)
    assert told == "0.0005 of the records (2 records, 0.01 of a typical cell, which has 200)"


CELLS = (((), 1.0), ((Share("ann", 4, 4),), 1.0), ((Share("ann", 1, 24), Share("bob", 3, 16)), 10.0))


@pytest.mark.parametrize(("shares", "cells"), CELLS)
def test_a_typical_statement_has_as_many_cells_as_the_shares_say(shares: tuple[Share, ...], cells: float) -> None:
    assert typical_cells(shares) == cells
