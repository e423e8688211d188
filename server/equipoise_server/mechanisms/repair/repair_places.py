"""Who gets a repair place where the protected unit is a whole analyst: a count test that couples nobody.

Analysts have slots in an order fixed before any workload is seen; whoever was absent keeps a slot. After every
slot, whether its analyst was served badly or not, the test stops if the noisy number of badly served analysts
has reached a noisy target that was drawn once. Whoever comes after the stop gets no place. Testing only after
badly served analysts, or without noise on the target, would show them to others.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.records.codec import COUNT, FRACTION, INTEGER, canonical_object, key
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream


@canonical_object
class RepairPlaces:
    """Public: a target `c`, the test's epsilon, and a hard cap `C` on places.

    With epsilon 0 there is no test, and the cap is either 0 (nobody) or all slots (everybody who needs one).

    Formal guarantees: flipping whether one analyst was served badly changes the law of all others' places by
    at most (`epsilon`, `accounting.repair_places_delta`); never more than `cap` places are granted.
    """

    target: int = key("target", INTEGER)
    epsilon: Fraction = key("epsilon", FRACTION)
    cap: int = key("cap", COUNT)

    def granted(self, positive: NDArray[np.bool_], stream: KeyedStream) -> NDArray[np.bool_]:
        """Return which slots get a place. `positive`: bool[m], served badly, in the order of the slots."""
        if self.epsilon == 0:
            return positive & (self.cap >= len(positive))
        # All noise is drawn at once, used or not, so that the work does not depend on the outcome.
        noise = DiscreteLaplace(self.epsilon).draw(1 + len(positive), stream)
        return self.grant(positive, noise[:1], noise[1:])

    def grant(
        self, positive: NDArray[np.bool_], target_noise: NDArray[np.int64], slot_noise: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """The deterministic part, bool[..., m]. Noise: int64[..., 1] on the target, int64[..., m] on the counts."""
        counts = np.cumsum(positive, axis=-1, dtype=np.int64)
        stops = (counts + slot_noise >= self.target + target_noise) | (counts >= self.cap)
        stopped = np.logical_or.accumulate(stops, axis=-1)
        before = np.concatenate([np.zeros((*stopped.shape[:-1], 1), np.bool_), stopped[..., :-1]], axis=-1)
        places: NDArray[np.bool_] = positive & ~before
        return places
