"""What counting what is asked for costs the analysts, and what measuring the tables costs the data."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from equipoise.accounting.repair import gaussian_rho


def votes_l1_sensitivity(votes: int, sets: int) -> int:
    """Returns by how much all vote counts together move, at most, when one unit's content is replaced by any other.

    `votes`: how many sets the unit votes for at most, for each at most once (one for a statement; for an analyst
    its public share of statements). The counts are sums over units of 0/1 vectors, one place a set, with at most
    `votes` ones. Replacing one unit's vector by another moves as many counts, by 1 each, as the two differ in: at
    most `2 votes`, and at most `sets`. A statement about no set of the family, padding and an absent analyst are
    the zero vector, so they are covered. As every count moves by 0 or 1, the number is both the L1 sensitivity
    of the counts and the square of the L2 one.

    Args:
        votes: how many sets the unit votes for at most, each at most once: one for a statement; for an analyst its
            public share of statements.
        sets: how many sets there are.
    """
    return min(2 * votes, sets)


def tables_rho(variances: Iterable[Fraction]) -> Fraction:
    """Returns the rho of tables that are each counted once, with discrete Gaussian noise of these variances.

    Replacing a record moves two cells of a table by 1, or none: squared L2 sensitivity 2, so a table costs
    `1 / variance` in zCDP (`gaussian_rho`). Rhos add, also where the variances are drawn beforehand, from
    whatever does not depend on the data (Bun & Steinke 2016, Lemma 1.7).
    """
    return sum((gaussian_rho(Fraction(2), variance, 1) for variance in variances), Fraction(0))
