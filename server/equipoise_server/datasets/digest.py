"""What commits to a table: SHA-256 over its histogram, which is all that a round reads of it.

Two files with the same rows, in whatever order and format, have the same digest under one schema. It is not salted:
who can guess a whole table can check the guess, so it is shown to auditors only, and enters the log under a salt.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

PREFIX = b"equipoise data v1\n"
BLOCK = 1 << 18  # cells hashed at once, 4 MiB


def data_digest(histogram: NDArray[np.int64]) -> bytes:
    """SHA-256 over the prefix and, for every cell that is not empty, ascending, its number and count; 32 bytes.

    Both numbers have 8 bytes, little endian. `histogram` is int64[|X|], without negative counts.
    """
    digest = hashlib.sha256(PREFIX)
    cells = np.flatnonzero(histogram)
    for start in range(0, len(cells), BLOCK):
        some = cells[start : start + BLOCK]
        digest.update(np.stack([some, histogram[some]], axis=1).astype("<u8").tobytes())
    return digest.digest()
