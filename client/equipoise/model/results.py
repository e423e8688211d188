"""Answers as they are published: columns of whole units of 2^-40."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

NO_BOUND = 1 << 62  # the bound of an answer that carries none


class AnswerMethod(IntEnum):
    """How a query was answered; the numbers are the wire's."""

    SYNOPSIS = 1
    LAPLACE = 2
    GAUSSIAN = 3
    MULTIPLICATIVE_WEIGHTS = 4
    UNCERTIFIED = 5
    PROJECTION = 6
    HISTOGRAM = 7
    SMALL_DB = 8
    HYPOTHESIS = 9

    @property
    def label(self) -> str:
        """The name as people write it: `multiplicative_weights`."""
        return self.name.lower()


@dataclass(frozen=True, eq=False)
class ResultColumns:
    """One result message: answers `first_query`, `first_query` + 1, ... of the analyst's workload.

    `values` and `bounds` int64 in units of 2^-40 (a bound of 2^62: none is promised), `methods` uint8, the numbers
    of `AnswerMethod`; `sequence` counts from 1, and `last` ends the stream.
    """

    round_id: str
    sequence: int
    first_query: int
    values: NDArray[np.int64]
    methods: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    last: bool
