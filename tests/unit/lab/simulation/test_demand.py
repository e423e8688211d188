"""What analysts draw: different statements, popular ones more often, exactly by the law that is documented."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from equipoise_lab.simulation.demand import Urn, draw_demand
from equipoise_server.randomness.stream import KeyedStream

SEED = bytes(range(32))


def test_every_analyst_draws_so_many_different_statements_the_same_for_the_same_seed() -> None:
    drawn = list(draw_demand(35, 200, 5, SEED))
    assert len(drawn) == 200
    assert all(len(set(each)) == 5 and each == sorted(each) and 0 <= each[0] <= each[-1] < 35 for each in drawn)
    assert drawn == list(draw_demand(35, 200, 5, SEED))
    assert drawn != list(draw_demand(35, 200, 5, bytes(32)))


@pytest.mark.parametrize(("statements", "each"), [(1, 1), (3, 3), (35, 35)])
def test_those_who_draw_everything_get_everything(statements: int, each: int) -> None:
    assert list(draw_demand(statements, 4, each, SEED)) == [list(range(statements))] * 4


def test_the_second_is_drawn_half_as_often_as_the_first() -> None:
    """Popularities of 8 statements, each draw by Zipf's law: chi-square with 7 degrees of freedom, at 1e-6."""
    analysts = 20_000
    popular = Counter(number for (number,) in draw_demand(8, analysts, 1, SEED)).most_common()
    whole = sum(1 / rank for rank in range(1, 9))
    expected = [analysts / rank / whole for rank in range(1, 9)]
    seen = [count for _, count in popular]
    assert sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True)) < 40.5


@pytest.mark.slow
def test_an_urn_draws_in_proportion_to_what_is_left_in_it() -> None:
    """Two draws without replacement, against their law: chi-square with 11 degrees of freedom, at 1e-6."""
    weights = [5, 1, 0, 3, 2]
    urn, stream, draws = Urn(weights), KeyedStream.derive(SEED, "urn"), 20_000
    seen: Counter[tuple[int, int]] = Counter()
    for _ in range(draws):
        first = urn.draw(stream)
        urn.change(first, -weights[first])
        second = urn.draw(stream)
        urn.change(first, weights[first])
        seen[first, second] += 1
    law = {
        (a, b): Fraction(weights[a] * weights[b], 11 * (11 - weights[a]))
        for a, b in itertools.permutations(range(5), 2)
        if weights[a] * weights[b]
    }
    assert seen.keys() == law.keys()
    assert sum((seen[pair] - draws * p) ** 2 / (draws * p) for pair, p in law.items()) < 50
