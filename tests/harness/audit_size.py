"""How large the statistical audit and the searches for bad instances are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditSize:
    """`runs` on each input in each half of an audit; `tries`: instances that a search looks at.

    `worlds`: servers that are compared with a first one; `served`: rounds that are compared with a server's;
    `rounds`: of each mechanism that are held against their intervals.
    """

    runs: int
    tries: int
    worlds: int
    served: int
    rounds: int


# Where nothing else is asked for: the quick tier's, and that of all others.
QUICK, FAST = "quick", "fast"
SIZES = {
    QUICK: AuditSize(runs=200, tries=10, worlds=1, served=4, rounds=40),
    FAST: AuditSize(runs=500, tries=10, worlds=1, served=4, rounds=100),
    # So many runs refute claims that are a tenth too low all but surely: `test_empirical_audit.py` says how surely.
    "nightly": AuditSize(runs=36_000, tries=400, worlds=5, served=200, rounds=10_000),
}
