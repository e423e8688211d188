"""A charge's parts as JSON that is hashed and kept for good, read strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from equipoise.accounting.events import (
    ApproximateDpEvent,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    RenyiEvent,
    ThresholdTests,
    ZcdpEvent,
)

_WRITTEN = re.compile(r"[0-9]{1,2000}/[1-9][0-9]{0,1999}", re.ASCII)


def events_to_json(mechanism: str, parts: Iterable[PrivacyEvent]) -> str:
    """Returns canonical JSON with the mechanism's name; fractions are written as `numerator/denominator`.

    Args:
        mechanism: its name.
        parts: its events, in order.
    """
    fields = {"mechanism": mechanism, "events": [_fields(part) for part in parts]}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def events_from_json(text: str) -> tuple[PrivacyEvent, ...]:
    """Returns the parts that `events_to_json` wrote.

    Raises:
        ValueError: the text is another, even if it means the same: two readers might take it for different charges.
    """
    try:
        fields = json.loads(text)
        parts = tuple(_part(event) for event in fields["events"])
        if events_to_json(fields["mechanism"], parts) != text:
            raise ValueError("events: the text is not the one that is written for this charge")
    except (KeyError, TypeError, ArithmeticError, RecursionError) as problem:
        raise ValueError("events: the text is not that of a charge's parts") from problem
    return parts


def _fields(part: PrivacyEvent) -> dict[str, object]:
    """Returns the JSON object of a part.

    These keys are hashed and kept for good: no attribute's name is one by itself.
    """
    fields: dict[str, object] = {"event": part.event, "name": part.name}
    match part:
        case ZcdpEvent():
            return fields | {"rho": _fraction_text(part.rho), "times": part.times}
        case PureDpEvent():
            return fields | {"epsilon": _fraction_text(part.epsilon), "times": part.times}
        case ApproximateDpEvent():
            return fields | {"epsilon": _fraction_text(part.epsilon), "delta": _fraction_text(part.delta)}
        case Mixture():
            return fields | {
                "trials": part.trials,
                "probability": _fraction_text(part.probability),
                "rho_of_one": _fraction_text(part.rho_of_one),
                "epsilon": _fraction_text(part.epsilon),
                "delta": _fraction_text(part.delta),
            }
        case ThresholdTests():
            return fields | {
                "positives": part.positives,
                "test_epsilon": _fraction_text(part.test_epsilon),
                "answer_rho": _fraction_text(part.answer_rho),
                "epsilon": _fraction_text(part.epsilon),
                "delta": _fraction_text(part.delta),
            }
        case RenyiEvent():
            return fields | {"order": _fraction_text(part.order), "bound": _fraction_text(part.bound)}


def _part(fields: dict[str, Any]) -> PrivacyEvent:
    name, event = str(fields["name"]), fields["event"]
    if event == ApproximateDpEvent.event:
        return ApproximateDpEvent(name, _amount(fields["epsilon"]), _amount(fields["delta"]))
    if event == Mixture.event:
        amounts = (_amount(fields[each]) for each in ("probability", "rho_of_one", "epsilon", "delta"))
        return Mixture(name, _count(fields["trials"]), *amounts)
    if event == ThresholdTests.event:
        amounts = (_amount(fields[each]) for each in ("test_epsilon", "answer_rho", "epsilon", "delta"))
        return ThresholdTests(name, _count(fields["positives"]), *amounts)
    if event == RenyiEvent.event:
        return RenyiEvent(name, _amount(fields["order"]), _amount(fields["bound"]))
    times = _count(fields["times"])
    if event == PureDpEvent.event:
        return PureDpEvent(name, _amount(fields["epsilon"]), times)
    if event == ZcdpEvent.event:
        return ZcdpEvent(name, _amount(fields["rho"]), times)
    raise KeyError(event)


def _amount(text: Any) -> Fraction:
    """Reads `numerator/denominator` only: a decimal of ten letters can stand for gigabytes of digits."""
    if type(text) is not str or not _WRITTEN.fullmatch(text):
        raise ValueError("events: the text is not that of a charge's parts")
    return Fraction(text)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("events: the times of a part must be a whole number of at least 0")
    return value


def _fraction_text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
