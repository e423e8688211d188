"""Datasets and rounds with the facts that only the server knows. Frozen, free of protobuf and of the store."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.datasets import Dataset
from equipoise.model.rounds import MechanismPlan, Round


@dataclass(frozen=True, kw_only=True)
class DatasetRecord(Dataset):
    """A registered table with its `source`, relative to the data directory, and the column of its persons' ids.

    `person` is empty where each row is a person.
    """

    source: str
    person: str = ""


@dataclass(frozen=True, kw_only=True)
class RoundRecord(Round):
    """A round with its `plan`, the public number of `records`, the size of the universe, and who pays.

    `account`: the account of the dataset, which the round is charged to (`ledger.accounts`).

    In a record that was made for an analyst, `terms.shares` holds only the analyst's own share, and `state` is the
    state that analysts may see.
    """

    account: str
    plan: MechanismPlan
    records: int
    universe_size: int
