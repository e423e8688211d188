"""Whom an operator admits, renews, revokes and deletes is on record, and no analyst sees of it whom it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from harness.noninterference.conducts import asks_as_usual
from harness.noninterference.wire_view import View, difference
from harness.noninterference.worlds import DAY, RoundOf, admitted, fresh, world
from harness.server_process import signing_request

from equipoise.v1 import operator_pb2

NAMES = ("zoe", "somebody-with-a-name-as-long-as-names-may-be-so-that-lengths-show"[:63])


@pytest.mark.full
def test_nobody_sees_who_was_admitted_renewed_revoked_and_deleted(tmp_path: Path) -> None:
    (first, log), (other, other_log) = (lived(tmp_path / name, name) for name in NAMES)
    assert difference(first, other) is None
    assert log == other_log
    assert sum(b"identity-changed" in leaf for leaf in log) == 2 + 4 + 4  # init's, the world's, and this name's
    for seen in first:
        assert "zoe" not in repr(seen)


def lived(place: Path, name: str) -> tuple[View, list[bytes]]:
    """All that the viewers see, and what anybody may learn of the log, while somebody comes and goes."""
    with world(place, DAY, [RoundOf("gaussian", "query", perfect=True)]) as made:
        made.open()
        admitted(made.operator, name)
        request = signing_request(ec.generate_private_key(ec.SECP256R1()))
        made.operator.RenewAnalyst(
            operator_pb2.RenewAnalystRequest(name=name, signing_request=request, request_id=fresh())
        )
        made.ask([asks_as_usual])
        made.operator.RevokeAnalyst(operator_pb2.RevokeAnalystRequest(name=name, request_id=fresh()))
        made.seal()
        made.operator.DeleteAnalyst(operator_pb2.DeleteAnalystRequest(name=name, request_id=fresh()))
        made.release()
        return made.viewers.view, made.log()
