"""A custodian who charges the people in a table less than a grant has spent is found, whoever looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from harness.audited_rounds import audited
from harness.released_rounds import SESSION_CHECKS, Released, fails, state_directory
from harness.rounds_bench import COLOUR, Bench
from harness.session_terms import attached, release
from harness.waiting import PATIENCE
from sqlalchemy import Connection

from equipoise.auditing.verify import Outcome
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.queries.statements import Marginal, Statement
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.verification.checks import CheckFailed, VerifierInputs, verify
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.ledger import charges
from equipoise_server.replay.replay import Replayed
from equipoise_server.rounds import lifecycle
from equipoise_server.rounds.grant_ending import charge_of_spent
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store import step_records

TERMS = grant_terms("shop", "ann", Budget(1.0, 1e-6), None, 0.05)
ASKED: tuple[Statement, ...] = (COLOUR == "red", Marginal(("colour", "size")))
EACH, SPENT, TOO_LITTLE = 10**9, 2 * 10**9, 1000
UNPAID = "what the grant's statements came to: 1000 is there, but it must be 2000000000"


@dataclass(frozen=True)
class Looked:
    """What a verification, an audit and a replay say of a grant; the first two nothing where all is in order."""

    verified: str
    audited: dict[str, str]
    replayed: Replayed


def reduced_too_far(connection: Connection, record: RoundRecord, spent: int | None, now: datetime) -> None:
    """Charge next to nothing, whatever was spent."""
    if spent is not None:
        charges.reduce(connection, record.id, charge_of_spent(record, TOO_LITTLE), now)


def looked_at(place: Path, statements: Sequence[Statement] = ASKED) -> Looked:
    """A grant that was asked these statements, each for `EACH`, and released, as all look at it afterwards."""
    with state_directory(place) as (bench, key):
        opened = bench.sessions.open(TERMS, "give", "olga")
        receipt = None
        if statements:
            stream = attached(bench, "ann", opened.id)
            for i, statement in enumerate(statements, start=1):
                receipt = stream.ask(i, statement_to_bytes(statement, EACH)).result(PATIENCE).envelope
            stream.detach()
        release(bench, [opened.id])
        failed = [check for check in audited(bench).checks if check.outcome is Outcome.FAILED]
        verified = verification(bench, opened.id, receipt, statements)
        replayed = Released(bench.directory, {"grant": opened.id}, key).replay("grant")
    return Looked(verified, {check.number: check.detail for check in failed}, replayed)


def verification(bench: Bench, grant: str, receipt: bytes | None, statements: Sequence[Statement]) -> str:
    """What a verification of ann's bundle finds; empty where all is in order."""
    views = bench.rounds.analyst_views
    evidence = views.evidence("ann", grant, 0)
    assert evidence is not None
    workload = views.submitted("ann", grant, 0, 1 << 20) if statements else None
    stream = tuple(views.results("ann", grant, 0, 1000)) if statements else ()
    bundle = Bundle(Evidence.from_bytes(evidence), workload, stream, None)
    with bench.store.read() as connection:
        trusted = bench.signer.verifier_keys(connection)
    try:
        verify(bundle.to_bytes(), VerifierInputs(trusted, receipt, statements or None), lambda *_: None)
    except CheckFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("statements", [ASKED, ()], ids=["asked", "nothing asked"])
def test_what_a_grant_has_spent_and_no_more_is_charged(tmp_path: Path, statements: tuple[Statement, ...]) -> None:
    looked = looked_at(tmp_path, statements)
    assert (looked.verified, looked.audited) == ("", {})
    assert looked.replayed.difference is None
    assert [check.name for check in looked.replayed.checks] == SESSION_CHECKS


def test_people_who_are_charged_less_than_was_spent_are_missed_by_analyst_and_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Journal and records agree with one another: only who knows the statements can tell."""
    monkeypatch.setattr(lifecycle, "return_unspent", reduced_too_far)
    looked = looked_at(tmp_path)
    assert "7 FAILED" in looked.verified
    assert "the release charges rho 0.000000001 for the statements, which come to rho 0.002" in looked.verified
    assert fails(looked.replayed, "told", UNPAID, SESSION_CHECKS)


def test_people_who_are_charged_otherwise_than_the_release_says_are_missed_by_auditor_and_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The analyst is told the truth, which is on record."""
    monkeypatch.setattr(lifecycle, "return_unspent", reduced_too_far)
    monkeypatch.setattr(step_records, "spent_of_grant", lambda *_: SPENT)
    looked = looked_at(tmp_path)
    assert looked.verified == ""
    assert looked.audited.keys() == {"A9"}
    assert "says that rho 0.002 was spent, and data/shop is charged another sum" in looked.audited["A9"]
    assert fails(looked.replayed, "told", "the charge for what the grant's statements came to", SESSION_CHECKS)


def test_a_grant_that_keeps_all_of_its_charge_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than was spent is no harm to the people, but other rounds lack it."""
    monkeypatch.setattr(lifecycle, "return_unspent", lambda *_: None)
    looked = looked_at(tmp_path, ASKED[:1])
    assert "which come to rho 0.001" in looked.verified
    assert fails(looked.replayed, "told", "what the grant's statements came to", SESSION_CHECKS)
