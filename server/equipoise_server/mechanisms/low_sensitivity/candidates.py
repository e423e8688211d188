"""The public list of databases among which a session of `low_sensitivity` looks for one that answers like the data.

`options.candidates` holds them, each as the universe cells that hold records, and how many:
`[{"cells": [0, 7], "counts": [120, 380]}, ...]`. They are chosen before the session and shown to everybody, so they
must not come from the data: no noise hides what the list itself reveals.
"""

from __future__ import annotations

import itertools

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.queries.statistics import MAX_RECORDS, Databases
from equipoise_server.mechanisms.interface import PublicParameters

CANDIDATES = "candidates"
MAX_CANDIDATES = 1 << 12
MAX_ENTRIES = 1 << 22  # of all candidates together


def read_candidates(setting: PublicParameters) -> Databases:
    """Read the candidates. Raises `InvalidArgument` naming, for example, `options.candidates[3].counts[0]`."""
    if not setting.attributes:
        raise InvalidArgument("attributes", "must be given: low_sensitivity needs the size of each attribute")
    listed = setting.options.get(CANDIDATES)
    if not isinstance(listed, list) or not listed:
        raise InvalidArgument("options.candidates", "must be a list of at least one database")
    if len(listed) > MAX_CANDIDATES:
        raise InvalidArgument("options.candidates", f"are more than {MAX_CANDIDATES:,}")
    cells: list[list[int]] = []
    counts: list[list[int]] = []
    entries = 0
    for place, each in enumerate(listed):
        field = f"options.candidates[{place}]"
        if not isinstance(each, dict) or each.keys() != {"cells", "counts"}:
            raise InvalidArgument(field, "must be an object with the keys cells and counts")
        cells.append(_whole_numbers(each["cells"], f"{field}.cells", 0, setting.universe_size - 1))
        counts.append(_whole_numbers(each["counts"], f"{field}.counts", 1, MAX_RECORDS))
        if len(cells[-1]) != len(counts[-1]):
            raise InvalidArgument(f"{field}.counts", f"must be one for each of the {len(cells[-1])} cells")
        if len(set(cells[-1])) < len(cells[-1]):
            raise InvalidArgument(f"{field}.cells", "must all be different")
        if sum(counts[-1]) > MAX_RECORDS:
            raise InvalidArgument(f"{field}.counts", f"must be at most {MAX_RECORDS:,} records together")
        entries += len(cells[-1])
        if entries > MAX_ENTRIES:
            raise InvalidArgument(field, f"is one too many: together they list more than {MAX_ENTRIES:,} cells")
    return Databases(
        setting.attributes,
        np.cumsum([0, *map(len, cells[:-1])], dtype=np.int64),
        np.array(list(itertools.chain.from_iterable(cells)), dtype=np.int64),
        np.array(list(itertools.chain.from_iterable(counts)), dtype=np.int64),
    )


def _whole_numbers(listed: object, field: str, smallest: int, largest: int) -> list[int]:
    if not isinstance(listed, list) or not listed:
        raise InvalidArgument(field, "must be a list of at least one number")
    for place, each in enumerate(listed):
        if isinstance(each, bool) or not isinstance(each, int) or not smallest <= each <= largest:
            raise InvalidArgument(f"{field}[{place}]", f"must be a whole number from {smallest:,} to {largest:,}")
    return listed
