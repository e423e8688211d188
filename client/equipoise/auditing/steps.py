"""Records as steps of the log: each leaf with what its record says, read by `equipoise.records.opened_records`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from equipoise.errors import VerificationFailed
from equipoise.model.log import RecordOpening
from equipoise.records.dataset_items import DataItem
from equipoise.records.item_parts import JournalHead
from equipoise.records.items import PlanItem, ReservationItem, SettlementItem, SpendingItem
from equipoise.records.log_items import ConfirmationItem, StartItem
from equipoise.records.opened_records import ReadRecord, open_record
from equipoise.records.record import Kind
from equipoise.records.record_layouts import OF_ANALYSTS

AnyItem = TypeVar("AnyItem")


@dataclass(frozen=True)
class Step:
    """An entry of the log with its record."""

    index: int
    record: ReadRecord

    @property
    def kind(self) -> Kind:
        """The kind of the step."""
        return self.record.kind

    @property
    def root(self) -> bytes:
        """The record's root, 32 bytes."""
        return self.record.root

    @property
    def journal(self) -> JournalHead | None:
        """The head of the budget journal that the record commits to; None where its kind commits to none."""
        heads = (StartItem, ConfirmationItem, DataItem, PlanItem, ReservationItem, SpendingItem, SettlementItem)
        return next((item.journal for item in self.record.items if isinstance(item, heads)), None)

    @property
    def of_analysts(self) -> list[Any]:
        """The item of each share, in the shares' order; None for an analyst who was deleted."""
        return [item for cls in OF_ANALYSTS for item in self.record.each(cls)]

    def one(self, cls: type[AnyItem]) -> AnyItem:
        """Returns the item of this class at the record's beginning."""
        return self.record.one(cls)

    def __str__(self) -> str:
        return f"entry {self.index} of the log ({self.kind})"


def open_steps(records: Iterable[RecordOpening], leaves: tuple[bytes, ...]) -> tuple[Step, ...]:
    """Returns the step behind each leaf.

    Raises `VerificationFailed` naming the first record that is not its leaf's.

    Args:
        records: the opened records, in the log's order.
        leaves: every leaf of the log, in order.
    """
    steps: list[Step] = []
    for record in records:
        if record.index != len(steps) or record.index >= len(leaves):
            raise VerificationFailed(f"entry {len(steps)} of the log has no record, or two")
        if record.leaf != leaves[record.index]:
            raise VerificationFailed(f"entry {record.index} of the log is not the leaf of its record")
        steps.append(open_step(record))
    if len(steps) != len(leaves):
        raise VerificationFailed(f"entry {len(steps)} of the log has no record")
    return tuple(steps)


def open_step(record: RecordOpening) -> Step:
    """Read a record, all of which must be what its leaf commits to. Raises `VerificationFailed`."""
    what = f"entry {record.index} of the log"
    return Step(record.index, open_record(record.leaf, record.items, record.padding, what))


def newest_head(steps: Iterable[Step]) -> int:
    """Returns the newest entry of the budget journal that the log commits to. Later ones enter the log in turn."""
    return max((step.journal.sequence for step in steps if step.journal is not None), default=0)
