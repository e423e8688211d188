"""Tables of more possible records than can be listed, and supports that are small enough for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

import numpy as np

from equipoise.queries.schema import Schema
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.mechanisms.prior import measure
from equipoise_server.mechanisms.prior.drawing import drawn_records

SIZES = (4,) * 16  # 2^32 possible records
SCHEMA = Schema.from_json(json.dumps({f"x{axis}": size for axis, size in enumerate(SIZES)}))


def wide_table(records: int, seed: int = 0) -> CodedCounts:
    """A table in which each attribute is that before it, or one more, with few exceptions."""
    choose = np.random.default_rng(seed)
    rows = np.zeros((len(SIZES), records), dtype=np.uint8)
    rows[0] = np.minimum(3, choose.geometric(0.5, records) - 1)
    for axis in range(1, len(SIZES)):
        rows[axis] = (rows[axis - 1] + choose.choice([0, 1, 2, 3], records, p=[0.7, 0.2, 0.05, 0.05])) % 4
    return CodedCounts.of(SIZES, rows, np.ones(records, dtype=np.int64))


@contextmanager
def small_supports(count: int) -> Iterator[None]:
    """Draw supports of so many records."""
    with mock.patch.object(measure, "drawn_records", partial(drawn_records, count=count)):
        yield
