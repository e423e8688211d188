"""Submissions to a round: replaced until it is sealed, and refused beyond what was declared."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from harness.rounds_bench import ANN, BOB, SALT, TERMS, Bench

from equipoise.errors import (
    AlreadyExists,
    BudgetExhausted,
    InvalidArgument,
    NotFound,
    WrongState,
)
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal
from equipoise.wire.workloads import workload_to_bytes

DATA = "data/shop"
ANN_BYTES, BOB_BYTES = workload_to_bytes(ANN), workload_to_bytes(BOB)


def test_a_submission_is_replaceable_until_sealed(bench: Bench) -> None:
    round_id = bench.opened()
    first = bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    second = bench.rounds.submissions.submit("ann", round_id, "2", BOB_BYTES, SALT)
    assert (first.statements, first.queries) == (3, 10)
    assert second.workload_digest == hashlib.sha256(BOB_BYTES).digest()
    bench.rounds.lifecycle.seal(round_id, "seal")
    with pytest.raises(WrongState, match="the round no longer accepts workloads"):
        bench.rounds.submissions.submit("ann", round_id, "3", ANN_BYTES, SALT)
    with pytest.raises(WrongState):
        bench.rounds.submissions.dry_run("ann", round_id, ANN_BYTES)
    assert bench.rounds.submissions.submit("ann", round_id, "2", BOB_BYTES, SALT) == second


def test_a_dry_run_leaves_no_trace(bench: Bench) -> None:
    round_id = bench.opened()
    tried = bench.rounds.submissions.dry_run("ann", round_id, ANN_BYTES)
    assert (tried.statements, tried.queries, tried.sensitivity, tried.support) == (3, 10, 4, 4)
    assert tried.max_half_width == bench.rounds.views.get(round_id).plan.max_half_width
    with pytest.raises(NotFound, match="you have submitted no workload"):
        bench.rounds.submissions.withdraw("ann", round_id, "withdraw")


def test_workloads_beyond_the_share_or_malformed_are_refused(bench: Bench) -> None:
    round_id = bench.opened()
    red = attribute("colour") == "red"
    with pytest.raises(BudgetExhausted, match="more statements than the 4 of your share"):
        bench.rounds.submissions.submit("ann", round_id, "1", workload_to_bytes((red,) * 5), SALT)
    wide = (Marginal(("colour", "size")), Marginal(("colour", "size")))
    with pytest.raises(BudgetExhausted, match="the workload has 16 queries, your share allows 12"):
        bench.rounds.submissions.submit("ann", round_id, "1", workload_to_bytes(wide), SALT)
    with pytest.raises(InvalidArgument, match="taste"):
        bench.rounds.submissions.submit(
            "ann", round_id, "1", workload_to_bytes((attribute("taste") == "sour",)), SALT
        )
    with pytest.raises(InvalidArgument):
        bench.rounds.submissions.submit("ann", round_id, "1", b"", SALT)
    with pytest.raises(InvalidArgument):
        bench.rounds.submissions.submit("ann", round_id, "1", b"\xff\xff\xff", SALT)
    # Nothing was kept of the refused ones: the request_id is still free.
    assert bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT).statements == 3


def test_a_workload_above_its_declared_sensitivity_is_refused_and_leaves_nothing(bench: Bench) -> None:
    declared = replace(TERMS, shares=(Share("ann", 4, 12, 3), Share("bob", 4, 12)))
    round_id = bench.rounds.opening.open(declared, "open").id
    assert bench.rounds.views.get(round_id).terms.shares == declared.shares
    assert bench.rounds.analyst_views.get("ann", round_id).terms.shares == declared.shares[:1]
    for attempt in (
        lambda: bench.rounds.submissions.dry_run("ann", round_id, ANN_BYTES),
        lambda: bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT),
    ):
        with pytest.raises(BudgetExhausted, match="the workload has a sensitivity of 4, your share allows 3"):
            attempt()
    assert all(amounts == (0.0, 0.0) for amounts in bench.charged().values())
    # The request_id is still free; and bob, who declared nothing, may ask for four marginals.
    assert bench.rounds.submissions.submit("ann", round_id, "1", BOB_BYTES, SALT).statements == 2
    tables = workload_to_bytes((Marginal(("colour",)),) * 4)
    assert bench.rounds.submissions.dry_run("bob", round_id, tables).sensitivity == 8
    with pytest.raises(InvalidArgument, match=r"^shares\[0\]\.sensitivity: "):
        bench.rounds.opening.open(
            replace(TERMS, shares=(Share("ann", 4, 12, 9),)), "more than its statements can move"
        )
    with pytest.raises(AlreadyExists):
        bench.rounds.opening.open(TERMS, "open")


def test_a_workload_about_more_attributes_than_declared_is_refused(bench: Bench) -> None:
    declared = replace(TERMS, shares=(Share("ann", 4, 20, ways=1), Share("bob", 4, 20, ways=2)))
    round_id = bench.rounds.opening.open(declared, "open").id
    assert bench.rounds.analyst_views.get("ann", round_id).terms.shares == declared.shares[:1]
    red = attribute("colour") == "red"
    single = (red, Marginal(("size",)))
    for beyond in (Marginal(("size",), where=red), Marginal(("colour", "size")), red & (attribute("size") == "s")):
        asked = workload_to_bytes((*single, beyond))
        refused = r"statements\[2\] is about 2 attributes together, your share allows 1"
        with pytest.raises(BudgetExhausted, match=refused):
            bench.rounds.submissions.dry_run("ann", round_id, asked)
        with pytest.raises(BudgetExhausted, match=refused):
            bench.rounds.submissions.submit("ann", round_id, "1", asked, SALT)
        assert bench.rounds.submissions.dry_run("bob", round_id, asked).statements == 3
    assert bench.rounds.submissions.submit("ann", round_id, "1", workload_to_bytes(single), SALT).statements == 2


def test_a_workload_above_its_declared_support_is_refused_and_leaves_nothing(bench: Bench) -> None:
    """Red ones are four of the eight possible records; whatever is red or extra large, all but three."""
    declared = replace(TERMS, shares=(Share("ann", 4, 12, 0, 3), Share("bob", 4, 12)))
    round_id = bench.rounds.opening.open(declared, "open").id
    assert bench.rounds.views.get(round_id).terms.shares == declared.shares
    assert bench.rounds.analyst_views.get("ann", round_id).terms.shares == declared.shares[:1]
    later = workload_to_bytes((BOB[1], ANN[0]))
    for statement, workload in enumerate((ANN_BYTES, later)):
        refused = pytest.raises(
            BudgetExhausted, match=rf"^statements\[{statement}\] has a support of 4, your share allows 3: "
        )
        with refused:
            bench.rounds.submissions.dry_run("ann", round_id, workload)
        with refused:
            bench.rounds.submissions.submit("ann", round_id, "1", workload, SALT)
    assert all(amounts == (0.0, 0.0) for amounts in bench.charged().values())
    # The request_id is still free; and bob, who declared nothing, may ask about half of them.
    assert bench.rounds.submissions.submit("ann", round_id, "1", BOB_BYTES, SALT).statements == 2
    assert bench.rounds.submissions.submit("bob", round_id, "1", ANN_BYTES, SALT).statements == 3
    for support in (-1, 9):
        with pytest.raises(InvalidArgument, match=r"^shares\[0\]\.support: "):
            bench.rounds.opening.open(replace(TERMS, shares=(Share("ann", 4, 12, 0, support),)), "no such records")
    with pytest.raises(AlreadyExists):
        bench.rounds.opening.open(TERMS, "open")
