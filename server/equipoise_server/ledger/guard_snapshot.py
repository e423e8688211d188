"""The rollback guard's snapshot of a store, and its encoding in the guard's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from equipoise.accounting import Cost
from equipoise.records.codec import COUNT, HASH, REAL, TEXT, Codec, mapping_of, object_codec
from equipoise.records.public_facts import COST
from equipoise_server.storage.tree_heads import EMPTY, TreeHead

VERSION = 1


@dataclass(frozen=True)
class Snapshot:
    """A store's state at one journal entry, as the rollback guard remembers it.

    `sequence` and `digest`: the entry; 0 and zeros where the journal was empty. `committed`: the amount that was
    spent or reserved on every account, by name. `orders`: the Renyi orders of the accounts to which rounds add.
    `requests`: how many requests were carried out. `log`: the log's size and root. `answered`: how many statements
    sessions had answered. `shared`: the account of every dataset that shares another one's.
    """

    sequence: int
    digest: bytes
    committed: Mapping[str, Cost]
    orders: Mapping[str, float] = field(default_factory=dict)
    requests: int = 0
    log: TreeHead = EMPTY
    answered: int = 0
    shared: Mapping[str, str] = field(default_factory=dict)


LOG: Codec[TreeHead] = object_codec(TreeHead, {"size": ("size", COUNT), "root": ("root", HASH)})
SNAPSHOT: Codec[Snapshot] = object_codec(
    Snapshot,
    {
        "sequence": ("sequence", COUNT),
        "digest": ("digest", HASH),
        "committed": ("committed", mapping_of(COST)),
        "orders": ("orders", mapping_of(REAL)),
        "requests": ("requests", COUNT),
        "log": ("log", LOG),
        "answered": ("answered", COUNT),
        "shared": ("shared", mapping_of(TEXT)),
    },
    {"version": VERSION},
)
