"""What a round promised when a receipt was signed: the terms, and the record of its opening that has them.

A receipt without it would bind a workload to a round, whatever that is said to promise later. With it, terms that
were shown, signed and put on record are all the same, or the custodian is caught: the client compares the receipt
with what it was shown, `equipoise.verification` and `equipoise.auditing` compare it with what is on record.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from equipoise.accounting import Cost
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import Round
from equipoise.model.times import to_microseconds
from equipoise.records.codec import (
    COUNT,
    HASH,
    REAL,
    TEXT,
    Codec,
    canonical_object,
    codec_of,
    key,
    one_of,
    optional,
)
from equipoise.records.item_parts import SESSION, RecordedSession
from equipoise.records.items import RoundItem
from equipoise.records.public_facts import ACCEPTED, BUDGET, COST


@canonical_object
class Promise:
    """The terms of a round as its opening has put them on record; `opened_root`: of that record.

    `analyst_budget` and `analyst_cost` are None in a session that does not protect its analysts; `session` is None
    where the round is none. `records`: how many the table has, of which errors are parts. `close_time`:
    microseconds since 1970; None: the operator closes the round.
    """

    opened_root: bytes = key("opened_root", HASH)
    dataset: str = key("dataset", TEXT)
    dataset_version: int = key("dataset_version", COUNT)
    records: int = key("records", COUNT)
    mechanism: str = key("mechanism", TEXT)
    unit: str = key("unit", one_of("query", "analyst"))
    data_budget: Budget = key("data_budget", BUDGET)
    analyst_budget: Budget | None = key("analyst_budget", optional(BUDGET))
    analyst_cost: Cost | None = key("analyst_cost", optional(COST))
    beta: float = key("beta", REAL)
    max_half_width: float = key("max_half_width", REAL)
    max_uncertified: int = key("max_uncertified", COUNT)
    seed_commitment: bytes = key("seed_commitment", HASH)
    close_time: int | None = key("close_time", optional(COUNT))
    release_grid_seconds: int = key("release_grid_seconds", COUNT)
    session: RecordedSession | None = key("session", optional(SESSION))
    accepted: tuple[Danger, ...] = key("accepted", ACCEPTED)


@canonical_object
class ToldErrors:
    """The errors that a dry run tells and a receipt promises. An expected error is not among them."""

    max_half_width: float = key("max_half_width", REAL)
    max_uncertified: int = key("max_uncertified", COUNT)


PROMISE: Codec[Promise] = codec_of(Promise)
TOLD_ERRORS: Codec[ToldErrors] = codec_of(ToldErrors)
_TERMS = tuple(field.name for field in dataclasses.fields(Promise) if field.name != "opened_root")


def promise_of(opened_root: bytes, opened: RoundItem) -> Promise:
    """Returns what the record of a round's opening, with this root and this public item, promises."""
    return Promise(opened_root=opened_root, **{name: getattr(opened, name) for name in _TERMS})


def check_recorded(signed: Promise, opened_root: bytes, opened: RoundItem) -> None:
    """Checks that a receipt promises what is on record of the round's opening.

    Args:
        signed: the receipt's promise.
        opened_root: the root of the record.
        opened: the record's public item.

    Raises:
        VerificationFailed: naming the first term that differs.
    """
    recorded = promise_of(opened_root, opened)
    for name in (*_TERMS, "opened_root"):
        _compare(name, getattr(signed, name), getattr(recorded, name), "is on record")


def check_shown(signed: Promise, shown: Round) -> None:
    """Raises `VerificationFailed` unless a receipt promises what the analyst was shown of the round."""
    terms = shown.terms
    close_time = None if terms.close_time is None else to_microseconds(terms.close_time)
    for name, expected in (
        ("dataset", terms.dataset),
        ("dataset_version", shown.dataset_version),
        ("records", shown.records),
        ("mechanism", shown.mechanism),
        ("unit", terms.unit),
        ("data_budget", terms.data_budget),
        ("analyst_budget", terms.analyst_budget),
        ("beta", terms.beta),
        ("seed_commitment", shown.seed_commitment),
        ("close_time", close_time),
        ("release_grid_seconds", terms.release_grid_seconds),
        ("accepted", terms.accepted),
    ):
        _compare(name, getattr(signed, name), expected, "was shown to you")
    for name in ("length", "turn_seconds", "ending"):
        promised, expected = (
            None if each is None else getattr(each, name) for each in (signed.session, terms.session)
        )
        _compare(f"session's {name}", promised, expected, "was shown to you")


def check_told(signed: Promise, told: ToldErrors | None) -> None:
    """Raises `VerificationFailed` unless a receipt promises the errors that a dry run told; None: none did."""
    for name in () if told is None else ("max_half_width", "max_uncertified"):
        _compare(name, getattr(signed, name), getattr(told, name), "was told by the dry run")


def _compare(name: str, signed: object, other: object, where: str) -> None:
    if signed != other:
        problem = f"the {name.replace('_', ' ')} {_text(signed)}, but {_text(other)} {where}"
        raise VerificationFailed(f"the receipt promises {problem}: the custodian has made two different promises")


def _text(value: Any) -> str:
    match value:
        case bytes():
            return value.hex()
        case Budget():
            return f"epsilon {value.epsilon!r}, delta {value.delta!r}"
        case None:
            return "none"
        case _:
            return str(value)
