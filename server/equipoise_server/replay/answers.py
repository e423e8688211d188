"""Comparing answers computed again with those that were released: exactly, or to 2^-20 after a fit in floats.

Everything that decides an output is computed in integers, and comes out the same on every machine (mechanisms
section 8). Only what is made of private outputs afterwards may be computed in floating point, which differs between
versions of libraries in the last places; it is rounded to the published grid, and compared to 2^-20.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DataLoss
from equipoise.model.results import AnswerMethod, Answers, ResultColumns
from equipoise.wire.results import chunk_from_bytes
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.replay.differences import Difference, Differs

TOLERANCE = 1 << (GRID_BITS - 20)  # units of 2^-40


def tolerance_of(mechanism: str) -> int:
    """Return by how many units of 2^-40 numbers of answers may differ. Ways of answering must always be equal."""
    return TOLERANCE if mechanism in MECHANISMS and MECHANISMS[mechanism].fitted else 0


@dataclass
class Ways:
    """The number of answers of each answer method, and the largest difference of any number for each."""

    tolerance: int
    answers: Counter[AnswerMethod] = field(default_factory=Counter)
    furthest: Counter[AnswerMethod] = field(default_factory=Counter)

    def compare(self, analyst: str, stored: bytes, computed: bytes) -> None:
        """Compare one message. Raises `Differs` naming the first query and field that do not agree."""
        ours = chunk_from_bytes(computed)
        if stored == computed:
            theirs = ours
        else:
            try:
                theirs = chunk_from_bytes(stored)
            except DataLoss as error:
                raise Differs(Difference(error.message, analyst=analyst, message=ours.sequence)) from None
            self._agree(analyst, theirs, ours)
            if not self.tolerance:
                raise Differs(Difference("bytes", stored.hex(), computed.hex(), analyst, ours.sequence))
        self._count(theirs, ours)

    def _agree(self, analyst: str, theirs: ResultColumns, ours: ResultColumns) -> None:
        for name in ("round_id", "sequence", "first_query", "last"):
            recorded, expected = getattr(theirs, name), getattr(ours, name)
            if recorded != expected:
                raise Differs(Difference(name, str(recorded), str(expected), analyst, ours.sequence))
        if len(theirs.answers) != len(ours.answers):
            counts = f"{len(theirs.answers)} answers", f"{len(ours.answers)} answers"
            raise Differs(Difference("how many", *counts, analyst, ours.sequence))
        columns = [
            (name, recorded, computed, 0 if name == "way" else self.tolerance)
            for (name, recorded), (_, computed) in zip(named(theirs.answers), named(ours.answers), strict=True)
        ]
        wrong = np.stack([_distance(recorded, computed) > allowed for _, recorded, computed, allowed in columns])
        if not wrong.any():
            return
        query = int(np.flatnonzero(wrong.any(axis=0))[0])
        name, recorded, computed, allowed = columns[int(np.flatnonzero(wrong[:, query])[0])]
        expected = str(int(computed[query])) + (f" to within {allowed}" if allowed else "")
        what = name if name == "way" else f"{name} in units of 2^-{GRID_BITS}"
        place = ours.first_query + query
        raise Differs(Difference(what, str(int(recorded[query])), expected, analyst, ours.sequence, place))

    def _count(self, theirs: ResultColumns, ours: ResultColumns) -> None:
        pairs = list(zip(named(theirs.answers), named(ours.answers), strict=True))
        for number in np.unique(ours.answers.methods).tolist():
            here, way = ours.answers.methods == number, AnswerMethod(number)
            self.answers[way] += int(here.sum())
            apart = max(
                int(_distance(recorded[here], computed[here]).max()) for (_, recorded), (_, computed) in pairs
            )
            self.furthest[way] = max(self.furthest[way], apart)


def named(answers: Answers) -> list[tuple[str, NDArray[np.int64]]]:
    """The columns of answers as they are compared, int64[k] each, with their names."""
    return [
        ("way", answers.methods.astype(np.int64)),
        ("value", answers.values),
        ("low", answers.lows),
        ("high", answers.highs),
        ("standard error", answers.standard_errors),
    ]


def _distance(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.abs(first - second))
