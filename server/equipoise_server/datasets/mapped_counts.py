"""A table's counts in a file in memory, which many processes read without reading the table or copying its counts.

The file begins with three parts of its length table: the number of arrays, the length of the pickled object without
them, and the length of each array, 8 bytes each, little endian. Each part begins at a multiple of 64 bytes.
Only the custodian's own processes write such a file, and it never has a name.
"""

from __future__ import annotations

import mmap
import os
import pickle
import struct
from collections.abc import Sequence

from equipoise_server.datasets.counts import Counts

ALIGNED = 64  # bytes: as numpy's own arrays are at least
PICKLE = 5  # the first protocol that leaves arrays out


def write_counts(counts: Counts, file: int) -> None:
    """Write counts to an empty file.

    Args:
        counts: of a table.
        file: its descriptor. It stays open.
    """
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(counts, protocol=PICKLE, buffer_callback=arrays.append)
    parts = [memoryview(head), *(each.raw() for each in arrays)]
    lengths = [part.nbytes for part in parts]
    with os.fdopen(file, "wb", closefd=False) as stream:
        stream.write(struct.pack(f"<{1 + len(lengths)}Q", len(arrays), *lengths))
        for place, part in zip(_places(lengths), parts, strict=True):
            stream.seek(place)
            stream.write(part)
        stream.truncate(max(stream.tell(), 1))


def map_counts(file: int) -> Counts:
    """Return the counts that were written to a file. Their arrays are the file's own bytes, and are read-only.

    Args:
        file: its descriptor, which may be closed afterwards.
    """
    view = memoryview(mmap.mmap(file, 0, prot=mmap.PROT_READ))
    (arrays,) = struct.unpack_from("<Q", view)
    lengths = struct.unpack_from(f"<{1 + arrays}Q", view, 8)
    head, *rest = (view[place : place + length] for place, length in zip(_places(lengths), lengths, strict=True))
    counts: Counts = pickle.loads(head, buffers=rest)
    return counts


def _places(lengths: Sequence[int]) -> list[int]:
    """Return where each part begins."""
    places, end = [], 8 * (1 + len(lengths))
    for length in lengths:
        places.append(-(-end // ALIGNED) * ALIGNED)
        end = places[-1] + length
    return places
