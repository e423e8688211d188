"""Who calls, and who is registered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What an identity may do, as the registry says."""

    ANALYST = "analyst"
    OPERATOR = "operator"
    AUDITOR = "auditor"


@dataclass(frozen=True)
class Caller:
    """Who makes a call: a name from its certificate, and the role that the registry gives to it."""

    name: str
    role: Role


@dataclass(frozen=True)
class Identity:
    """Someone in the registry; `certified_until`: the end of the newest certificate, None where all are revoked."""

    name: str
    role: Role
    create_time: datetime
    certified_until: datetime | None
