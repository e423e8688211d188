"""Sessions in epochs from a prior, to be enumerated: one of two attributes of two categories is measured."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from statistical.epochs_cases import SURE, one_epoch
from statistical.exact_epochs import Branches, EnumeratedEpochs

from equipoise.queries.predicates import AllOf, Among, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import Scale
from equipoise_server.mechanisms.noise_calibration import GaussianNoise

SCHEMA = Schema((Attribute("a", ("0", "1")), Attribute("b", ("0", "1"))))
MEASURED, BOTH = Among("a", ("0",)), AllOf((Among("a", ("0",)), Among("b", ("0",))))
VARIANCE = Fraction(1, 2)


def starting_from(start: NDArray[np.int64]) -> type[EnumeratedEpochs]:
    class FromPrior(EnumeratedEpochs):
        def __init__(self, parameters: EpochParameters, universe: int, slots: int, branches: Branches) -> None:
            super().__init__(parameters, universe, slots, branches)
            self._multiset = start

    return FromPrior


DATA = np.array([12, 1, 0, 7], dtype=np.int64)  # the prior holds 6.5 in the first cell
NEVER = AllOf((Among("a", ("0", "1")), Among("b", ("0", "1"))))
FIRST: tuple[Predicate | None, ...] = (MEASURED, BOTH, NEVER, None)
ENDS = one_epoch(
    scale=Scale(20, 1),
    cap=99,
    ending_epsilon=Fraction(1),
    test_epsilon=SURE,
    noise=GaussianNoise(Fraction(1, 10**6)),
    threshold=1 << 15,
)
