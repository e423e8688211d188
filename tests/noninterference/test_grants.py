"""What one analyst asks of its grant changes nothing that another sees: answers, receipts, refusals or budgets.

Worlds that differ in what ann does with her grant. All that the others see, on the wire and byte for byte, values
included, is the same; and so is what is counted on every account while the grants are open.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness.audit_size import AuditSize
from harness.noninterference.conducts import OTHER, USUAL, asking
from harness.noninterference.looking import OWN, Watched
from harness.noninterference.wire_view import View, ask, difference
from harness.noninterference.worlds import DAY, World, fresh, nothing_of_analysts_is_logged, world

from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.queries.statements import Statement
from equipoise.v1 import analyst_pb2, operator_pb2
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.terms import terms_to_message
from equipoise_server.rounds.grant_requests import MAX_WAITING

CHEAP, ALL_OF_IT = 10**8, 10**13


def priced(statements: Sequence[Statement], rho: int = CHEAP) -> list[bytes]:
    return [statement_to_bytes(each, rho) for each in statements]


CONDUCTS = {
    "asks": priced(OTHER),
    "asks for too much": priced(USUAL, ALL_OF_IT),
    "asks nonsense": [b"\xff" * 1000],
    "asks the same again": priced(USUAL) * 8,
}


def given(made: World, analyst: str, measured: bool) -> Watched:
    """A grant, as the viewers know it: nothing of it may differ."""
    terms = terms_to_message(grant_terms("shop", analyst, Budget(0.5, 1e-6), None, 0.05))
    detail = made.operator.OpenSession(operator_pb2.OpenSessionRequest(terms=terms, request_id=fresh())).detail
    shown = detail.round
    assert (json.loads(detail.plan.parameters)["measurement"] is not None) is measured
    return Watched(f"{analyst}'s grant", shown.id, shown.seed_commitment, perfect=True)


def wish(reason: str) -> analyst_pb2.RequestGrantRequest:
    """A request for a grant."""
    return analyst_pb2.RequestGrantRequest(dataset="shop", reason=reason, request_id=reason)


def lived(place: Path, said: Sequence[bytes], measured: bool) -> tuple[View, list[bytes]]:
    """What the viewers see of one world, and the accounts. Where ann asks of her grant, she asks for more, too."""
    with world(place, DAY, []) as made:
        if measured:
            made.measure()
        grants = {name: given(made, name, measured) for name in ("ann", *OWN)}
        made.viewers.rounds = list(grants.values())
        for name, statements in OWN.items():
            if said:
                ask(made.ann, "AskQueries", asking(grants["ann"].round_id, said))
                for number in range(MAX_WAITING + 1):
                    ask(made.ann, "RequestGrant", [wish(f"{name}, {number}")])
            made.viewers.keep(ask(made.viewers.channels[name], "RequestGrant", [wish("mine")], name), grants[name])
            spending = [analyst_pb2.ListSpendingRequest(round_id=grants[name].round_id)]
            own = [*priced(statements), *priced(statements[:1], ALL_OF_IT)]
            requests = asking(grants[name].round_id, own)
            made.viewers.keep(ask(made.viewers.channels[name], "AskQueries", requests, name), grants[name])
            made.viewers.keep(ask(made.viewers.channels[name], "ListSpending", spending, name), grants[name])
        made.viewers.look("asked")
        nothing_of_analysts_is_logged(made)
        return made.viewers.view, made.accounts()


@pytest.mark.parametrize(
    "measured", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["alone", "with a measurement"]
)
def test_nobody_sees_what_another_asks_of_its_grant(tmp_path: Path, audit_size: AuditSize, measured: bool) -> None:
    """At the fast size ann asks; at the nightly one in every way. The measurement is one for all grants."""
    first = lived(tmp_path / "first", (), measured)
    told = [seen for seen in first[0] if seen.method == "AskQueries"][: len(OWN)]
    assert [len(seen.messages) for seen in told] == [1 + len(OWN[name]) for name in OWN]
    assert {seen.status for seen in told} == {"RESOURCE_EXHAUSTED"}
    for name, said in CONDUCTS.items() if audit_size.worlds > 1 else [("asks", CONDUCTS["asks"])]:
        other = lived(tmp_path / name.replace(" ", "_"), said, measured)
        assert difference(first[0], other[0]) is None
        assert first[1] == other[1]
