"""Who asks for what where many analysts ask about the same things: some statements are asked for far more often.

The law is Zipf's: the statement in place r of a ranking is drawn with a weight proportional to 1/r. The ranking is
a uniform permutation, the same for all analysts; each analyst then draws as many different statements as it
may ask, one after another, each in proportion to the weights of those it does not have yet. All of it is integers
from keyed streams, so that the same seed gives the same demand on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise_server.randomness.stream import KeyedStream

WEIGHT_BITS = 40  # of the most popular statement's weight: all weights together stay below 2^64


def draw_demand(statements: int, analysts: int, each: int, seed: bytes) -> Iterator[list[int]]:
    """Draw what analysts ask of a pool of statements: popular ones more often.

    Takes of the order of `statements + analysts * each * log(statements)` steps.

    Args:
        statements: How many there are.
        analysts: How many ask.
        each: How many statements each asks.
        seed: 32 bytes.

    Yields:
        For every analyst in turn, `each` different numbers below `statements`, ascending.
    """
    ranking = KeyedStream.derive(seed, "simulation/popularity").permutation(statements)
    weights = [0] * statements
    for rank, statement in enumerate(ranking.tolist(), start=1):
        weights[statement] = (1 << WEIGHT_BITS) // rank
    urn = Urn(weights)
    stream = KeyedStream.derive(seed, "simulation/demand")
    for _ in range(analysts):
        drawn = []
        for _ in range(each):
            drawn.append(urn.draw(stream))
            urn.change(drawn[-1], -weights[drawn[-1]])
        for statement in drawn:
            urn.change(statement, weights[statement])
        yield sorted(drawn)


class Urn:
    """Numbers 0 to n-1 with integer weights that change: a binary tree of sums, so that each step takes log n."""

    def __init__(self, weights: list[int]) -> None:
        self._leaves = 1 << (len(weights) - 1).bit_length()
        self._sums = [0] * self._leaves + weights + [0] * (self._leaves - len(weights))
        for node in range(self._leaves - 1, 0, -1):
            self._sums[node] = self._sums[2 * node] + self._sums[2 * node + 1]

    def draw(self, stream: KeyedStream) -> int:
        """Return a number, in proportion to the weights, exactly."""
        place, node = stream.below(self._sums[1]), 1
        while node < self._leaves:
            node *= 2
            if place >= self._sums[node]:
                place -= self._sums[node]
                node += 1
        return node - self._leaves

    def change(self, number: int, by: int) -> None:
        """Add to a number's weight."""
        node = self._leaves + number
        while node:
            self._sums[node] += by
            node //= 2
