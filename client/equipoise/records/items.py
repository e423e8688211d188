"""The items of rounds' records: one class for each, whose keys are written out. `docs/formats.md` explains them.

An item is a canonical JSON object with its name, its version and these keys. Times are microseconds since 1970,
costs are in whole units (`equipoise.accounting.Cost`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.records.codec import (
    COUNT,
    HASH,
    OBJECT,
    REAL,
    TEXT,
    canonical_object,
    codec_of,
    key,
    list_of,
    one_of,
    optional,
)
from equipoise.records.item_parts import (
    CHARGED,
    CHARGES,
    HEAD,
    NOTHING_CHARGED,
    SESSION,
    STREAM,
    SYNOPSIS,
    AccountCharge,
    JournalHead,
    RecordedSession,
    RecordedStream,
    RecordedSynopsis,
    SettledCharge,
)
from equipoise.records.public_facts import ACCEPTED, BUDGET, COST, PLAN, SHARE, TERMS, RecordedTerms


@canonical_object
class RoundItem:
    """A round's public parameters.

    `dataset_root`: of the record of the dataset's version that it is about. `seed_fingerprint`: the same for the
    same seed (`sealed_seeds.fingerprint`). `analyst_events` is what `accounting.events_to_json` writes, as an
    object. `analyst_budget` and `analyst_cost` are None in a session that does not protect its analysts; `session`
    is None where the round is none. `standing`: the measurement that a grant's answers are combined with, which its
    statements cost less by, as its terms name it (`residuals.released`); None without one, and where nothing is
    paid by statement.
    """

    round_id: str = key("round", TEXT)
    dataset: str = key("dataset", TEXT)
    dataset_version: int = key("dataset_version", COUNT)
    dataset_root: bytes = key("dataset_root", HASH)
    unit: str = key("unit", one_of("query", "analyst"))
    data_budget: Budget = key("data_budget", BUDGET)
    analyst_budget: Budget | None = key("analyst_budget", optional(BUDGET))
    beta: float = key("beta", REAL)
    mechanism: str = key("mechanism", TEXT)
    max_half_width: float = key("max_half_width", REAL)
    max_uncertified: int = key("max_uncertified", COUNT)
    analyst_cost: Cost | None = key("analyst_cost", optional(COST))
    analyst_events: Mapping[str, Any] = key("analyst_events", OBJECT)
    analyst_order: float | None = key("analyst_order", optional(REAL))
    seed_commitment: bytes = key("seed_commitment", HASH)
    seed_fingerprint: bytes = key("seed_fingerprint", HASH)
    open_time: int = key("open_time", COUNT)
    close_time: int | None = key("close_time", optional(COUNT))
    release_grid_seconds: int = key("release_grid_seconds", COUNT)
    records: int = key("records", COUNT)
    universe_size: int = key("universe_size", COUNT)
    session: RecordedSession | None = key("session", optional(SESSION))
    accepted: tuple[Danger, ...] = key("accepted", ACCEPTED)
    standing: Mapping[str, Any] | None = key("standing", optional(OBJECT))


@canonical_object
class PlanItem:
    """A round's terms, its shares in their order, and its plan."""

    round_id: str = key("round", TEXT)
    terms: RecordedTerms = key("terms", TERMS)
    shares: tuple[Share, ...] = key("shares", list_of(SHARE))
    plan: MechanismPlan = key("plan", PLAN)
    journal: JournalHead = key("journal", HEAD)


@canonical_object
class ShareItem:
    """What one analyst may ask in a round."""

    round_id: str = key("round", TEXT)
    analyst: str = key("analyst", TEXT)
    statements: int = key("statements", COUNT)
    queries: int = key("queries", COUNT)
    sensitivity: int = key("sensitivity", COUNT)
    support: int = key("support", COUNT)
    ways: int = key("ways", COUNT)

    @classmethod
    def of(cls, round_id: str, share: Share) -> ShareItem:
        """Return the item of a round's share."""
        limits = share.sensitivity, share.support, share.ways
        return cls(round_id, share.analyst, share.statements, share.queries, *limits)

    @property
    def share(self) -> Share:
        """The share."""
        return Share(self.analyst, self.statements, self.queries, self.sensitivity, self.support, self.ways)


@canonical_object
class SealItem:
    """That a round takes nothing more. `nonce` is an auditor's, None without one."""

    round_id: str = key("round", TEXT)
    opened_root: bytes = key("opened_root", HASH)
    nonce: bytes | None = key("nonce", optional(HASH))


@canonical_object
class ReservationItem:
    """What was reserved for a round until it was sealed."""

    round_id: str = key("round", TEXT)
    charges: tuple[AccountCharge, ...] = key("charges", CHARGES)
    journal: JournalHead = key("journal", HEAD)
    seal_time: int = key("seal_time", COUNT)


@canonical_object
class WorkloadItem:
    """The commitment to the workload of one analyst that was in force; None without one."""

    round_id: str = key("round", TEXT)
    analyst: str = key("analyst", TEXT)
    commitment: bytes | None = key("commitment", optional(HASH))


@canonical_object
class ReleaseItem:
    """The release of a round; `synopsis` is None where none was released.

    `measurement`: the SHA-256 of a measurement's numbers, from which later rounds answer; None of any other round.
    `spent`: what a grant's statements came to, in units of 10^-12 of rho, which is all that it is charged; None of
    any other round.
    """

    round_id: str = key("round", TEXT)
    sealed_root: bytes = key("sealed_root", HASH)
    release_time: int = key("release_time", COUNT)
    synopsis: RecordedSynopsis | None = key("synopsis", optional(SYNOPSIS))
    measurement: bytes | None = key("measurement", optional(HASH))
    spent: int | None = key("spent", optional(COUNT))


@canonical_object
class SpendingItem:
    """What a released round has spent, when, and on which data."""

    round_id: str = key("round", TEXT)
    charges: tuple[AccountCharge, ...] = key("charges", CHARGES)
    journal: JournalHead = key("journal", HEAD)
    commit_time: int = key("commit_time", COUNT)
    data_digest: bytes = key("data_digest", HASH)


@canonical_object
class ResultItem:
    """One analyst's results, None where nothing was asked, and what they cost."""

    round_id: str = key("round", TEXT)
    analyst: str = key("analyst", TEXT)
    stream: RecordedStream | None = key("stream", optional(STREAM))
    charge: Cost = key("charge", COST)


@canonical_object
class AbortItem:
    """The end of a round without a release. `previous_root`: of its sealing, or of its opening."""

    round_id: str = key("round", TEXT)
    previous_root: bytes = key("previous_root", HASH)
    reason: str = key("reason", TEXT)
    abort_time: int = key("abort_time", COUNT)


@canonical_object
class SettlementItem:
    """What has become of the charges of a round that was aborted."""

    round_id: str = key("round", TEXT)
    charges: tuple[SettledCharge, ...] = key("charges", list_of(codec_of(SettledCharge)))
    journal: JournalHead = key("journal", HEAD)


@canonical_object
class ChargeItem:
    """What has become of one analyst's charge in a round that was aborted; "none" where it was never charged."""

    round_id: str = key("round", TEXT)
    analyst: str = key("analyst", TEXT)
    charge: Cost = key("charge", COST)
    state: str = key("state", one_of(*CHARGED, NOTHING_CHARGED))


@canonical_object
class AccessItem:
    """That an auditor was given a round's sealed seed."""

    round_id: str = key("round", TEXT)
    auditor: str = key("auditor", TEXT)
    time: int = key("time", COUNT)


@canonical_object
class DestructionItem:
    """That nobody can be given a round's seed any more."""

    round_id: str = key("round", TEXT)
    time: int = key("time", COUNT)
