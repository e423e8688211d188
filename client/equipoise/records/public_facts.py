"""How public facts are written where they are hashed, stored or compared: costs, budgets, shares, terms and plans.

The keys are the formats' own. The tables of keys are for whoever has another class for the same fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, SessionTerms, Share
from equipoise.records.codec import (
    COUNT,
    OBJECT,
    REAL,
    TEXT,
    Codec,
    canonical_object,
    codec_of,
    key,
    name_of,
    object_codec,
    one_of,
    optional,
)

Keys = Mapping[str, tuple[str, Codec[Any]]]  # the attribute behind each key, and the codec of its value

COST: Codec[Cost] = object_codec(
    Cost,
    {
        "rho": ("rho", COUNT),
        "epsilon": ("epsilon", COUNT),
        "delta": ("delta", COUNT),
        "divergence": ("divergence", COUNT),
    },
)
BUDGET_KEYS: Keys = MappingProxyType({"epsilon": ("epsilon", REAL), "delta": ("delta", REAL)})
SHARE_KEYS: Keys = MappingProxyType(
    {
        "analyst": ("analyst", TEXT),
        "statements": ("statements", COUNT),
        "queries": ("queries", COUNT),
        "sensitivity": ("sensitivity", COUNT),
        "support": ("support", COUNT),
    }
)
SESSION_KEYS: Keys = MappingProxyType(
    {
        "ending": ("ending", name_of(Ending)),
        "length": ("length", COUNT),
        "turn_seconds": ("turn_seconds", COUNT),
    }
)
PLAN_KEYS: Keys = MappingProxyType(
    {
        "mechanism": ("mechanism", TEXT),
        "parameters": ("parameters", TEXT),
        "data_cost": ("data_cost", COST),
        "analyst_cost": ("analyst_cost", optional(COST)),
        "data_events": ("data_events", TEXT),
        "analyst_events": ("analyst_events", TEXT),
        "error_bound": ("error_bound", REAL),
        "max_uncertified": ("max_uncertified", COUNT),
        "seconds": ("seconds", REAL),
        "memory_bytes": ("memory_bytes", COUNT),
    }
)
BUDGET: Codec[Budget] = object_codec(Budget, BUDGET_KEYS)
SHARE: Codec[Share] = object_codec(Share, SHARE_KEYS)
SESSION_TERMS: Codec[SessionTerms] = object_codec(SessionTerms, SESSION_KEYS)


@canonical_object
class RecordedTerms:
    """The terms of a round or a session, but for its dataset, its shares and its closing time.

    `options` are the mechanism's, any JSON. `session` is None for a round that is none, `analyst_budget` for a
    session that does not protect its analysts from one another.
    """

    unit: str = key("unit", one_of("query", "analyst"))
    data_budget: Budget = key("data_budget", BUDGET)
    analyst_budget: Budget | None = key("analyst_budget", optional(BUDGET))
    beta: float = key("beta", REAL)
    mechanism: str = key("mechanism", TEXT)
    options: Mapping[str, Any] = key("options", OBJECT)
    release_grid_seconds: int = key("release_grid_seconds", COUNT)
    session: SessionTerms | None = key("session", optional(SESSION_TERMS))


TERMS: Codec[RecordedTerms] = codec_of(RecordedTerms)


@dataclass(frozen=True)
class RecordedPlan:
    """What a planner has computed: parameters as JSON, both costs with their events, and what is promised.

    `error_bound`: the largest bound of a certified answer; `max_uncertified`: how many answers may have
    none; `seconds` and `memory_bytes`: what a run is expected to need.
    """

    mechanism: str
    parameters: str
    data_cost: Cost
    analyst_cost: Cost | None
    data_events: str
    analyst_events: str
    error_bound: float
    max_uncertified: int
    seconds: float
    memory_bytes: int


PLAN: Codec[RecordedPlan] = object_codec(RecordedPlan, PLAN_KEYS)
