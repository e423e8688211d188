"""What A9 asks of rounds and sessions that answer or start from a measurement that was released before them.

It is on record, it was made of the same table, and the plan names just the one that the terms do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.errors import VerificationFailed
from equipoise.model.rounds import GRANT, MEASUREMENT, STANDING_OPTION


def check_measurement(history: RecordedRound, recorded: Recorded) -> None:
    """Check the measurement that a round's terms name, if they name one.

    Raises `VerificationFailed` unless it is a measurement of the same dataset that was released before the round
    was opened, and whose numbers and noise are those that the round uses; and where the plan names another one, or
    one that the terms do not name, so that what it starts from would have to be charged; and where the analyst of
    a grant is shown another one, by which it counts what statements cost.
    """
    named = history.plan.terms.options.get(STANDING_OPTION)
    if history.terms.standing != (named if history.terms.mechanism == GRANT else None):
        raise VerificationFailed(
            f"{history.opened}: its analyst is told of another measurement than the terms name"
        )
    planned = set(_named_in(json.loads(history.plan.plan.parameters)))
    if named is None:
        if planned:
            raise VerificationFailed(f"{history.opened}: the plan uses a measurement that the terms do not name")
        return
    if not isinstance(named, dict) or named.keys() != {"round", "digest", "noise"}:
        raise VerificationFailed(f"{history.opened}: does not say which measurement it answers from")
    measured = recorded.rounds.get(str(named["round"]))
    if measured is None or (measured.terms.mechanism, measured.terms.dataset) != (
        MEASUREMENT,
        history.terms.dataset,
    ):
        raise VerificationFailed(f"{history.opened}: answers from what is no measurement of its dataset on record")
    if measured.registered != history.registered:
        raise VerificationFailed(f"{history.opened}: answers from a measurement of another version of its dataset")
    released = measured.release
    if released is None or measured.ended is None or measured.ended.index > history.opened.index:
        raise VerificationFailed(f"{history.opened}: answers from a measurement that was not released before")
    digest = None if released.measurement is None else released.measurement.hex()
    noise = json.loads(measured.plan.plan.parameters)["noise"]
    if (named["digest"], named["noise"]) != (digest, noise):
        raise VerificationFailed(f"{history.opened}: answers from other numbers than {measured.ended} commits to")
    if planned != {(named["round"], named["digest"])}:
        raise VerificationFailed(f"{history.opened}: the plan does not use the measurement that the terms name")


def _named_in(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the round and the digest of every measurement that a plan's parameters name."""
    if isinstance(value, dict):
        if {"round", "digest"} <= value.keys():
            yield str(value["round"]), str(value["digest"])
        for each in value.values():
            yield from _named_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _named_in(each)
