"""What an analyst sees of its own world: what it may ask about, what it has spent, and what it has asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from equipoise.model.datasets import Dataset
from equipoise.queries.statements import Statement


@dataclass(frozen=True)
class MeasuredTable:
    """A table that a standing measurement tells. `standard_error`: the mean one of its cells, in records."""

    attributes: tuple[str, ...]
    standard_error: float


@dataclass(frozen=True)
class OwnDataset:
    """A dataset of the analyst's rounds, sessions and grants.

    `dataset`: the newest version that any of these is about. `measured`: the largest tables that the newest
    released measurement of that version tells; none where there is no measurement. The others are identifiers of
    what is open to the analyst now.
    """

    dataset: Dataset
    measured: tuple[MeasuredTable, ...] = ()
    open_rounds: tuple[str, ...] = ()
    open_sessions: tuple[str, ...] = ()
    open_grants: tuple[str, ...] = ()


@dataclass(frozen=True)
class SpentStatement:
    """What one statement has cost of a grant, both in units of 10^-12 of rho.

    `sequence` counts the analyst's statements from 1. `rho`: it was wanted as precisely as that alone would buy.
    `cost`: what was missing to that and was paid; 0 where earlier answers told it.
    """

    sequence: int
    statement: Statement
    rho: int
    cost: int


class RequestState(StrEnum):
    """What became of a request for a grant."""

    WAITING = "waiting"
    GRANTED = "granted"
    DECLINED = "declined"


@dataclass(frozen=True, kw_only=True)
class GrantRequest:
    """An analyst's request for a grant, and what became of it.

    `number` counts the analyst's requests from 1. `reason`: a sentence of the analyst's. `epsilon`: the data
    epsilon that is wished for; 0: the operator judges. `answer`: why it was declined; `grant_id`: what was given.
    """

    analyst: str
    number: int
    dataset: str
    reason: str
    epsilon: float
    create_time: datetime
    state: RequestState = RequestState.WAITING
    answer: str = ""
    grant_id: str = ""
    decide_time: datetime | None = None
