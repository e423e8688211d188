"""Shares are read as operators type them."""

from __future__ import annotations

import pytest

from equipoise.commands.shares import parse_shares
from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Share


def test_shares_are_read() -> None:
    assert parse_shares(["a.b-c=3", "d=2/40", "e=2/40/3", "f=2/40/3/16800", "g=2/40/0/5", "h=2/40/0/0/3"]) == (
        Share("a.b-c", 3, 3),
        Share("d", 2, 40),
        Share("e", 2, 40, 3),
        Share("f", 2, 40, 3, 16_800),
        Share("g", 2, 40, 0, 5),
        Share("h", 2, 40, ways=3),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a=",
        "=3",
        "a=3/",
        "a=-3",
        "a=3/4/",
        "a=3/4/5/6/7/8",
        "a=3/4/5/",
        "a=3/4/-5",
        "a=\u0663",
        f"a=1/{'9' * 20}",
    ],
)
def test_a_malformed_share_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="--share"):
        parse_shares([text])
