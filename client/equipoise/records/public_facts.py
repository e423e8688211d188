"""How public facts are written where they are hashed, stored or compared: costs, budgets, shares, terms and plans.

The keys are the formats' own: an attribute may be renamed, a key may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.rounds import Ending, MechanismPlan, SessionTerms, Share
from equipoise.records.codec import (
    COUNT,
    OBJECT,
    REAL,
    TEXT,
    Codec,
    canonical_object,
    codec_of,
    key,
    list_of,
    name_of,
    object_codec,
    one_of,
    optional,
)

COST: Codec[Cost] = object_codec(
    Cost,
    {
        "rho": ("rho", COUNT),
        "epsilon": ("epsilon", COUNT),
        "delta": ("delta", COUNT),
        "divergence": ("divergence", COUNT),
    },
)
ACCEPTED: Codec[tuple[Danger, ...]] = list_of(name_of(Danger))
BUDGET: Codec[Budget] = object_codec(Budget, {"epsilon": ("epsilon", REAL), "delta": ("delta", REAL)})


def _persons(mode: PersonMode, records: int) -> Persons:
    try:
        return Persons(mode, records)
    except InvalidArgument as problem:
        raise ValueError(problem.message) from None


PERSONS: Codec[Persons] = object_codec(
    _persons, {"mode": ("mode", name_of(PersonMode)), "records": ("records", COUNT)}
)
SHARE: Codec[Share] = object_codec(
    Share,
    {
        "analyst": ("analyst", TEXT),
        "statements": ("statements", COUNT),
        "queries": ("queries", COUNT),
        "sensitivity": ("sensitivity", COUNT),
        "support": ("support", COUNT),
        "ways": ("ways", COUNT),
    },
)
SESSION_TERMS: Codec[SessionTerms] = object_codec(
    SessionTerms,
    {
        "ending": ("ending", name_of(Ending)),
        "length": ("length", COUNT),
        "turn_seconds": ("turn_seconds", COUNT),
    },
)


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
    accepted: tuple[Danger, ...] = key("accepted", ACCEPTED)


TERMS: Codec[RecordedTerms] = codec_of(RecordedTerms)
PLAN: Codec[MechanismPlan] = object_codec(
    MechanismPlan,
    {
        "mechanism": ("mechanism", TEXT),
        "parameters": ("parameters", TEXT),
        "data_cost": ("data_cost", COST),
        "analyst_cost": ("analyst_cost", optional(COST)),
        "data_events": ("data_events", TEXT),
        "analyst_events": ("analyst_events", TEXT),
        "max_half_width": ("max_half_width", REAL),
        "max_uncertified": ("max_uncertified", COUNT),
        "seconds": ("seconds", REAL),
        "memory_bytes": ("memory_bytes", COUNT),
        "expected_error": ("expected_error", REAL),
    },
)
