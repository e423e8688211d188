"""What commits to a table: SHA-256 over its counts, which is all that a round reads of it.

Two files with the same rows, in whatever order and format, have the same digest under one schema. It is not salted:
who can guess a whole table can check the guess, so it is shown to auditors only, and enters the log under a salt.
"""

from __future__ import annotations

import hashlib

import numpy as np

from equipoise_server.datasets.counts import Counts

PREFIX = b"equipoise data v1\n"


def data_digest(data: Counts) -> bytes:
    """SHA-256 over the prefix and, for every cell that is not empty, ascending, its number and count; 32 bytes.

    Both numbers have 8 bytes, little endian.
    """
    digest = hashlib.sha256(PREFIX)
    for cells, counts in data.occupied():
        digest.update(np.stack([cells, counts], axis=1).astype("<u8").tobytes())
    return digest.digest()
