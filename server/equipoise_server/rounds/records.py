"""Datasets and rounds with the facts that only the server knows. Frozen, free of protobuf and of the store."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import WrongState
from equipoise.model.datasets import Dataset, DatasetState
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
    """A round with its `plan`, the size of the universe, and who pays.

    `account`: the account of the dataset, which the round is charged to (`ledger.accounts`).

    In a record that was made for an analyst, `terms.shares` holds only the analyst's own share, and `state` is the
    state that analysts may see.
    """

    account: str
    plan: MechanismPlan
    universe_size: int


def check_active(dataset: DatasetRecord, version: int = 0) -> None:
    """Check that a dataset takes new rounds and versions, and that its newest version is still `version`.

    `version`: 0 where none has been looked at yet. Raises `WrongState`.
    """
    match dataset.state:
        case DatasetState.RETIRED:
            raise WrongState("the dataset is retired; it takes no new rounds, sessions, measurements or versions")
        case DatasetState.DELETED:
            raise WrongState("the dataset was deleted; nothing can be asked of it any more")
    if version not in (0, dataset.version):
        raise WrongState(f"the dataset got its version {dataset.version} meanwhile; look at that one and ask again")
