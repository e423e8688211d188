"""How large the statistical audit and the searches for bad instances are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditSize:
    """`runs` on each input in each half of an audit; `tries`: instances that a search looks at."""

    runs: int
    tries: int


SIZES = {"fast": AuditSize(runs=500, tries=10), "nightly": AuditSize(runs=40_000, tries=400)}
