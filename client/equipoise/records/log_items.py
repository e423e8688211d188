"""The items of records about the log itself: its keys, its start, its restoration."""

from __future__ import annotations

from equipoise.records.codec import (
    COUNT,
    HASH,
    canonical_object,
    hex_of,
    key,
    one_of,
)
from equipoise.records.item_parts import (
    HEAD,
    JournalHead,
)

KEY_ID_BYTES = 8


@canonical_object
class KeyItem:
    """A key in force, or retired. `purpose` is "log" or "auditor"."""

    purpose: str = key("purpose", one_of("log", "auditor"))
    public: bytes = key("public", HASH)
    id: bytes = key("id", hex_of(KEY_ID_BYTES))
    time: int = key("time", COUNT)


@canonical_object
class StartItem:
    """That the log begins, and what the budget journal was then."""

    journal: JournalHead = key("journal", HEAD)
    time: int = key("time", COUNT)


@canonical_object
class RestorationItem:
    """The log as it was known before the store was restored."""

    lost_size: int = key("lost_size", COUNT)
    lost_root: bytes = key("lost_root", HASH)
    time: int = key("time", COUNT)
