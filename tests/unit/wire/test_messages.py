"""The codec of messages: what a model and the protocol do not share is found at once; refusals name the field."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Account, Budget
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.v1 import types_pb2
from equipoise.wire.accounts import ACCOUNT, BUDGET
from equipoise.wire.messages import MessageCodec
from equipoise.wire.terms import TERMS

WANTED = Terms("flights", (Share("ann", 2, 3),), Budget(1.0, 1e-9), None, session=SessionTerms())


@dataclass(frozen=True)
class Wider:
    """A budget with a field that the protocol lacks."""

    epsilon: float
    delta: float
    rho: float


@dataclass(frozen=True)
class Narrower:
    """A budget without one that the protocol has."""

    epsilon: float


def test_a_field_that_only_one_side_has_is_found_when_the_codec_is_made() -> None:
    for value in (Wider, Narrower):
        with pytest.raises(TypeError, match="do not have the same fields"):
            MessageCodec(types_pb2.Budget, value)
    with pytest.raises(TypeError, match=r"cap has no codec"):
        MessageCodec(types_pb2.Account, Account, spent=BUDGET, committed=BUDGET)


def test_what_is_none_is_left_out_and_what_is_zero_is_not() -> None:
    without = ACCOUNT.write(Account("a", Budget(0, 0), Budget(0, 0), Budget(0, 0)))
    assert without.HasField("cap")
    assert not without.HasField("order")
    assert ACCOUNT.read(without).order is None
    assert ACCOUNT.write(replace(ACCOUNT.read(without), order=0.0)).HasField("order")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"release_grid_seconds": -1}, "terms.release_grid_seconds"),
        ({"release_grid_seconds": 2**32}, "terms.release_grid_seconds"),
        ({"shares": (Share("ann", 1, 1), Share("bob", 1, -1))}, "terms.shares[1].queries"),
        ({"shares": (Share("ann", 1, 2**64),)}, "terms.shares[0].queries"),
        ({"session": SessionTerms(length=-1)}, "terms.session.length"),
        ({"unit": "person"}, "terms.unit"),
        ({"dataset": "half a pair: \ud800"}, "terms.dataset"),
        ({"beta": "much"}, "terms.beta"),
    ],
)
def test_what_no_message_can_say_is_refused_by_name(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        TERMS.write_request(replace(WANTED, **change), "terms")  # type: ignore[arg-type]
    assert refused.value.field == field
