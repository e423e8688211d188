"""What items are called, how they are read and written, and of which items each kind of record consists."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from equipoise.records.codec import Codec, codec_of
from equipoise.records.dataset_items import DataItem, DatasetItem, DeletionItem, RetirementItem
from equipoise.records.identity_items import AuthorityItem, IdentityItem
from equipoise.records.items import (
    AbortItem,
    AccessItem,
    ChargeItem,
    DestructionItem,
    PlanItem,
    ReleaseItem,
    ReservationItem,
    ResultItem,
    RoundItem,
    SealItem,
    SettlementItem,
    ShareItem,
    SpendingItem,
    WorkloadItem,
)
from equipoise.records.log_items import ConfirmationItem, KeyItem, RestorationItem, StartItem
from equipoise.records.record import SALT_BYTES, VERSION, Audience, Item, Kind

AnyItem = TypeVar("AnyItem")

NAMES: Mapping[type, str] = MappingProxyType(
    {
        StartItem: "start",
        KeyItem: "key",
        RestorationItem: "restoration",
        ConfirmationItem: "confirmation",
        IdentityItem: "identity",
        AuthorityItem: "authority",
        DatasetItem: "dataset",
        DataItem: "data",
        RetirementItem: "retirement",
        DeletionItem: "deletion",
        RoundItem: "round",
        PlanItem: "plan",
        ShareItem: "share",
        SealItem: "seal",
        ReservationItem: "reservation",
        WorkloadItem: "workload",
        ReleaseItem: "release",
        SpendingItem: "spending",
        ResultItem: "result",
        AbortItem: "abort",
        SettlementItem: "settlement",
        ChargeItem: "charge",
        AccessItem: "access",
        DestructionItem: "destruction",
    }
)
ITEMS: Mapping[type, Codec[Any]] = MappingProxyType(
    {cls: codec_of(cls, {"item": name, "version": VERSION}) for cls, name in NAMES.items()}
)


def read_item(content: bytes, cls: type[AnyItem]) -> AnyItem:
    """Read an item of this class. Raises `VerificationFailed`, naming the key, for all other bytes."""
    item: AnyItem = ITEMS[cls].from_bytes(content, f"the item {NAMES[cls]}")
    return item


def make_item(value: object, audience: Audience, analyst: str = "") -> Item:
    """Writes an item under a fresh salt.

    Args:
        value: of one of the classes in `ITEMS`.
        audience: who may read it.
        analyst: whom it is about, where the audience is that analyst; else empty.
    """
    return Item(ITEMS[type(value)].to_bytes(value), secrets.token_bytes(SALT_BYTES), audience, analyst)


@dataclass(frozen=True)
class Layout:
    """What a record consists of: `first`, items at its beginning; then one `each` of every share, or of every key.

    In records of rounds and datasets the first of all speaks to everybody, and a second one to auditors only.
    """

    first: tuple[type, ...]
    each: type | None = None


LAYOUTS: Mapping[Kind, Layout] = MappingProxyType(
    {
        Kind.LOG_STARTED: Layout((StartItem,), KeyItem),
        Kind.LOG_RESTORED: Layout((RestorationItem,)),
        Kind.CLOCK_CONFIRMED: Layout((ConfirmationItem,)),
        Kind.KEY_ADDED: Layout((KeyItem,)),
        Kind.KEY_RETIRED: Layout((KeyItem,)),
        Kind.IDENTITY_CHANGED: Layout((IdentityItem,)),
        Kind.AUTHORITY_CHANGED: Layout((AuthorityItem,)),
        Kind.DATASET_REGISTERED: Layout((DatasetItem, DataItem)),
        Kind.DATASET_RETIRED: Layout((RetirementItem,)),
        Kind.DATASET_DELETED: Layout((DeletionItem,)),
        Kind.ROUND_OPENED: Layout((RoundItem, PlanItem), ShareItem),
        Kind.ROUND_SEALED: Layout((SealItem, ReservationItem), WorkloadItem),
        Kind.ROUND_RELEASED: Layout((ReleaseItem, SpendingItem), ResultItem),
        Kind.ROUND_ABORTED: Layout((AbortItem, SettlementItem), ChargeItem),
        Kind.SEED_READ: Layout((AccessItem,)),
        Kind.SEED_DESTROYED: Layout((DestructionItem,)),
    }
)
OF_ANALYSTS: tuple[type, ...] = (
    ShareItem,
    WorkloadItem,
    ResultItem,
    ChargeItem,
)  # removed together with the analyst
