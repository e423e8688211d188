"""What A9 asks of rounds that answer from a measurement: that it is on record, and was made of the same table."""

from __future__ import annotations

import json

from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.errors import VerificationFailed
from equipoise.model.rounds import MEASUREMENT

OPTION = "standing"


def check_measurement(history: RecordedRound, recorded: Recorded) -> None:
    """Check the measurement that a round's terms name, if they name one.

    Raises `VerificationFailed` unless it is a measurement of the same dataset that was released before the round
    was opened, and whose numbers and noise are those that the round answers from.
    """
    named = history.plan.terms.options.get(OPTION)
    if named is None:
        return
    if not isinstance(named, dict) or named.keys() != {"round", "digest", "noise"}:
        raise VerificationFailed(f"{history.opened}: does not say which measurement it answers from")
    measured = recorded.rounds.get(str(named["round"]))
    wanted = (MEASUREMENT, history.terms.dataset)
    if measured is None or (measured.terms.mechanism, measured.terms.dataset) != wanted:
        raise VerificationFailed(f"{history.opened}: answers from what is no measurement of its dataset on record")
    released = measured.release
    if released is None or measured.ended is None or measured.ended.index > history.opened.index:
        raise VerificationFailed(f"{history.opened}: answers from a measurement that was not released before")
    digest = None if released.measurement is None else released.measurement.hex()
    noise = json.loads(measured.plan.plan.parameters)["noise"]
    if (named["digest"], named["noise"]) != (digest, noise):
        raise VerificationFailed(f"{history.opened}: answers from other numbers than {measured.ended} commits to")
