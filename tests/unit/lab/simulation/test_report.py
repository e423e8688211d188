"""Tables of errors, as people read them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from rich.table import Table

from equipoise_lab.simulation.measure import Errors
from equipoise_lab.simulation.report import error_row


@given(st.lists(st.floats(1e-12, 1.0), min_size=3, max_size=3))
@example([0.000004, 0.0000046, 0.0000049])
def test_no_error_is_shown_above_a_larger_one_or_as_none(errors: list[float]) -> None:
    mean, p99, largest = sorted(errors)
    table = Table("answers of", "largest", "99th percentile", "mean")
    error_row(table, "gaussian", Errors(largest, p99, mean))
    shown = [float(str(cell)) for column in table.columns[1:] for cell in column.cells]
    assert shown == sorted(shown, reverse=True)
    assert min(shown) > 0
