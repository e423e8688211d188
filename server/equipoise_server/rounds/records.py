"""What the rounds service takes and gives. Frozen, free of protobuf and of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from equipoise.model.views import JournalEntry
from equipoise.queries.schema import Schema
from equipoise_server.mechanisms.interface import Budget, Plan, Share
from equipoise_server.rounds.state_machine import ROUND, SESSION, Lifecycle, RoundState

__all__ = [
    "AccountRecord",
    "Budget",
    "DatasetRecord",
    "DryRun",
    "Ending",
    "JournalEntry",
    "Plan",
    "ProgressRecord",
    "ReceiptRecord",
    "RoundRecord",
    "SessionTerms",
    "Share",
    "StreamDigest",
    "Terms",
]


class Ending(StrEnum):
    """What a session does with statements once its updates are used up, by the name under which it is stored."""

    HYPOTHESIS = "hypothesis"  # answers them from the last hypothesis, without a bound
    STOP = "stop"  # refuses them


@dataclass(frozen=True)
class SessionTerms:
    """What an operator wants of a session besides what makes a round; all of it public.

    `length`: statements in all, or, where the mechanism gives every share a slot in every turn, turns; 0 stands for
    the sum of the shares' statements where a session is opened. `turn_seconds`: how long a turn takes, 0 where
    statements are answered at once.
    """

    length: int = 0
    turn_seconds: int = 0
    ending: Ending = Ending.HYPOTHESIS


@dataclass(frozen=True)
class Terms:
    """What an operator wants of a round; all of it public.

    `unit` is "query" or "analyst", `mechanism` a mechanism's name or "auto", `options` JSON values. From
    `close_time` on the server seals, runs and releases the round by itself; None: the operator asks for each step.
    Results open at multiples of `release_grid_seconds` since 1970; 0 stands for the server's own setting.
    `session`: set where it is a session, in which statements are answered while it is open. `analyst_budget` is
    None where its analysts are not protected from one another, which only a session can leave them.
    """

    dataset: str
    unit: str
    data_budget: Budget
    analyst_budget: Budget | None
    beta: float
    mechanism: str
    shares: tuple[Share, ...]
    options: Mapping[str, object]
    close_time: datetime | None = None
    release_grid_seconds: int = 0
    session: SessionTerms | None = None

    @property
    def course(self) -> Lifecycle:
        """How it goes its way."""
        return ROUND if self.session is None else SESSION


@dataclass(frozen=True)
class DatasetRecord:
    """A registered table. `source` is relative to the data directory; `records` is the public n.

    `retire_time` is None while new rounds can be opened on it.
    """

    name: str
    source: str
    schema: Schema
    records: int
    create_time: datetime
    retire_time: datetime | None = None


@dataclass(frozen=True)
class RoundRecord:
    """A round. `release_time` is None until released; `abort_reason` is empty unless aborted.

    As given to an analyst, `terms.shares` holds only its own share and `state` only what analysts may see.
    """

    id: str
    terms: Terms
    state: RoundState
    plan: Plan
    records: int
    universe_size: int
    open_time: datetime
    release_time: datetime | None
    abort_reason: str
    seed_commitment: bytes


@dataclass(frozen=True)
class ReceiptRecord:
    """What was accepted. `workload_digest` is the SHA-256 of the exact bytes.

    `envelope`: the signed receipt, `equipoise.records.receipts`; `salt`: the analyst's, under which it commits to
    the workload.
    """

    round_id: str
    workload_digest: bytes
    statements: int
    queries: int
    accept_time: datetime
    envelope: bytes
    salt: bytes


@dataclass(frozen=True)
class StreamDigest:
    """What commits to one analyst's result stream (`equipoise.records.record.stream_digest`), and how long it
    is."""

    digest: bytes
    messages: int
    queries: int


@dataclass(frozen=True)
class DryRun:
    """What a workload would count for, and what the round's plan promises of certified and other answers.

    `sensitivity`: by how much its counts together may move, in sum, when one record is replaced. `support`: the
    most records of the universe that one of its queries covers or leaves out, whichever are fewer.
    """

    statements: int
    queries: int
    promised_error: float
    uncertified_at_most: int
    sensitivity: int
    support: int


@dataclass(frozen=True)
class ProgressRecord:
    """How far a run has come; for operators only.

    `phase` is empty where no run is known, and starts with "failed" where the worker ended without answers.
    `seconds_left` is an estimate for the phase; `peak_memory_bytes` is 0 until the worker has ended.
    """

    phase: str
    done: int
    total: int
    seconds_left: float
    complete: bool
    peak_memory_bytes: int


@dataclass(frozen=True)
class AccountRecord:
    """What stands on one account. `spent` and `committed` (spent or reserved) are at the cap's delta, or (0, 0).

    `order`: the Renyi order at which it counts, or None; at it `divergence` of `most_divergence` is committed.
    """

    name: str
    cap: Budget
    spent: Budget
    committed: Budget
    order: float | None = None
    divergence: float = 0.0
    most_divergence: float = 0.0
