"""What a server answers to a workload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Receipt:
    """What the server accepted; `workload_digest` is SHA-256 of the bytes that were sent.

    `envelope`: the same, signed (`equipoise.records.receipts`); `salt`: under which it commits to those bytes. Who
    keeps both can show later what was accepted.
    """

    round_id: str
    workload_digest: bytes
    statements: int
    queries: int
    accept_time: datetime
    envelope: bytes
    salt: bytes


@dataclass(frozen=True)
class Withdrawal:
    """That a workload was taken back; `envelope`: a signed receipt that says that none is in force."""

    round_id: str
    envelope: bytes


@dataclass(frozen=True)
class DryRun:
    """What a workload would come to: its size, and the largest half-width of an answer's interval.

    `max_uncertified`: of all queries of the round, not of this workload. `sensitivity`: by how much its counts
    together may move, in sum, when one record is replaced. `support`: the most records of the universe that one of
    its queries covers or leaves out, whichever are fewer. `expected_error`: the mean error over all queries that
    shares declare, as a fraction of the records, like the half-width; no promise rests on it.
    """

    statements: int
    queries: int
    max_half_width: float
    max_uncertified: int
    sensitivity: int
    support: int
    expected_error: float
