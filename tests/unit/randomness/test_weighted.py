from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from harness.exponential_law import exponential_law
from harness.random_references import ScriptedStream, exponential
from numpy.typing import NDArray

from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import (
    Proposal,
    draw_exponential,
)

UNIT = 1 << 48
COIN_BITS = 192

# Exponents when the proposal is made, exponents when it is drawn from, and how much the latter may be larger.
INSTANCES = {
    "flat": ([0, 0, 0], [0, 0, 0], 0),
    "near": ([0, -1, UNIT, UNIT // 3, -2 * UNIT + 12345],) * 2 + (0,),
    "wide": ([0, -30 * UNIT, -32 * UNIT, -33 * UNIT, -40 * UNIT, -64 * UNIT, -65 * UNIT, -90 * UNIT],) * 2 + (0,),
    "alone": ([7], [7], 0),
    "grown by the most": ([0, -UNIT, 5 * UNIT], [UNIT, 0, 6 * UNIT], UNIT),
    "grown and shrunk": ([0, 3 * UNIT, -2 * UNIT, 1], [UNIT // 2, 0, -2 * UNIT, UNIT + 1], UNIT),
    "with room to spare": ([0, 17, -UNIT], [3, -40 * UNIT, UNIT // 7], 3 * UNIT),
    "once far": ([0, -80 * UNIT, -31 * UNIT], [0, -75 * UNIT, -30 * UNIT], 5 * UNIT),
}
# Fixed for ever: a replay of an old round reads the same bits on every machine.
KNOWN_DRAWS = [765, 627, 277, 462, 851, 33, 277, 212, 34, 957, 653, 99]


def nats(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def ideal_law(exponents: list[int]) -> list[Fraction]:
    top = max(exponents)
    weights = [exponential(Fraction(x - top, UNIT)) for x in exponents]
    return [weight / sum(weights) for weight in weights]


def accepts(name: str, cell: int, words: list[int]) -> bool:
    """The sampler's own accept step on a coin that begins with these words."""
    before, now, growth = INSTANCES[name]
    proposal = Proposal.above(nats(before))
    return bool(proposal.accepted(nats([cell]), nats([now[cell]]), growth, ScriptedStream(words)).item())


def words_of(coin: int) -> list[int]:
    return [coin >> 128, coin & (2**64 - 1), coin >> 64 & (2**64 - 1)]


def accepted_coins(name: str, cell: int) -> int:
    """How many of the 2^192 coins the sampler's own accept step accepts: it accepts exactly those below a bound."""
    bound = 0
    for place in reversed(range(COIN_BITS)):
        if accepts(name, cell, words_of(bound + (1 << place) - 1)):
            bound += 1 << place
    return bound + accepts(name, cell, words_of(bound))


def proposed_weights(exponents: list[int]) -> list[int]:
    return [int(weight) for weight in Proposal.above(nats(exponents)).weights(np.arange(len(exponents)))]


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", INSTANCES)
def test_proposal_and_accept_step_together_give_the_ideal_law(name: str) -> None:
    before, now, _ = INSTANCES[name]
    masses = [weight * accepted_coins(name, cell) for cell, weight in enumerate(proposed_weights(before))]
    law = [Fraction(mass, sum(masses)) for mass in masses]
    ideal = ideal_law(now)
    for got, wanted in zip(law, ideal, strict=True):
        assert abs(got - wanted) < Fraction(1, 1 << 180)
    for got, wanted in zip(exponential_law(nats(now)), ideal, strict=True):
        assert abs(got - wanted) < Fraction(1, 1 << 185)


def test_this_enumeration_sees_a_forgotten_accept_step_and_one_with_old_exponents() -> None:
    weights, ideal = proposed_weights(INSTANCES["near"][0]), ideal_law(INSTANCES["near"][1])
    worst = max(abs(Fraction(w, sum(weights)) - p) for w, p in zip(weights, ideal, strict=True))
    assert worst > Fraction(1, 1 << 20)
    before, now, _ = INSTANCES["grown and shrunk"]
    assert max(abs(p - q) for p, q in zip(ideal_law(before), ideal_law(now), strict=True)) > Fraction(1, 10)


@pytest.mark.slow
def test_accepted_coins_are_an_initial_segment() -> None:
    # The enumeration above rests on this: on both sides of the bound, near and far, there is no exception.
    for name in ("wide", "once far"):
        for cell in range(len(INSTANCES[name][0])):
            bound = accepted_coins(name, cell)
            around = [
                bound + d for d in (-(1 << 190), -(1 << 130), -(1 << 64), -2, -1, 0, 1, 1 << 64, 1 << 130, 1 << 190)
            ]
            for coin in {0, *around, (1 << COIN_BITS) - 1}:
                if 0 <= coin < 1 << COIN_BITS:
                    assert accepts(name, cell, words_of(coin)) is (coin < bound)


def test_a_coin_that_192_bits_do_not_decide_reads_more() -> None:
    proposal = Proposal.above(nats([0, -100 * UNIT]))
    coin = int(exponential(Fraction(-100), 600) * (1 << COIN_BITS + proposal.scale_bits) / 2)
    tails = [ScriptedStream([*words_of(coin), tail, tail]) for tail in (0, 2**64 - 1)]
    verdicts = [proposal.accepted(nats([1]), nats([-100 * UNIT]), 0, tail).item() for tail in tails]
    assert [tail.read for tail in tails] == [5, 5]
    assert verdicts == [True, False]


def test_growing_beyond_what_was_promised_is_refused() -> None:
    proposal = Proposal.above(nats([0, -UNIT]))
    for cell, exponent in ((0, UNIT + 1), (1, UNIT // 100)):
        with pytest.raises(ValueError, match="growth"):
            proposal.accepted(nats([cell]), nats([exponent]), UNIT, KeyedStream.derive(bytes(32), "grown"))
    far = Proposal.above(nats([2**63 - 1, -(2**63)]))
    assert not far.accepted(nats([1]), nats([-(2**63)]), 0, KeyedStream.derive(bytes(32), "far")).item()
    with pytest.raises(ValueError, match="growth"):
        far.accepted(nats([1]), nats([-(2**63)]), 1, KeyedStream.derive(bytes(32), "too far"))


def test_weights_are_above_the_ideal_ones_and_close() -> None:
    for size in (1, 5, 3000, 70_000):
        exponents = np.random.default_rng(size).integers(-70 * UNIT, 70 * UNIT, size)
        proposal = Proposal.above(exponents)
        assert int(proposal.ends[-1]) < 1 << 63
        assert proposal.top == int(exponents.max())
        cells = np.arange(0, size, max(1, size // 100))
        for cell, weight in zip(cells.tolist(), proposal.weights(cells).tolist(), strict=True):
            deficit = proposal.top - int(exponents[cell])
            ideal = exponential(Fraction(-deficit, UNIT)) * (1 << proposal.scale_bits)
            assert ideal < weight < ideal * Fraction(1025, 1024) + 3


def test_largest_sum_stays_below_2_to_the_63() -> None:
    for bits in (0, 1, 14, 15, 16, 25, 26):
        for size in {1 << bits, (1 << bits) + 1, (2 << bits) - 1} - {(1 << 26) + 1, (2 << 26) - 1}:
            scale = min(47, 62 - size.bit_length())
            assert size * ((1 << scale) + 3) < 1 << 63
    # A flat proposal really has these weights.
    proposal = Proposal.above(np.zeros(1 << 18, dtype=np.int64))
    assert set(proposal.weights(np.arange(1 << 18)).tolist()) == {(1 << 43) + 2}


def test_differences_beyond_int64_are_not_lost() -> None:
    exponents = [2**63 - 1, -(2**63), 2**63 - 1 - UNIT]
    assert proposed_weights(exponents)[1] == 2
    law = exponential_law(nats(exponents))
    assert law[1] == 0
    assert abs(float(law[0]) - 0.7310585786300049) < 1e-15


def test_draws_are_all_from_the_heavy_cells_when_the_spread_is_large() -> None:
    exponents = np.full(50_000, -(2**63), dtype=np.int64)
    exponents[[17, 49_999]] = 2**63 - 1
    drawn = draw_exponential(exponents, 2000, KeyedStream.derive(bytes(32), "spread"))
    assert set(drawn.tolist()) == {17, 49_999}


def test_known_answers() -> None:
    stream = KeyedStream.derive(bytes(range(32)), "known answers", "weighted")
    exponents = (np.arange(1000, dtype=np.int64) * 7919 % 1009 - 500) << 42
    assert draw_exponential(exponents, 12, stream).tolist() == KNOWN_DRAWS


@pytest.mark.slow
def test_accept_step_equals_a_plain_one() -> None:
    # Far cells have weights of 2 to 40, so that many coins refuse.
    steps = np.arange(41, dtype=np.int64) * (UNIT // 8)
    verdicts: list[bool] = []
    for start, growth in ((0, 0), (29 * UNIT, 0), (29 * UNIT, UNIT), (2 * UNIT, 3 * UNIT)):
        before = np.where(steps == 0, 0, -start - steps)
        now = before + (growth // 41) * np.arange(41)
        chosen = Proposal.above(before)
        cells = np.arange(41).repeat(50)
        verdicts = chosen.accepted(cells, now[cells], growth, KeyedStream.derive(bytes(32), "plain")).tolist()
        coins = KeyedStream.derive(bytes(32), "plain").words(cells.size).tolist()
        for cell, coin, verdict in zip(cells.tolist(), coins, verdicts, strict=True):
            ideal = exponential(Fraction(int(now[cell]) - growth, UNIT)) * (1 << chosen.scale_bits)
            assert verdict is (Fraction(coin, 1 << 64) < ideal / int(chosen.weights(nats([cell]))[0]))
    assert not all(verdicts)


def test_bad_exponents_and_counts_are_refused() -> None:
    stream = KeyedStream.derive(bytes(32), "bad")
    with pytest.raises(ValueError, match="negative"):
        draw_exponential(nats([0]), -1, stream)
    with pytest.raises(ValueError, match="exponents"):
        draw_exponential(nats([]), 1, stream)
    assert draw_exponential(nats([0, 1]), 0, stream).tolist() == []
