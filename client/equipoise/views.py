"""What a server shows of itself: rounds, plans, datasets, budgets, as plain values.

Epsilons and deltas are floats, times are aware datetimes in UTC, errors are fractions of the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from equipoise.accounting import Cost
from equipoise.schema import Schema


class RoundState(StrEnum):
    """Where a round stands. Analysts are shown SEALED while it runs."""

    OPEN = "open"
    SEALED = "sealed"
    RUNNING = "running"
    RELEASED = "released"
    ABORTED = "aborted"

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self in (RoundState.RELEASED, RoundState.ABORTED)


@dataclass(frozen=True)
class Identity:
    """Who a caller is; `role` is "analyst", "operator" or "auditor"."""

    name: str
    role: str


@dataclass(frozen=True)
class Analyst:
    """Somebody who was admitted. `certified_until`: when its last certificate expires; None if all are revoked."""

    name: str
    create_time: datetime
    certified_until: datetime | None


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) pair."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Share:
    """What one analyst may ask: statements, and linear queries (cells) of all of them together.

    `sensitivity`: by how much all its counts together may move, in sum, when one record is replaced; a predicate
    moves by 1, a marginal by 2. 0 where none is declared: then all statements may be marginals.
    `support`: how many records of the universe one query may cover or leave out, whichever are fewer; half of the
    universe is the most there is. 0 where none is declared: then it may be any query.
    """

    analyst: str
    statements: int
    queries: int
    sensitivity: int = 0
    support: int = 0

    @property
    def moved(self) -> int:
        """The sensitivity that is declared, or the most that so many statements can have."""
        return self.sensitivity or 2 * self.statements


@dataclass(frozen=True)
class SessionTerms:
    """What makes a round a session, in which statements are answered one at a time while it is open.

    `length`: how many statements there are in all, or, where the mechanism protects analysts, how many turns of
    `turn_seconds` each, in each of which every share has a slot; 0: as many as the shares allow. `ending`: what
    happens once the updates are used up: "hypothesis", answers without a bound, or "stop", refusals.
    """

    length: int = 0
    turn_seconds: int = 0
    ending: str = "hypothesis"


@dataclass(frozen=True)
class Dataset:
    """A registered table; its number of records is public. Where it is retired, no new rounds can be opened."""

    name: str
    schema: Schema
    records: int
    create_time: datetime
    retire_time: datetime | None = None


@dataclass(frozen=True)
class Round:
    """A round as every analyst who has a share in it sees it; `share` is the caller's own.

    `close_time`: when it closes by itself, or None. Results open at multiples of `release_grid_seconds` since 1970.
    `session`: set where it is one; a session without an analyst budget does not protect its analysts from one
    another. `answered`: how many statements of the caller's have their answers, where it is a session.
    """

    id: str
    dataset: str
    state: RoundState
    unit: str
    data_budget: Budget
    analyst_budget: Budget | None
    beta: float
    mechanism: str
    share: Share | None
    open_time: datetime
    release_time: datetime | None
    abort_reason: str
    seed_commitment: bytes
    close_time: datetime | None = None
    release_grid_seconds: int = 0
    session: SessionTerms | None = None
    answered: int = 0


@dataclass(frozen=True)
class Plan:
    """What a mechanism would do in a round, from public things only.

    `parameters` is a JSON object; `data_budget` and `analyst_budget` are the two costs as pairs at the round's
    own deltas, the analysts' None in a session that does not protect them; `promised_error` is the largest bound
    that any certified answer will carry.
    """

    mechanism: str
    parameters: str
    data_cost: Cost
    analyst_cost: Cost
    data_budget: Budget
    analyst_budget: Budget | None
    promised_error: float
    uncertified_at_most: int
    seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Progress:
    """How far a run has come: `done` of `total` steps of `phase`. `complete`: the answers can be released.

    While a session is open, the statements that have their answers of those that its shares allow.
    """

    phase: str
    done: int
    total: int
    seconds_left: float
    complete: bool
    peak_memory_bytes: int


@dataclass(frozen=True)
class RoundDetail:
    """A round as operators and auditors see it. `requested_mechanism`: "auto" where the server chose the plan's."""

    round: Round
    shares: tuple[Share, ...]
    plan: Plan
    progress: Progress
    requested_mechanism: str


@dataclass(frozen=True)
class Terms:
    """What an operator wants of a round.

    `unit` is "query" (one statement of one analyst may change unseen) or "analyst" (all of one analyst's may);
    `mechanism` is "auto" or a name; `options` is a JSON object for the mechanism, or empty. From `close_time`
    (aware) on the server seals, runs and releases the round by itself; None: the operator asks for each step.
    Results open at multiples of `release_grid_seconds` since 1970; 0 stands for the server's own setting. With
    `session` it is a session; then None for the `analyst_budget` says that analysts are not protected.
    """

    dataset: str
    shares: tuple[Share, ...]
    data_budget: Budget
    analyst_budget: Budget | None
    unit: str = "query"
    beta: float = 0.05
    mechanism: str = "auto"
    options: str = ""
    close_time: datetime | None = None
    release_grid_seconds: int = 0
    session: SessionTerms | None = None


@dataclass(frozen=True)
class Receipt:
    """What the server accepted; `workload_digest` is SHA-256 of the bytes that were sent.

    `envelope`: the same, signed (`equipoise.receipts`); `salt`: under which it commits to those bytes. Who keeps
    both can show later what was accepted. Both are empty for a request from before receipts were signed.
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
    """What a workload would come to: its size, and the largest bound a certified answer would carry.

    `uncertified_at_most`: of all queries of the round, not of this workload. `sensitivity`: by how much its counts
    together may move, in sum, when one record is replaced. `support`: the most records of the universe that one of
    its queries covers or leaves out, whichever are fewer.
    """

    statements: int
    queries: int
    promised_error: float
    uncertified_at_most: int
    sensitivity: int
    support: int


@dataclass(frozen=True)
class Account:
    """A budget account: its cap, what is spent, and what is spent or reserved, all at the cap's delta.

    `order`: the Renyi order at which it counts what rounds add, for good: a `divergence` of at most
    `most_divergence` is spent or reserved. None: rounds do not add, only the worst one counts.
    """

    name: str
    cap: Budget
    spent: Budget
    committed: Budget
    order: float | None = None
    divergence: float = 0.0
    most_divergence: float = 0.0


@dataclass(frozen=True)
class JournalEntry:
    """One line of the hash-chained budget journal; `events` is JSON. `action` is one of

    "open-account": an account's cap and how it counts, and beside which others for the same records; "set-cap":
    another cap; "reserve", "spend" and "release": a round's charge; "run": data may be touched from here on;
    "write-off": what a lost part of the journal may have spent.

    `round_id` is empty where there is none; `digest` is SHA-256 over the previous digest and this entry.
    """

    sequence: int
    time: datetime
    action: str
    account: str
    round_id: str
    cost: Cost
    events: str
    digest: bytes


@dataclass(frozen=True)
class ItemOpening:
    """An item of a record. Content and salt are empty where they were removed with an analyst."""

    content: bytes
    salt: bytes
    hash: bytes


@dataclass(frozen=True)
class RecordOpening:
    """A record of the log with all its items: `leaf` is entry number `index`; `padding` are the hashes behind."""

    index: int
    leaf: bytes
    items: tuple[ItemOpening, ...]
    padding: tuple[bytes, ...]


@dataclass(frozen=True)
class SealedSeed:
    """A round's seed as the auditor's key with this id opens it (`equipoise.seeds.open_sealed`)."""

    key_id: str
    sealed: bytes
