"""Budget accounts as the journal makes them, recomputed entry by entry by the rules of `docs/privacy-filter.md`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    Cost,
    PrivacyEvent,
    events_from_json,
)
from equipoise.auditing.charge_parts import is_cost_of, is_part_of
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import Budget, Counted, JournalEntry
from equipoise.model.rounds import GRANT
from equipoise.verification.conversion import epsilon_of, fits, limits_of

SUM, WORST = "sum", "worst"  # every round adds; only the worst counts, as a unit lives in one round


@dataclass
class Charge:
    """What a round holds on one account. `state`: "reserved", "spent" or "released"."""

    state: str
    cost: Cost
    parts: tuple[PrivacyEvent, ...]
    mechanism: str


@dataclass
class Account:
    """One account. `order` and `committed`, what is reserved or spent with what was lost: where rounds add."""

    name: str
    composition: str
    cap: Budget
    order: float | None
    charges: dict[str, Charge] = field(default_factory=dict)
    lost: list[Cost] = field(default_factory=list)
    committed: Cost = field(default_factory=Cost)

    @property
    def live(self) -> list[Cost]:
        """Every amount that counts."""
        return [*self.lost, *(each.cost for each in self.charges.values() if each.state != "released")]

    @property
    def totals(self) -> set[Cost]:
        """What must be within the cap, each for itself: the sum, or every round's."""
        return {self.committed} if self.composition == SUM else {*self.live}

    @property
    def committed_epsilon(self) -> float:
        """What counts, at the cap's delta; 0 where there is nothing."""
        some = self.totals - {Cost()}
        return max((epsilon_of(each, self.cap.delta, self.order) for each in some), default=0.0)

    @property
    def counted(self) -> Counted:
        """What counts, of the two limits that follow from cap and order; where rounds do not add, nothing does."""
        if self.order is None:
            return Counted()
        divergence, delta = limits_of(self.cap.epsilon, self.cap.delta, self.order)
        return Counted(
            order=self.order,
            divergence=self.committed.divergence / RHO_UNIT,
            max_divergence=divergence,
            delta=self.committed.delta / DELTA_UNIT,
            max_delta=delta,
        )

    def holds(self, total: Cost) -> bool:
        """Whether a total stays within the cap."""
        return fits(total, self.cap.epsilon, self.cap.delta, self.order)

    def is_made_of_parts(self, round_id: str) -> bool:
        """Whether what a round was charged is what the parts of its charge come to, as this account counts."""
        charge = self.charges[round_id]
        try:
            return is_cost_of(charge.parts, charge.cost, self.order)
        except (ValueError, ArithmeticError):
            return False


@dataclass(frozen=True)
class Moment:
    """An account right after one entry changed it."""

    entry: JournalEntry
    account: Account


class Accounts:
    """All accounts by name; `moments` reads the journal on and yields what every entry made of its account."""

    def __init__(self) -> None:
        self.by_name: dict[str, Account] = {}
        self.ran: dict[str, int] = {}  # which entry says that a round may touch its data
        self._lost: dict[str, list[tuple[float | None, Cost]]] = {}

    def moments(self, entries: Iterable[JournalEntry]) -> Iterator[Moment]:
        """Raises `VerificationFailed` naming the first entry that cannot follow those before it."""
        for entry in entries:
            try:
                self._apply(entry)
            except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
                problem = f"entry {entry.sequence} of the budget journal cannot follow those before it"
                raise VerificationFailed(f"{problem}: {entry.action!a} on {entry.account!a}") from None
            if entry.account in self.by_name:
                yield Moment(entry, self.by_name[entry.account])

    def _apply(self, entry: JournalEntry) -> None:
        name, events = entry.account, json.loads(entry.events, object_pairs_hook=_once)
        match entry.action:
            case "open-account" if name not in self.by_name:
                self.by_name[name] = self._open_account(name, events)
            case "set-cap":
                self.by_name[name].cap = _cap(events)
            case "reserve":
                self._reserve(entry, str(events.get("mechanism", "")))
            case "run":
                self._run(entry)
            case "reduce":
                self._reduce(entry)
            case "spend":
                self._settle(entry, "spent")
            case "release":
                if entry.round_id in self.ran:
                    raise ValueError  # what has touched data is never given back
                self._settle(entry, "released")
            case "write-off" if name in self.by_name:
                account = self.by_name[name]
                account.lost.append(entry.cost)
                account.committed += entry.cost
            case "write-off":
                if name:
                    self._lost.setdefault(name, []).append((events.get("order"), entry.cost))
            case _:
                raise ValueError

    def _run(self, entry: JournalEntry) -> None:
        if entry.cost != Cost() or self.by_name[entry.account].charges[entry.round_id].state != "reserved":
            raise ValueError
        self.ran.setdefault(entry.round_id, entry.sequence)

    def _open_account(self, name: str, events: Mapping[str, Any]) -> Account:
        composition, order = events["composition"], events.get("order")
        if composition not in (SUM, WORST) or not _suits(order, composition):
            raise ValueError
        lost = self._lost.pop(name, [])
        if any(counted_at != order for counted_at, _ in lost):
            raise ValueError  # an order is never chosen anew
        account = Account(name, composition, _cap(events), None if order is None else float(order))
        account.lost = [cost for _, cost in lost]
        account.committed = sum(account.lost, Cost())
        return account

    def _reserve(self, entry: JournalEntry, mechanism: str) -> None:
        account = self.by_name[entry.account]
        if not entry.round_id or entry.round_id in account.charges:
            raise ValueError
        parts = events_from_json(entry.events)
        account.charges[entry.round_id] = Charge("reserved", entry.cost, parts, mechanism)
        account.committed += entry.cost

    def _reduce(self, entry: JournalEntry) -> None:
        account = self.by_name[entry.account]
        charge, spent = account.charges[entry.round_id], events_from_json(entry.events)
        if charge.state != "reserved" or charge.mechanism != GRANT or not is_part_of(spent, charge.parts):
            raise ValueError
        account.committed = _less(account.committed, charge.cost) + entry.cost
        charge.cost, charge.parts = entry.cost, spent

    def _settle(self, entry: JournalEntry, state: str) -> None:
        account = self.by_name[entry.account]
        charge = account.charges[entry.round_id]
        if (
            charge.state != "reserved"
            or charge.cost != entry.cost
            or charge.parts != events_from_json(entry.events)
        ):
            raise ValueError
        charge.state = state
        if state == "released":
            account.committed = _less(account.committed, charge.cost)


def _suits(order: object, composition: str) -> bool:
    """Whether an account has an order where rounds add, and only there."""
    if composition == WORST:
        return order is None
    return type(order) in (float, int) and isinstance(order, float | int) and 1 < order < math.inf


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object in which no name stands twice, as readers differ in which value they take."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _cap(events: Mapping[str, Any]) -> Budget:
    epsilon, delta = events["cap"]["epsilon"], events["cap"]["delta"]
    if not (
        type(epsilon) in (int, float) and type(delta) in (int, float) and 0 < epsilon < math.inf and 0 < delta < 1
    ):
        raise ValueError
    return Budget(float(epsilon), float(delta))


def _less(total: Cost, part: Cost) -> Cost:
    return Cost(
        total.rho - part.rho,
        total.epsilon - part.epsilon,
        total.delta - part.delta,
        total.divergence - part.divergence,
    )
