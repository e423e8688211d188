"""Grants combined with a standing measurement: costs, records, audit, replay, and what becomes of newer ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.released_rounds import SESSION_CHECKS, Released, state_directory
from harness.rounds_bench import COLOUR, Bench
from harness.session_terms import attached, release
from harness.standing_rounds import MEASURE, measured
from harness.waiting import PATIENCE

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.queries.statements import Marginal, Statement
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.proven_round import proven_round
from equipoise.verification.checks import VerifierInputs, verify
from equipoise.verification.grant_checks import check_spending
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.results import answers_from_chunk
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.rounds.store.committed_content import check_all
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.attachments import Attachment

TERMS = grant_terms("shop", "ann", Budget(1.0, 1e-6), None, 0.05)
FEW = replace(MEASURE, data_budget=Budget(2.0, 1e-5))
TABLE, RED = Marginal(("colour", "size")), COLOUR == "red"
SMALL = 10**9


def paid(stream: Attachment, sequence: int, statement: Statement, rho: int) -> StoredAnswer:
    """The answer to a statement that may cost so much."""
    return stream.ask(sequence, statement_to_bytes(statement, rho)).result(PATIENCE)


def standing_of(bench: Bench, grant_id: str) -> str:
    """The round of the measurement that the analyst is shown with its grant; empty where there is none."""
    record = bench.rounds.views.get(grant_id)
    whole, listed = bench.sessions.grant(record, whole=True), bench.sessions.grant(record)
    assert whole is not None
    assert listed is not None
    assert not listed.standing
    return json.loads(whole.standing)["round"] if whole.standing else ""


@pytest.mark.full
def test_a_grant_keeps_the_measurement_of_its_opening_and_is_replayed_and_verified(tmp_path: Path) -> None:
    with state_directory(tmp_path) as (bench, key):
        before = bench.sessions.open(TERMS, "before", "olga")
        first = measured(bench, FEW)
        opened = bench.sessions.open(TERMS, "give", "olga")
        stream = attached(bench, "ann", opened.id)
        told = [paid(stream, 1, TABLE, SMALL), paid(stream, 2, RED, 40 * SMALL)]
        assert told[0].cost == 0  # the measurement tells it as precisely
        assert 0 < told[1].cost < 40 * SMALL
        newer = measured(bench, FEW)
        assert (standing_of(bench, before.id), standing_of(bench, opened.id)) == ("", first)
        assert standing_of(bench, bench.sessions.open(TERMS, "later", "olga").id) == newer
        named = grant_terms("shop", "ann", Budget(0.1, 1e-6), None, 0.05, measurement=first)
        assert standing_of(bench, bench.sessions.open(named, "named", "olga").id) == first
        # Old answers stay as they are, also where the table is asked for again.
        again = paid(stream, 3, TABLE, SMALL)
        assert answers_from_chunk(again.chunk).answers.values.tolist() == (
            answers_from_chunk(told[0].chunk).answers.values.tolist()
        )
        stream.detach()
        release(bench, [opened.id])
        assert problems(audited(bench)) == []
        with bench.store.read() as connection:
            check_all(connection)
            trusted = bench.signer.verifier_keys(connection)
        evidence = bench.rounds.analyst_views.evidence("ann", opened.id, 0)
        assert evidence is not None
        mine = Bundle(
            Evidence.from_bytes(evidence),
            bench.rounds.analyst_views.submitted("ann", opened.id, 0, 1 << 20),
            tuple(bench.rounds.analyst_views.results("ann", opened.id, 0, 1000)),
            None,
        )
        verify(mine.to_bytes(), VerifierInputs(trusted, again.envelope, [TABLE, RED, TABLE]), lambda *_: None)
        proven, statements = proven_round(mine.evidence), asked_from_bytes(mine.workload or b"")[0]
        without = replace(proven, round=replace(proven.round, standing=None, data_budget=Budget(9.0, 1e-6)))
        with pytest.raises(
            VerificationFailed, match=r"which come to rho 0\.040875"
        ):  # the table's cells pay for it
            check_spending(statements, without)
        others = {**(proven.round.standing or {}), "noise": {}}
        with pytest.raises(VerificationFailed, match="the measurement that the round names"):
            check_spending(statements, replace(proven, round=replace(proven.round, standing=others)))
        replayed = Released(bench.directory, {"grant": opened.id}, key).replay("grant")
        assert replayed.difference is None, replayed
        assert [check.name for check in replayed.checks] == SESSION_CHECKS


def test_a_measurement_that_is_none_is_refused(on_sqlite: Bench) -> None:
    with pytest.raises(InvalidArgument, match=r"options\.standing: names '00', and there is no such round"):
        on_sqlite.sessions.open(replace(TERMS, options={"standing": "00"}), "none")
    with pytest.raises(InvalidArgument, match=r"has no released measurement"):
        on_sqlite.sessions.open(replace(TERMS, options={"standing": None}), "not yet")
