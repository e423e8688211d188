"""What detection and answers cost, and what hiding who got a repair place costs."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.accounting.cost import OUTWARD


def pure_rho(epsilon: Fraction, times: int = 1) -> Fraction:
    """Returns the rho of `times` mechanisms, each `epsilon`-DP (Bun & Steinke 2016, Proposition 1.4).

    Args:
        epsilon: of one mechanism.
        times: how many there are.

    Example:
        >>> from fractions import Fraction
        >>> from equipoise.accounting.repair import pure_rho
        >>> pure_rho(Fraction(1, 10), times=4)
        Fraction(1, 50)
    """
    return times * epsilon * epsilon / 2


def sparse_vector_rho(epsilon: Fraction, positives: int) -> Fraction:
    """Returns the rho of a sparse vector that stops after `positives`, each stretch one AboveThreshold.

    AboveThreshold with threshold noise Lap(2/epsilon) and test noise Lap(4/epsilon) on statements of
    sensitivity 1 is epsilon-DP however many statements are tested (Dwork & Roth 2014, Theorem 3.23); fresh
    threshold noise after each positive makes the whole a composition of `positives` of them. Charged in full
    whether all are used or not. No numeric answer may be taken from the test noise.

    Args:
        epsilon: of one AboveThreshold.
        positives: after so many the sparse vector stops.
    """
    return pure_rho(epsilon, positives)


def laplace_rho(epsilon: Fraction, answers: int) -> Fraction:
    """Returns the rho of `answers` statements, each with discrete Laplace noise of scale (L1 sensitivity)/epsilon.

    Each is epsilon-DP (Ghosh, Roughgarden, Sundararajan 2012 for the discrete law).

    Args:
        epsilon: of one statement.
        answers: how many statements are answered.
    """
    return pure_rho(epsilon, answers)


def gaussian_rho(squared_sensitivity: Fraction, variance: Fraction, answers: int) -> Fraction:
    """Returns the rho of `answers` statements, each with discrete Gaussian noise of this variance on its counts.

    Let replacing a record move the counts of a statement by an integer vector of squared L2 norm at most
    `squared_sensitivity`: 1 for a predicate, 2 for a marginal, one of whose cells loses the record while another
    gains it (a column of the marginal has norm 1, but a column is what *adding* a record moves). Each statement
    costs `squared_sensitivity / (2 variance)` in zCDP: for integers m the Renyi divergence of order a of the
    discrete law from itself moved by m is at most `a m^2 / (2 variance)` (Canonne, Kamath & Steinke 2020,
    Proposition 5 and Theorem 4), and for independent coordinates divergences add. The continuous law's cost is the
    same number, but that it holds for the discrete one is the theorem.

    Args:
        squared_sensitivity: the bound above, in records squared.
        variance: the noise's parameter, in records squared; above 0.
        answers: the number of statements.
    """
    return answers * squared_sensitivity / (2 * variance)


def exponential_mechanism_rho(epsilon: Fraction, draws: int) -> Fraction:
    """Returns the rho of `draws` selections, each with exponents `epsilon score / (2 sensitivity)`.

    Between neighbours each exponent moves by at most `epsilon / 2`, so the law has range `epsilon` and costs
    `epsilon^2 / 8` (McSherry & Talwar 2007 for the mechanism, Cesar & Rogers 2021 for the range).

    Args:
        epsilon: of one selection.
        draws: how many selections there are.
    """
    return draws * epsilon * epsilon / 8


def analyst_tests_rho(epsilon: Fraction, analysts: int) -> Fraction:
    """Returns the rho of one test of every analyst's largest error against a public threshold.

    Each test has noise of its own.

    The largest error over any set of queries moves by at most `1/n` when a record is replaced, so one test with
    discrete Laplace noise of scale `1/(n epsilon)` is epsilon-DP. All analysts are tested, so all are charged.

    Args:
        epsilon: of one analyst's test.
        analysts: how many are tested.
    """
    return pure_rho(epsilon, analysts)


def private_weights_rho(
    select_epsilon: Fraction, measure_epsilon: Fraction, certify_epsilon: Fraction, rounds: int, places: int
) -> Fraction:
    """Returns the rho of `places` analysts answered by private multiplicative weights, each on its own workload.

    A run is `rounds` selections by the exponential mechanism and `rounds` counts (sensitivity 1) with discrete
    Laplace noise, and one noisy largest error at the end; the hypotheses between them are functions of what
    was drawn. Who gets a place is decided by private outputs, and never more than `places` are: charged in
    full, never for the realised number.

    Args:
        select_epsilon: of one selection.
        measure_epsilon: of one count.
        certify_epsilon: of the noisy largest error.
        rounds: selections, and counts, of one run.
        places: the largest number of analysts who get a run.
    """
    run = exponential_mechanism_rho(select_epsilon, rounds)
    run += pure_rho(measure_epsilon, rounds) + pure_rho(certify_epsilon)
    return places * run


def repair_places_rho(epsilon: Fraction) -> Fraction:
    """Returns what the count test that grants repair places costs one analyst, against all others together.

    Slots in a public order; after slot `i`, of which `N_i` were positive, stop if `N_i + W_i >= c + Z`, with
    `Z` drawn once and each `W_i` afresh, all discrete Laplace of rate `epsilon`. Let one analyst's slot `j` flip
    from negative to positive: `N_i` grows by 1 for all `i >= j`. Given `Z`, every other analyst's place is a
    function of where the test stops. Where it stops at `i < j` nothing changed. Otherwise:

    - from negative to positive, compare `Z = z` with `z + 1`: earlier slots go on at least as probably, all
      slots from `j` on do exactly what they did, and `P(Z = z) <= e^epsilon P(Z = z + 1)`;
    - from positive to negative, keep `Z`: going on gets more probable, and the one stop is at most `e^epsilon`
      times as probable as before.

    So it is epsilon-DP for any number of slots (compare Lyu, Su & Li 2017 on monotone counts), which is
    `epsilon^2 / 2`-zCDP; a positivity that is itself random is a mixture of the two cases. If the stop were tested
    only at positives, another slot could decide whether there is a test at all, and no epsilon would hold.
    """
    return pure_rho(epsilon)


def repair_places_delta(epsilon: Fraction, beyond: int, budget: float) -> float:
    """Returns the delta, at epsilon `budget`, of a hard stop at `c + beyond` positives in the count test above.

    With `c + beyond` positives counted the test goes on only if `Z - W > beyond`, so the hard stop changes the
    law by at most that probability `p` in total variation, in both of the runs compared: `(1 + e^budget) p`. With
    `q = e^-epsilon` and `A = (1 + q^2) / (1 - q^2)` the difference of two such noises is `k` with probability
    `((1 - q) / (1 + q))^2 q^|k| (|k| + A)`, which sums in closed form. As the test without the stop is
    epsilon-DP, what the stop costs is `(1 + e^epsilon) p` beside it, and adds up over rounds whatever the total
    epsilon (`docs/privacy-filter.md`, the lemma on truncation). Charged is the larger of the two.

    Args:
        epsilon: of the count test.
        beyond: positives beyond the target `c`, at which the hard stop comes.
        budget: the epsilon of the budget at which delta is wanted.
    """
    rate = float(epsilon)
    ratio = math.exp(-rate)
    gap = -math.expm1(-rate)
    even = (1 + ratio**2) / -math.expm1(-2 * rate)
    tail = (beyond + 1 + even) / gap + ratio / gap**2
    chance = (gap / (1 + ratio)) ** 2 * math.exp(-rate * (beyond + 1)) * tail
    # A step up, so that what underflows is not free.
    return min(1.0, math.nextafter((1 + math.exp(max(budget, rate))) * chance * OUTWARD, math.inf))
