"""What several items of records hold: charges, heads of the journal, and digests of what was released."""

from __future__ import annotations

from equipoise.accounting import Cost
from equipoise.model.rounds import Ending
from equipoise.records.codec import (
    COUNT,
    HASH,
    TEXT,
    Codec,
    canonical_object,
    codec_of,
    key,
    list_of,
    name_of,
    one_of,
)
from equipoise.records.public_facts import (
    COST,
)

CHARGED = ("spent", "released")  # what has become of the charges of a round that has ended
NOTHING_CHARGED = "none"  # of a round that was aborted before anything was reserved


@canonical_object
class JournalHead:
    """The budget journal's last entry, the step's own included."""

    sequence: int = key("sequence", COUNT)
    digest: bytes = key("digest", HASH)


@canonical_object
class AccountCharge:
    """What one account is charged for a round."""

    account: str = key("account", TEXT)
    cost: Cost = key("cost", COST)


@canonical_object
class SettledCharge:
    """What one account was charged for a round, and what has become of it: "spent" or "released"."""

    account: str = key("account", TEXT)
    cost: Cost = key("cost", COST)
    state: str = key("state", one_of(*CHARGED))


@canonical_object
class RecordedStream:
    """One analyst's results: their digest, how many messages they are, and how many answers."""

    digest: bytes = key("digest", HASH)
    messages: int = key("messages", COUNT)
    queries: int = key("queries", COUNT)


@canonical_object
class RecordedSynopsis:
    """The released synopsis: its digest, and how many records it has."""

    digest: bytes = key("digest", HASH)
    records: int = key("records", COUNT)


@canonical_object
class RecordedSession:
    """What makes a round a session. `length` counts turns where `turn_seconds` is not 0, and else statements."""

    ending: Ending = key("ending", name_of(Ending))
    length: int = key("length", COUNT)
    shares: int = key("shares", COUNT)
    turn_seconds: int = key("turn_seconds", COUNT)


HEAD: Codec[JournalHead] = codec_of(JournalHead)
STREAM: Codec[RecordedStream] = codec_of(RecordedStream)
SYNOPSIS: Codec[RecordedSynopsis] = codec_of(RecordedSynopsis)
SESSION: Codec[RecordedSession] = codec_of(RecordedSession)
CHARGES: Codec[tuple[AccountCharge, ...]] = list_of(codec_of(AccountCharge))
