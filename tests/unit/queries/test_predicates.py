"""The query language: what the operators build."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, attribute
from equipoise.queries.statements import CountDistinct, Marginal

A, B, C = Among("a", ("x",)), Among("b", ("y",)), Among("c", ("z",))


def test_comparisons() -> None:
    assert (attribute("a") == "x") == A
    assert (attribute("a") != "x") == Not(A)
    assert attribute("a").isin(["x", "y"]) == Among("a", ("x", "y"))
    assert (attribute("d") >= 15) == Interval("d", 15.0, math.inf)
    assert (attribute("d") < 15) == Interval("d", -math.inf, 15.0)
    assert attribute("d").between(0, 15) == Interval("d", 0.0, 15.0)


def test_chains_stay_flat() -> None:
    for built, flat in (
        (A & B & C, AllOf((A, B, C))),
        (A | (B | C), AnyOf((A, B, C))),
        ((A & B) | C, AnyOf((AllOf((A, B)), C))),
    ):
        assert built == flat


def test_double_negation_cancels() -> None:
    once = ~A
    assert once == Not(A)
    assert ~once == A


def test_misuse_is_refused() -> None:
    with pytest.raises(TypeError, match="combine predicates"):
        bool(A)
    with pytest.raises(TypeError, match="a string"):
        attribute("a") == 3  # noqa: B015
    with pytest.raises(TypeError, match="a string"):
        attribute("a").isin(cast(Any, [3]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: attribute("price") > 50, r"price: `> 50` would part a bin: .*write `>=`"),
        (lambda: attribute("price") <= 50, r"price: `<= 50` would part a bin: .*write `<`"),
        (lambda: attribute("price") > 50, r"price: `> 50` would part a bin"),
        (lambda: attribute("country").isin("GB"), r"isin: must be several names, such as \('GB',\)"),
        (lambda: attribute("country").isin([]), "isin: must be at least one category"),
        (lambda: attribute("price") >= cast(Any, None), "price: is compared with neither a number nor a date"),
        (lambda: attribute("price").between(0, 10**5000), "price: is compared with neither"),
        (lambda: Marginal(cast(Any, "country")), r"marginal\.attributes: .* not the bare string 'country'"),
        (lambda: CountDistinct(cast(Any, "country")), r"count_distinct\.attributes: .* bare string 'country'"),
        (lambda: Marginal(()), r"marginal\.attributes: must be at least one name"),
        (lambda: Marginal(cast(Any, None)), r"marginal\.attributes: must be at least one name"),
        (lambda: Marginal(cast(Any, (1,))), r"marginal\.attributes\[0\]: must be an attribute's name, .* not 1"),
        (lambda: Marginal(("a", "")), r"marginal\.attributes\[1\]: must be an attribute's name, .* not ''"),
        (lambda: Marginal(("a", "b", "a")), r"marginal\.attributes\[2\]: 'a' is listed twice"),
        (lambda: CountDistinct(()), r"count_distinct\.attributes: must be at least one name"),
        (lambda: CountDistinct(("a", "a")), r"count_distinct\.attributes\[1\]: 'a' is listed twice"),
    ],
)
def test_what_cannot_be_meant_says_what_to_write(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        build()
