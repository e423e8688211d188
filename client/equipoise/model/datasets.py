"""Registered tables, as far as they are public."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from equipoise.queries.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A registered table; its number of records is public. Where it is retired, no new rounds can be opened."""

    name: str
    schema: Schema
    records: int
    create_time: datetime
    retire_time: datetime | None = None
