"""The digest that commits to a table: SHA-256 over its counts, which are all that a round reads of the table.

Two files with the same rows, in any order and format, have the same digest under one schema. The digest has no
salt: whoever can guess a whole table can check the guess. So only auditors see the digest, and the log contains it
salted.
"""

from __future__ import annotations

import hashlib

import numpy as np

from equipoise_server.datasets.counts import Counts

PREFIX = b"equipoise data v1\n"


def data_digest(data: Counts) -> bytes:
    """Return SHA-256 over the prefix and the distinct records in ascending order; 32 bytes.

    Each record is its category numbers, 4 bytes each, and how often it is there, 8 bytes; all little endian.
    """
    digest = hashlib.sha256(PREFIX)
    for codes, counts in data.occupied():
        rows = np.empty((len(codes), 4 * codes.shape[1] + 8), dtype=np.uint8)
        rows[:, :-8] = np.ascontiguousarray(codes, dtype="<u4").view(np.uint8)
        rows[:, -8:] = counts.astype("<u8")[:, None].view(np.uint8)
        digest.update(rows.tobytes())
    return digest.digest()
