"""In which order the tests run where several processes share them: what takes long comes first.

`--dist worksteal` gives each process a block of the list, and takes from the end of the longest block for one that
has nothing left. So each block begins with some of the long tests, and what is taken at the end is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import TypeVar

Test = TypeVar("Test")


def deal(modules: Sequence[Sequence[Test]], slow: Sequence[Test], quick: Sequence[Test], hands: int) -> list[Test]:
    """Order tests for so many processes.

    Args:
        modules: tests that wait for servers, a list for each module, which stays together.
        slow: tests that take more than a fifth of a second.
        quick: all others.
        hands: how many processes there are, at least 1.
    """
    blocks: list[list[Test]] = [[] for _ in range(hands)]
    for number, module in enumerate(modules):
        blocks[number % hands] += module
    for number, test in enumerate(slow):
        blocks[number % hands].append(test)
    left, others = sum(map(len, blocks)) + len(quick), iter(quick)
    for number, block in enumerate(blocks):
        size = left // (hands - number)  # as the blocks are cut
        block.extend(islice(others, max(0, size - len(block))))
        left -= len(block)
    return [*chain.from_iterable(blocks), *others]
