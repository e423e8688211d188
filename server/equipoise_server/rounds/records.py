"""What only the server knows of datasets and rounds. Frozen, free of protobuf and of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from equipoise.model.accounts import Budget
from equipoise.model.datasets import Dataset
from equipoise.model.rounds import RoundState, SessionTerms, Share
from equipoise_server.mechanisms.interface import Plan
from equipoise_server.rounds.state_machine import ROUND, SESSION, Lifecycle


@dataclass(frozen=True)
class Terms:
    """What an operator wants of a round; all of it public.

    `unit` is "query" or "analyst", `mechanism` a mechanism's name or "auto", `options` JSON values. From
    `close_time` on the server seals, runs and releases the round by itself; None: the operator asks for each step.
    Results open at multiples of `release_grid_seconds` since 1970; 0 stands for the server's own setting.
    `session`: set where it is a session, in which statements are answered while it is open. `analyst_budget` is
    None where its analysts are not protected from one another, which only a session can leave them.
    """

    dataset: str
    unit: str
    data_budget: Budget
    analyst_budget: Budget | None
    beta: float
    mechanism: str
    shares: tuple[Share, ...]
    options: Mapping[str, object]
    close_time: datetime | None = None
    release_grid_seconds: int = 0
    session: SessionTerms | None = None

    @property
    def course(self) -> Lifecycle:
        """How it goes its way."""
        return ROUND if self.session is None else SESSION


@dataclass(frozen=True, kw_only=True)
class DatasetRecord(Dataset):
    """A registered table with its `source`, relative to the data directory."""

    source: str


@dataclass(frozen=True)
class RoundRecord:
    """A round. `release_time` is None until released; `abort_reason` is empty unless aborted.

    As given to an analyst, `terms.shares` holds only its own share and `state` only what analysts may see.
    """

    id: str
    terms: Terms
    state: RoundState
    plan: Plan
    records: int
    universe_size: int
    open_time: datetime
    release_time: datetime | None
    abort_reason: str
    seed_commitment: bytes


@dataclass(frozen=True)
class StreamDigest:
    """What commits to one analyst's result stream (`equipoise.records.record.stream_digest`), and how long it
    is."""

    digest: bytes
    messages: int
    queries: int
