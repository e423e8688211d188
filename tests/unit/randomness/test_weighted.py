from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from unit.randomness.references import ScriptedStream, exponential

from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import Proposal, draw_exponential, draw_weighted, draw_weighted_many

UNIT = 1 << 48
COIN_BITS = 192

INSTANCES = {
    "flat": [0, 0, 0],
    "near": [0, -1, UNIT, UNIT // 3, -2 * UNIT + 12345],
    "wide": [0, -30 * UNIT, -32 * UNIT, -33 * UNIT, -40 * UNIT, -64 * UNIT, -65 * UNIT, -90 * UNIT],
    "alone": [7],
}
# Fixed for ever: a replay of an old round reads the same bits on every machine.
KNOWN_DRAWS = [765, 627, 277, 462, 851, 33, 277, 212, 34, 957, 653, 99]
KNOWN_ARRAY = [808, 869, 393, 246, 976, 978]
KNOWN_LIST = [3, 3, 3, 3, 2, 3]


def nats(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def ideal_law(exponents: list[int]) -> list[Fraction]:
    top = max(exponents)
    weights = [exponential(Fraction(x - top, UNIT)) for x in exponents]
    return [weight / sum(weights) for weight in weights]


def accepted_coins(proposal: Proposal, cell: int) -> int:
    """How many of the 2^192 coins the sampler's own accept step accepts: it accepts exactly those below a bound."""

    def refuses(coin: int) -> bool:
        low = coin & ((1 << 128) - 1)
        script = [coin >> 128, low & (2**64 - 1), low >> 64]
        return not proposal.accepted(nats([cell]), ScriptedStream(script)).item()

    bound = 0
    for place in reversed(range(COIN_BITS)):
        if not refuses(bound + (1 << place) - 1):
            bound += 1 << place
    return bound + (not refuses(bound))


@pytest.mark.parametrize("name", INSTANCES)
def test_proposal_and_accept_step_together_give_the_ideal_law(name: str) -> None:
    exponents = INSTANCES[name]
    proposal = Proposal.above(nats(exponents))
    masses = [weight * accepted_coins(proposal, cell) for cell, weight in enumerate(proposal.weights.tolist())]
    law = [Fraction(mass, sum(masses)) for mass in masses]
    ideal = ideal_law(exponents)
    for got, wanted in zip(law, ideal, strict=True):
        assert abs(got - wanted) < Fraction(1, 1 << 185)
    for got, wanted in zip(proposal.law(), ideal, strict=True):
        assert abs(got - wanted) < Fraction(1, 1 << 185)


def test_this_enumeration_sees_a_forgotten_accept_step() -> None:
    exponents = INSTANCES["near"]
    weights = Proposal.above(nats(exponents)).weights.tolist()
    worst = max(abs(Fraction(w, sum(weights)) - p) for w, p in zip(weights, ideal_law(exponents), strict=True))
    assert worst > Fraction(1, 1 << 60)


def test_accepted_coins_are_an_initial_segment() -> None:
    # The enumeration above rests on this: on both sides of the bound, near and far, there is no exception.
    proposal = Proposal.above(nats(INSTANCES["wide"]))
    for cell in range(len(INSTANCES["wide"])):
        bound = accepted_coins(proposal, cell)
        around = [
            bound + d for d in (-(1 << 190), -(1 << 130), -(1 << 64), -2, -1, 0, 1, 1 << 64, 1 << 130, 1 << 190)
        ]
        for coin in {0, *around, (1 << COIN_BITS) - 1}:
            if 0 <= coin < 1 << COIN_BITS:
                script = [coin >> 128, coin & (2**64 - 1), coin >> 64 & (2**64 - 1)]
                assert proposal.accepted(nats([cell]), ScriptedStream(script)).item() is (coin < bound)


def test_a_coin_that_192_bits_do_not_decide_reads_more() -> None:
    proposal = Proposal.above(nats([0, -100 * UNIT]))
    bound = accepted_coins(proposal, 1)
    assert bound > 0
    coin = int(exponential(Fraction(-100), 600) * (1 << COIN_BITS + proposal.scale_bits) / 2)
    script = [coin >> 128, coin & (2**64 - 1), coin >> 64 & (2**64 - 1)]
    tails = [ScriptedStream([*script, tail, tail]) for tail in (0, 2**64 - 1)]
    verdicts = [proposal.accepted(nats([1]), tail).item() for tail in tails]
    assert [tail.read for tail in tails] == [5, 5]
    assert verdicts == [True, False]


def test_weights_are_above_the_ideal_ones_and_close() -> None:
    for size in (1, 5, 3000, 70_000):
        exponents = np.random.default_rng(size).integers(-70 * UNIT, 70 * UNIT, size)
        proposal = Proposal.above(exponents)
        assert sum(proposal.weights.tolist()) < 1 << 63
        assert proposal.deficits.tolist() == [int(exponents.max()) - x for x in exponents.tolist()]
        for cell in range(0, size, max(1, size // 100)):
            ideal = exponential(Fraction(-int(proposal.deficits[cell]), UNIT)) * (1 << proposal.scale_bits)
            weight = int(proposal.weights[cell])
            assert weight >= 2
            assert weight - 3 < ideal < weight


def test_largest_sum_stays_below_2_to_the_63() -> None:
    for bits in (0, 1, 14, 15, 16, 25, 26):
        for size in {1 << bits, (1 << bits) + 1, (2 << bits) - 1} - {(1 << 26) + 1, (2 << 26) - 1}:
            scale = min(47, 62 - size.bit_length())
            assert size * ((1 << scale) + 3) < 1 << 63
    # A flat proposal really has these weights.
    proposal = Proposal.above(np.zeros(1 << 18, dtype=np.int64))
    assert set(proposal.weights.tolist()) == {(1 << 43) + 2}


def test_differences_beyond_int64_are_not_lost() -> None:
    proposal = Proposal.above(nats([2**63 - 1, -(2**63), 2**63 - 1 - UNIT]))
    assert proposal.deficits.tolist() == [0, 2**64 - 1, UNIT]
    assert proposal.weights.tolist()[1] == 2
    assert proposal.law()[1] == 0
    assert abs(float(proposal.law()[0]) - 0.7310585786300049) < 1e-15


def test_draws_are_all_from_the_heavy_cells_when_the_spread_is_large() -> None:
    exponents = np.full(50_000, -(2**63), dtype=np.int64)
    exponents[[17, 49_999]] = 2**63 - 1
    drawn = draw_exponential(exponents, 2000, KeyedStream.derive(bytes(32), "spread"))
    assert set(drawn.tolist()) == {17, 49_999}


def test_known_answers() -> None:
    stream = KeyedStream.derive(bytes(range(32)), "known answers", "weighted")
    exponents = (np.arange(1000, dtype=np.int64) * 7919 % 1009 - 500) << 42
    assert draw_exponential(exponents, 12, stream).tolist() == KNOWN_DRAWS
    assert draw_weighted_many(np.arange(1000, dtype=np.uint64), 6, stream).tolist() == KNOWN_ARRAY
    assert draw_weighted_many([10**30, 1, 10**30, 3 * 10**30], 6, stream).tolist() == KNOWN_LIST


def test_accept_step_equals_a_plain_one() -> None:
    # Far cells have weights of 2 to 40, so that many coins refuse and many need more than 64 bits to be sure.
    steps = np.arange(41, dtype=np.int64) * (UNIT // 8)
    for start in (0, 29 * UNIT):
        chosen = Proposal.above(np.where(steps == 0, 0, -start - steps))
        cells = np.arange(41).repeat(50)
        verdicts = chosen.accepted(cells, KeyedStream.derive(bytes(32), "plain")).tolist()
        coins = KeyedStream.derive(bytes(32), "plain").words(cells.size).tolist()
        for cell, coin, verdict in zip(cells.tolist(), coins, verdicts, strict=True):
            ideal = exponential(Fraction(-int(chosen.deficits[cell]), UNIT)) * (1 << chosen.scale_bits)
            assert verdict is (Fraction(coin, 1 << 64) < ideal / int(chosen.weights[cell]))
    assert not all(verdicts)


def test_integer_weights_cut_the_line_exactly() -> None:
    weights = [2, 0, 3, 1, 0]
    kinds: list[list[int] | NDArray[np.uint64]] = [weights, np.array(weights, dtype=np.uint64)]
    for kind in kinds:
        drawn = [draw_weighted(kind, ScriptedStream([point])) for point in range(6)]
        assert drawn == [0, 0, 2, 2, 2, 3]
    huge = [1 << 200, 0, 1 << 200]
    assert draw_weighted(huge, ScriptedStream([2**64 - 1] * 3 + [255])) == 0
    assert draw_weighted(huge, ScriptedStream([0, 0, 0, 256])) == 2


def test_array_weights_beyond_63_bits_are_drawn_as_integers() -> None:
    weights = np.full(4, 2**64 - 1, dtype=np.uint64)
    first, last = ScriptedStream([0, 0]), ScriptedStream([0, 3])
    assert draw_weighted(weights, first) == 0
    assert draw_weighted(weights, last) == 3


def test_bad_weights_are_refused() -> None:
    stream = KeyedStream.derive(bytes(32), "bad")
    for bad in ([], [0, 0], [3, -1]):
        with pytest.raises(ValueError, match="weights"):
            draw_weighted(bad, stream)
    for bad_array in (np.zeros(3, np.uint64), np.empty(0, np.uint64)):
        with pytest.raises(ValueError, match="weights"):
            draw_weighted(bad_array, stream)
    with pytest.raises(ValueError, match="uint64"):
        draw_weighted(np.ones(3, np.int64), stream)
    with pytest.raises(ValueError, match="negative"):
        draw_weighted_many([1], -1, stream)
    with pytest.raises(ValueError, match="negative"):
        draw_exponential(nats([0]), -1, stream)
    with pytest.raises(ValueError, match="exponents"):
        draw_exponential(nats([]), 1, stream)
    assert draw_exponential(nats([0, 1]), 0, stream).tolist() == []
