"""The log as files in the layout of C2SP's tlog-tiles, for other programs that read such logs.

    checkpoint                      the signed note
    tile/LEVEL/NUMBER[.p/WIDTH]     a tile of hashes; with its width where it is not full
    tile/entries/NUMBER[.p/WIDTH]   the leaves below a tile of level 0, each behind its length in two bytes

A number is written in groups of three digits, all but the last behind an x: 1234067 is x001/x234/067.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from equipoise.records.merkle import HASH_BYTES
from equipoise_server.transparency.tiles import HEIGHT, Tiles, widths

Leaves = Callable[[int, int], list[bytes]]  # the leaves from an index on, at most so many


def tlog_files(size: int, note: bytes, tiles: Tiles, leaves: Leaves) -> Iterator[tuple[str, bytes]]:
    """Yield relative path and content of every file of a log of `size` leaves with the checkpoint `note`."""
    for (level, number), width in widths(size).items():
        yield _path(str(level), number, width), tiles((level, number))[: width * HASH_BYTES]
        if level == 0:
            bundle = leaves(number << HEIGHT, width)
            yield _path("entries", number, width), b"".join(len(leaf).to_bytes(2, "big") + leaf for leaf in bundle)
    # The checkpoint comes last, so that every file it covers exists before it.
    yield "checkpoint", note


def _path(level: str, number: int, width: int) -> str:
    digits = str(number)
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[start : start + 3] for start in range(0, len(digits), 3)]
    partial = "" if width == 1 << HEIGHT else f".p/{width}"
    return f"tile/{level}/{'/'.join([*(f'x{group}' for group in groups[:-1]), groups[-1]])}{partial}"
