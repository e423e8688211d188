"""What the log says of every round: its steps, in the only order in which they can follow one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.accounting import Cost
from equipoise.auditing.steps import Step
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.datasets import read_people
from equipoise.model.persons import PersonMode
from equipoise.records.item_parts import AccountCharge, RecordedSession, SettledCharge
from equipoise.records.items import (
    AbortItem,
    AccessItem,
    DataItem,
    DatasetItem,
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
    """A round's steps, and the account that its dataset is charged to. `ended`: its release or abort."""

    opened: Step
    account: str
    sealed: Step | None = None
    ended: Step | None = None
    reads: list[AccessItem] = field(default_factory=list)
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

    datasets: dict[str, Step] = field(default_factory=dict)
    rounds: dict[str, RecordedRound] = field(default_factory=dict)

    def account_of(self, dataset: str) -> str:
        """The account that a dataset's rounds are charged to."""
        return self.datasets[dataset].one(DataItem).account


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
            _register(recorded, step)
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
            history.reads.append(access)
        case "seed-destroyed":
            destruction = step.one(DestructionItem)
            history = _round_of(recorded, step, {destruction.round_id}, "released", "aborted")
            history.destroyed = destruction
        case _:
            pass


def _register(recorded: Recorded, step: Step) -> None:
    """New people get an account under the dataset's name; the same people have the account that they had."""
    data = step.one(DataItem)
    name = data.dataset
    if name in recorded.datasets or step.one(DatasetItem).dataset != name:
        raise VerificationFailed(f"{step}: the dataset {name!a} is registered twice, or under two names")
    try:
        named = read_people(data.people)
    except InvalidArgument:
        raise VerificationFailed(f"{step}: does not say whose people {name!a} holds") from None
    if named is not None and named not in recorded.datasets:
        raise VerificationFailed(f"{step}: {name!a} holds the people of {named!a}, which is not registered before")
    account = name if named is None else recorded.account_of(named)
    if data.account != account:
        whose = "new people" if named is None else f"the people of {named!a}"
        raise VerificationFailed(
            f"{step}: {name!a} holds {whose}, but has the account {data.account!a} and not {account!a}"
        )
    persons, records = step.one(DatasetItem).persons, step.one(DatasetItem).records
    if (data.person is None) != (persons.mode is PersonMode.ROWS):
        raise VerificationFailed(f"{step}: {name!a} says who is a person, and not by which column, or the reverse")
    if records % persons.records:
        raise VerificationFailed(f"{step}: {name!a} does not have {persons.records:,} records a person")
    recorded.datasets[name] = step


def _open(recorded: Recorded, step: Step) -> None:
    opening, plan = step.one(RoundItem), step.one(PlanItem)
    dataset = recorded.datasets.get(opening.dataset)
    if dataset is None:
        raise VerificationFailed(f"{step}: the dataset {opening.dataset!a} is not registered before")
    _require_root(step, opening.dataset_root, dataset)
    if opening.round_id in recorded.rounds or plan.round_id != opening.round_id:
        raise VerificationFailed(f"{step}: the round {opening.round_id} is opened twice, or under two ids")
    if opening.records != dataset.one(DatasetItem).records:
        raise VerificationFailed(f"{step}: the number of records is not the dataset's")
    _require_analysts(step, opening.round_id, [share.analyst for share in plan.shares])
    for share, item in zip(plan.shares, step.record.each(ShareItem), strict=True):
        if item is not None and item.share != share:
            raise VerificationFailed(f"{step}: the share of {share.analyst!a} is not the plan's")
    recorded.rounds[opening.round_id] = RecordedRound(step, recorded.account_of(opening.dataset))


def _round_of(recorded: Recorded, step: Step, ids: set[str], *states: str) -> RecordedRound:
    """Returns the round that the items of a step name, which must be one, and in one of these states."""
    history = recorded.rounds.get(min(ids))
    if len(ids) != 1 or history is None:
        raise VerificationFailed(f"{step}: the round {min(ids)} is not opened before")
    if history.state not in states:
        raise VerificationFailed(f"{step}: comes while the round is {history.state}, and not {' or '.join(states)}")
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
