"""The items of records about the log itself: its keys, its start, its restoration."""

from __future__ import annotations

from equipoise.records.codec import (
    COUNT,
    HASH,
    canonical_object,
    hex_of,
    key,
    one_of,
    optional,
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

    def covers(self, index: int, size: int, root: bytes) -> bool:
        """Whether it admits that a state of the log was lost that is not contained in the log any more.

        The entries before the record are those of the older copy, so a smaller state must still be contained. Only
        where two copies were both used is the lost log the shorter one, and nobody knows where they parted.

        Args:
            index: of the record in the log: of the first one, where several say the same.
            size: of the state, in entries.
            root: of the state.
        """
        if size == self.lost_size:
            return root == self.lost_root
        return size < self.lost_size and (index < size or self.lost_size < index)


@canonical_object
class ConfirmationItem:
    """That the holder of the state directory has said that a clock is right, which the server did not trust.

    `before`: the time that was recorded before; None: none was. `journal`: the budget journal's newest entry then.
    """

    before: int | None = key("before", optional(COUNT))
    journal: JournalHead = key("journal", HEAD)
    time: int = key("time", COUNT)
