"""What tests against a public threshold cost, where negative ones are free however many there are.

**Theorem.** Tests and answers follow one another, each chosen after seeing all before it. The sign of every test is
`epsilon`-DP; a positive one may be followed by a mechanism of Renyi divergence at most `d` at the order `a`; after
`C` positives nothing more is done. Then `D_a <= C (kappa / (a - 1) + d)` for the whole, with `kappa = log R` and

    R = max( e^(a epsilon) / (1 + e^epsilon - e^(-(a - 1) epsilon)),
             e^(-(a - 1) epsilon) / (1 + e^epsilon - e^(a epsilon)) )

where `e^(a epsilon) < 1 + e^epsilon`; nothing is known at larger orders. There is no noise on the threshold.

*Proof.* Let `p` and `q` be the probabilities that a test is positive, under the two neighbours. They lie in the
convex polygon of all pairs for which `p / q`, `q / p`, `(1 - p) / (1 - q)` and `(1 - q) / (1 - p)` are at most
`e^epsilon`. Its corners are `(0, 0)`, `(1, 1)` and, with `t = 1 / (1 + e^epsilon)`, the two points `(1 - t, t)` and
`(t, 1 - t)`. The function `f = p^a q^(1-a) / R + (1 - p)^a (1 - q)^(1-a)` is jointly convex (both terms are
perspectives of `x^a`), so it is largest at a corner. There it is 1, `1 / R`, and at most 1 at the two points
exactly if `R` is at least the one or the other quotient above; both are at least 1. So `f <= 1` everywhere.

Let `V(c)` be the largest sum of `P^a Q^(1-a)` over all that can still be seen with `c` positives left, whatever
is asked: `V(0) = 1`, and with `A = e^((a - 1) d)` a test gives
`(1 - p)^a (1 - q)^(1-a) V(c) + p^a q^(1-a) A V(c - 1)`. By induction over the tests that are left (none: 1),
`V(c) <= (R A)^c`, as the sum is at most `(R A)^c f`. And `(a - 1) D_a = log V(C)`.

For small `epsilon` it is `C (a epsilon^2 + d)`: twice what `C` tests alone would cost, and an eighth of what a
sparse vector with the same noise on its tests costs.
"""

from __future__ import annotations

import math

from equipoise.accounting.cost import OUTWARD
from equipoise.accounting.renyi import ORDERS, RenyiCurve


def threshold_tests_divergence(epsilon: float, positives: int, answer_rho: float, order: float) -> float:
    """Returns `D_order` of the theorem, in nats; infinite where it says nothing.

    Args:
        epsilon: of the sign of each test.
        positives: how many positive tests end the whole, C.
        answer_rho: the zCDP of the answer after each positive test.
        order: the Renyi order, above 1.
    """
    if not positives:
        return 0.0
    below = (order - 1) * epsilon
    if below >= math.log(2):  # then e^(a epsilon) is at least 2 e^epsilon
        return math.inf
    room = math.expm1(epsilon) - math.expm1(order * epsilon)
    if room <= -1:
        return math.inf
    first = order * epsilon - math.log1p(math.expm1(epsilon) - math.expm1(-below))
    second = -below - math.log1p(room)
    # The logarithms and their arguments nearly cancel: each is wrong by a few units in its last place.
    slack = 2.0**-48 * order * epsilon / min(1.0, 1 + room)
    kappa = max(first, second, 0.0) + slack
    return positives * (kappa / (order - 1) + order * answer_rho) * OUTWARD


def threshold_tests_curve(epsilon: float, positives: int, answer_rho: float) -> RenyiCurve:
    """Returns `threshold_tests_divergence` at every order of `ORDERS`.

    Args:
        epsilon: of one test.
        positives: the largest number of positive tests.
        answer_rho: of the answer that follows each positive test.
    """
    divergences = (threshold_tests_divergence(epsilon, positives, answer_rho, order) for order in ORDERS)
    return RenyiCurve(tuple(divergences))
