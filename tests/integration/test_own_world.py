"""An analyst's own world: the datasets of its shares, and what it has spent of its grants."""

from __future__ import annotations

import pytest
from harness.rounds_bench import COLOUR, TERMS, Bench
from harness.session_terms import attached
from harness.waiting import PATIENCE

from equipoise.errors import InvalidArgument, NotFound
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.queries.statements import Marginal, Statement
from equipoise.wire.statements import statement_to_bytes

SMALL = 10**9


def test_an_analyst_sees_the_datasets_of_its_shares_and_its_own_spending(on_sqlite: Bench) -> None:
    bench = on_sqlite
    own = bench.rounds.own_world
    assert own.datasets("ann") == ([], "")
    granted = bench.sessions.open(grant_terms("shop", "ann", Budget(0.5, 1e-6), None, 0.05), "give").id
    opened = bench.opened(TERMS)
    (seen,), token = own.datasets("ann")
    assert (token, seen.dataset.name, seen.dataset.account, seen.measured) == ("", "shop", "", ())
    assert (seen.open_rounds, seen.open_sessions, seen.open_grants) == ((opened,), (), (granted,))
    assert own.datasets("bob")[0][0].open_grants == ()
    assert own.datasets("eve") == ([], "")
    assert own.datasets("ann", 1, "shop") == ([], "")
    with pytest.raises(InvalidArgument, match="page_token"):
        own.datasets("eve", 1, "shop")

    stream = attached(bench, "ann", granted)
    said: list[Statement] = [COLOUR == "red", Marginal(("size",)), COLOUR == "red"]
    sent = [statement_to_bytes(each, SMALL) for each in said]
    costs = [stream.ask(place, each).result(PATIENCE).cost for place, each in enumerate(sent, start=1)]
    spent, token = own.spending("ann", granted)
    assert (token, [(each.sequence, each.statement, each.cost) for each in spent]) == (
        "",
        list(zip((1, 2, 3), sent, costs, strict=True)),
    )
    page, token = own.spending("ann", granted, 2)
    assert [*page, *own.spending("ann", granted, 2, token)[0]] == spent
    with pytest.raises(NotFound):
        own.spending("bob", granted)
    with pytest.raises(InvalidArgument, match="is no grant"):
        own.spending("ann", opened)
    bench.sessions.close(granted, "close")
    assert own.datasets("ann")[0][0].open_grants == ()
    assert len(own.spending("ann", granted)[0]) == 3
