"""What commands without a server are told in NAME=VALUE."""

from __future__ import annotations

import pytest

from equipoise_lab.options import forced_options


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("8", 8),
        ("-0.5", -0.5),
        ("1e-3", 0.001),
        ("1/500", "1/500"),
        ('"1/500"', "1/500"),  # as messages about options show it
        ('"8"', "8"),
        ("a=b", "a=b"),
        ("1_0", "1_0"),
        ("\u0661", "\u0661"),
        ('"', '"'),
    ],
)
def test_a_value_is_a_number_or_a_word(value: str, read: float | str) -> None:
    found = forced_options([f"name={value}"])["name"]
    assert (found, type(found)) == (read, type(read))
