"""The items of records, read strictly: which fields each has, and of which types. `docs/formats.md` explains them.

An item is an object of these fields and its name and version, in canonical JSON. In it a cost is
`{"rho", "epsilon", "delta", "divergence"}` in whole units (`equipoise.accounting.Cost`), a budget
`{"epsilon", "delta"}`, a journal head `{"sequence", "digest"}`; times are microseconds since 1970, hashes are
lower-case hexadecimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from equipoise.accounting import Cost
from equipoise.errors import VerificationFailed
from equipoise.records.canonical import from_hex, parse_canonical_json, read_object
from equipoise.records.merkle import HASH_BYTES
from equipoise.records.record import SESSION_VERSION, VERSION, Kind

Field = Callable[[Any, str], None]  # checks a value, and is told what it is for an error
KEY_ID_BYTES = 8
CHARGED = ("spent", "released")  # what has become of the charges of a round that has ended
NOTHING_CHARGED = "none"  # of a round that was aborted before anything was reserved


def read_item(content: bytes, name: str) -> dict[str, Any]:
    """The fields of an item of this name, with its name and version. Raises `VerificationFailed` for all else."""
    what = f"the item {name}"
    value = parse_canonical_json(content, what)
    of_session = name in SESSION_ITEMS and type(value) is dict and value.get("version") == SESSION_VERSION
    fields, version = (SESSION_ITEMS[name], SESSION_VERSION) if of_session else (ITEMS[name], VERSION)
    kinds: dict[str, type | tuple[type, ...]] = dict.fromkeys(fields, _ANY)
    found = read_object(value, {"item": str, "version": int} | kinds, what)
    if (found["item"], found["version"]) != (name, version):
        raise VerificationFailed(f"{what}, version {version}, is wanted, and another is there")
    for key, check in fields.items():
        check(found[key], f"{what}: {key}")
    return found


def read_cost(value: Mapping[str, int]) -> Cost:
    """The cost of an item that was read."""
    return Cost(**value)


def _text(value: Any, what: str) -> None:
    if type(value) is not str:
        raise VerificationFailed(f"{what} is not a string")


def _number(value: Any, what: str) -> None:
    if type(value) is not int or value < 0:
        raise VerificationFailed(f"{what} is not an integer of at least 0")


def _real(value: Any, what: str) -> None:
    if type(value) is not float or not math.isfinite(value):
        raise VerificationFailed(f"{what} is not a float")


def _object(value: Any, what: str) -> None:
    if type(value) is not dict:
        raise VerificationFailed(f"{what} is not an object")


def _hash(value: Any, what: str) -> None:
    from_hex(value, HASH_BYTES, what)


def _key_id(value: Any, what: str) -> None:
    from_hex(value, KEY_ID_BYTES, what)


def _one_of(*allowed: str) -> Field:
    def check(value: Any, what: str) -> None:
        if value not in allowed:
            raise VerificationFailed(f"{what} is none of {', '.join(allowed)}")

    return check


def _maybe(field: Field) -> Field:
    def check(value: Any, what: str) -> None:
        if value is not None:
            field(value, what)

    return check


def _shape(**fields: Field) -> Field:
    kinds: dict[str, type | tuple[type, ...]] = dict.fromkeys(fields, _ANY)

    def check(value: Any, what: str) -> None:
        read_object(value, kinds, what)
        for key, field in fields.items():
            field(value[key], f"{what}.{key}")

    return check


def _list_of(field: Field) -> Field:
    def check(value: Any, what: str) -> None:
        if type(value) is not list:
            raise VerificationFailed(f"{what} is not a list")
        for place, each in enumerate(value):
            field(each, f"{what}[{place}]")

    return check


_ANY = (str, int, float, bool, dict, list, type(None))
_BUDGET = _shape(epsilon=_real, delta=_real)
_COST = _shape(rho=_number, epsilon=_number, delta=_number, divergence=_number)
_HEAD = _shape(sequence=_number, digest=_hash)
_CHARGE = _shape(account=_text, cost=_COST)
_SETTLED = _shape(account=_text, cost=_COST, state=_one_of(*CHARGED))
_SHARE = _shape(analyst=_text, statements=_number, queries=_number, sensitivity=_number, support=_number)
_STREAM = _shape(digest=_hash, messages=_number, queries=_number)
_SYNOPSIS = _shape(digest=_hash, records=_number)
_SESSION = _shape(ending=_one_of("hypothesis", "stop"), length=_number, shares=_number, turn_seconds=_number)


def _terms(value: Any, what: str) -> None:
    _object(value, what)
    _list_of(_SHARE)(value.get("shares"), f"{what}.shares")


ITEMS: Mapping[str, Mapping[str, Field]] = MappingProxyType(
    {
        "key": {"purpose": _one_of("log", "auditor"), "public": _hash, "id": _key_id, "time": _number},
        "restoration": {"lost_size": _number, "lost_root": _hash, "time": _number},
        "dataset": {"dataset": _text, "schema": _object, "records": _number, "create_time": _number},
        "data": {"dataset": _text, "digest": _hash, "journal": _HEAD},
        "round": {
            "round": _text,
            "dataset": _text,
            "dataset_root": _hash,
            "unit": _one_of("query", "analyst"),
            "data_budget": _BUDGET,
            "analyst_budget": _BUDGET,
            "beta": _real,
            "mechanism": _text,
            "promised_error": _real,
            "uncertified_at_most": _number,
            "analyst_cost": _COST,
            "analyst_events": _object,
            "analyst_order": _maybe(_real),
            "seed_commitment": _hash,
            "open_time": _number,
            "close_time": _maybe(_number),
            "release_grid_seconds": _number,
            "records": _number,
            "universe_size": _number,
        },
        "plan": {"round": _text, "terms": _terms, "plan": _object, "journal": _HEAD},
        "share": {
            "round": _text,
            "analyst": _text,
            "statements": _number,
            "queries": _number,
            "sensitivity": _number,
            "support": _number,
        },
        "seal": {"round": _text, "opened_root": _hash, "nonce": _maybe(_hash)},
        "reservation": {"round": _text, "charges": _list_of(_CHARGE), "journal": _HEAD, "seal_time": _number},
        "workload": {"round": _text, "analyst": _text, "commitment": _maybe(_hash)},
        "release": {
            "round": _text,
            "sealed_root": _hash,
            "release_time": _number,
            "synopsis": _maybe(_SYNOPSIS),
        },
        "spending": {
            "round": _text,
            "charges": _list_of(_CHARGE),
            "journal": _HEAD,
            "commit_time": _number,
            "data_digest": _hash,
        },
        "result": {"round": _text, "analyst": _text, "stream": _maybe(_STREAM), "charge": _COST},
        "abort": {"round": _text, "previous_root": _hash, "reason": _text, "abort_time": _number},
        "settlement": {"round": _text, "charges": _list_of(_SETTLED), "journal": _HEAD},
        "charge": {
            "round": _text,
            "analyst": _text,
            "charge": _COST,
            "state": _one_of(*CHARGED, NOTHING_CHARGED),
        },
        "access": {"round": _text, "auditor": _text, "time": _number},
        "destruction": {"round": _text, "time": _number},
    }
)

# Where a round is a session: what makes it one, and no budget and no cost where analysts are not protected.
SESSION_ITEMS: Mapping[str, Mapping[str, Field]] = MappingProxyType(
    {
        "round": {
            **ITEMS["round"],
            "analyst_budget": _maybe(_BUDGET),
            "analyst_cost": _maybe(_COST),
            "session": _SESSION,
        }
    }
)


@dataclass(frozen=True)
class Layout:
    """What a record consists of: `first`, items at its beginning; then one `each` of every share, or of every key.

    The first of all speaks to everybody in the round, and a second one to auditors only.
    """

    first: tuple[str, ...]
    each: str = ""


LAYOUTS: Mapping[Kind, Layout] = MappingProxyType(
    {
        Kind.LOG_STARTED: Layout((), "key"),
        Kind.LOG_RESTORED: Layout(("restoration",)),
        Kind.KEY_ADDED: Layout(("key",)),
        Kind.KEY_RETIRED: Layout(("key",)),
        Kind.DATASET_REGISTERED: Layout(("dataset", "data")),
        Kind.ROUND_OPENED: Layout(("round", "plan"), "share"),
        Kind.ROUND_SEALED: Layout(("seal", "reservation"), "workload"),
        Kind.ROUND_RELEASED: Layout(("release", "spending"), "result"),
        Kind.ROUND_ABORTED: Layout(("abort", "settlement"), "charge"),
        Kind.SEED_READ: Layout(("access",)),
        Kind.SEED_DESTROYED: Layout(("destruction",)),
    }
)
