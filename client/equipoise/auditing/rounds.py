"""What the log says of every round: its steps, in the only order in which they can follow one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.accounting import Cost
from equipoise.auditing.recorded_datasets import RecordedDataset, dataset_in_use, delete, register, retire
from equipoise.auditing.steps import Step
from equipoise.errors import VerificationFailed
from equipoise.records.dataset_items import DatasetItem
from equipoise.records.item_parts import AccountCharge, RecordedSession, SettledCharge
from equipoise.records.items import (
    AbortItem,
    AccessItem,
    DestructionItem,
    PlanItem,
    ReleaseItem,
    ReservationItem,
    RoundItem,
    SealItem,
    SettlementItem,
    ShareItem,
    SpendingItem,
)

Charges = dict[str, Cost]  # by account


@dataclass
class RecordedRound:
    """A round's steps, the registration of the table that it is about, and the account that is charged.

    `ended`: its release or abort.
    """

    opened: Step
    registered: Step
    account: str
    sealed: Step | None = None
    ended: Step | None = None
    readings: list[Step] = field(default_factory=list)
    destroyed: DestructionItem | None = None

    @property
    def terms(self) -> RoundItem:
        """Its public parameters."""
        return self.opened.one(RoundItem)

    @property
    def plan(self) -> PlanItem:
        """Its terms, its shares and its plan."""
        return self.opened.one(PlanItem)

    @property
    def session(self) -> RecordedSession | None:
        """What makes it a session, in which statements are answered while it is open; None where it is none."""
        return self.terms.session

    @property
    def protects_analysts(self) -> bool:
        """Whether there is a budget for what its analysts may learn of one another, or one of them at most."""
        return self.terms.analyst_budget is not None or len(self.analysts) <= 1

    @property
    def analysts(self) -> list[str]:
        """Who has a share, in order."""
        return [share.analyst for share in self.plan.shares]

    @property
    def release(self) -> ReleaseItem | None:
        """Its release; None where it was not released."""
        released = self.ended is not None and self.ended.record.has(ReleaseItem)
        return self.ended.one(ReleaseItem) if self.ended is not None and released else None

    @property
    def shown(self) -> list[tuple[Step, str, bool]]:
        """Of each step and each of its analysts, whether the analyst's item is shown, or its hash alone."""
        steps = [step for step in (self.opened, self.sealed, self.ended) if step is not None]
        return [
            (step, analyst, item is not None)
            for step in steps
            for analyst, item in zip(self.analysts, step.of_analysts, strict=False)
        ]

    @property
    def reads(self) -> list[AccessItem]:
        """Who has read its seed, and when, in the log's order."""
        return [step.one(AccessItem) for step in self.readings]

    @property
    def seal_time(self) -> int | None:
        """When it was sealed, in microseconds since 1970; None where it is not."""
        return None if self.sealed is None else self.sealed.one(ReservationItem).seal_time

    @property
    def state(self) -> str:
        """As far as the log knows."""
        if self.ended is not None:
            return self.ended.kind.removeprefix("round-")
        return "open" if self.sealed is None else "sealed"


@dataclass
class Recorded:
    """Everything of the log by name and by id."""

    datasets: dict[str, RecordedDataset] = field(default_factory=dict)
    rounds: dict[str, RecordedRound] = field(default_factory=dict)
    confirmations: list[Step] = field(default_factory=list)  # of clocks

    @property
    def registered(self) -> list[Step]:
        """The registrations of all versions of all datasets, in the order of the log."""
        steps = [step for each in self.datasets.values() for step in each.versions]
        return sorted(steps, key=lambda step: step.index)


def read_rounds(steps: Iterable[Step]) -> Recorded:
    """Returns the rounds of a log.

    Raises `VerificationFailed` naming the first step that cannot follow those before it.
    """
    recorded: Recorded | None = None
    for step in steps:
        if (step.kind == "log-started") != (recorded is None):
            raise VerificationFailed(f"{step}: only the first entry of a log may start it")
        if recorded is None:
            recorded = Recorded()
        _take(recorded, step)
    if recorded is None:
        raise VerificationFailed("the log is empty")
    return recorded


def _take(recorded: Recorded, step: Step) -> None:
    match step.kind:
        case "dataset-registered":
            register(recorded.datasets, step)
        case "dataset-retired":
            retire(recorded.datasets, step)
        case "dataset-deleted":
            rounds = [each for each in recorded.rounds.values() if each.ended is None]
            delete(recorded.datasets, step, {each.terms.dataset for each in rounds})
        case "round-opened":
            _open(recorded, step)
        case "round-sealed":
            ids = {step.one(SealItem).round_id, step.one(ReservationItem).round_id}
            history = _round_of(recorded, step, ids, "open")
            _require_root(step, step.one(SealItem).opened_root, history.opened)
            history.sealed = step
        case "round-released":
            ids = {step.one(ReleaseItem).round_id, step.one(SpendingItem).round_id}
            history = _round_of(recorded, step, ids, "sealed")
            _require_root(step, step.one(ReleaseItem).sealed_root, history.sealed)
            history.ended = step
        case "round-aborted":
            ids = {step.one(AbortItem).round_id, step.one(SettlementItem).round_id}
            history = _round_of(recorded, step, ids, "open", "sealed")
            _require_root(step, step.one(AbortItem).previous_root, history.sealed or history.opened)
            history.ended = step
        case "seed-read":
            # Whoever knew a seed before could have chosen a nonce, or a workload, by it.
            access = step.one(AccessItem)
            history = _round_of(recorded, step, {access.round_id}, "released", "aborted")
            if history.destroyed is not None:
                raise VerificationFailed(f"{step}: a seed was read after it was destroyed")
            history.readings.append(step)
        case "seed-destroyed":
            destruction = step.one(DestructionItem)
            history = _round_of(recorded, step, {destruction.round_id}, "released", "aborted")
            history.destroyed = destruction
        case "clock-confirmed":
            recorded.confirmations.append(step)
        case _:
            pass


def _open(recorded: Recorded, step: Step) -> None:
    opening, plan = step.one(RoundItem), step.one(PlanItem)
    dataset = dataset_in_use(recorded.datasets, step, opening.dataset)
    registered = dataset.versions[-1]
    _require_root(step, opening.dataset_root, registered)
    if opening.dataset_version != len(dataset.versions):
        raise VerificationFailed(f"{step}: the version that it names is not that of {registered}")
    if opening.round_id in recorded.rounds or plan.round_id != opening.round_id:
        raise VerificationFailed(f"{step}: the round {opening.round_id} is opened twice, or under two ids")
    if opening.records != registered.one(DatasetItem).records:
        raise VerificationFailed(f"{step}: the number of records differs from the dataset's")
    _require_analysts(step, opening.round_id, [share.analyst for share in plan.shares])
    for share, item in zip(plan.shares, step.record.each(ShareItem), strict=True):
        if item is not None and item.share != share:
            raise VerificationFailed(f"{step}: the share of {share.analyst!a} differs from the plan's")
    recorded.rounds[opening.round_id] = RecordedRound(step, registered, dataset.account)


def _round_of(recorded: Recorded, step: Step, ids: set[str], *states: str) -> RecordedRound:
    """Returns the round that the items of a step name, which must be one, and in one of these states."""
    history = recorded.rounds.get(min(ids))
    if len(ids) != 1 or history is None:
        raise VerificationFailed(f"{step}: the round {min(ids)} is not opened before")
    if history.state not in states:
        raise VerificationFailed(
            f"{step}: comes while the round is {history.state}: it must be {' or '.join(states)}"
        )
    if step.kind in ("round-sealed", "round-released", "round-aborted"):
        _require_analysts(step, min(ids), history.analysts)
    return history


def _require_analysts(step: Step, round_id: str, analysts: list[str]) -> None:
    """One item of each share, in the shares' order, whatever its analyst has done."""
    items = step.of_analysts
    if len(set(analysts)) != len(analysts) or len(items) != len(analysts):
        raise VerificationFailed(f"{step}: does not have one item for each share")
    for item, analyst in zip(items, analysts, strict=True):
        if item is not None and (item.analyst, item.round_id) != (analyst, round_id):
            raise VerificationFailed(f"{step}: the item of {analyst!a} is missing, or in another's place")


def _require_root(step: Step, root: bytes, before: Step | None) -> None:
    if before is None or root != before.root:
        raise VerificationFailed(f"{step}: does not name the root of {before}")


def recorded_charges(charges: Iterable[AccountCharge | SettledCharge]) -> Charges:
    """What each account was charged, as a record says."""
    return {charge.account: charge.cost for charge in charges}
