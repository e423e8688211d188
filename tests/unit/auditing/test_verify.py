"""What `equipoise audit verify` answers of an honest custodian, and what its report says."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from harness.audit_failures import failed_checks, failures
from harness.custodian import DATA_PARTS, ORDER, Custodian

from equipoise.accounting import ApproximateDpEvent, Cost, charge_at, events_to_json
from equipoise.auditing.archive import AuditorLog, read_archive, write_archive
from equipoise.auditing.auditor_log import note_read, offered_nonce, own_acts
from equipoise.auditing.questions import QUESTIONS
from equipoise.auditing.report import as_json, as_markdown
from equipoise.auditing.verify import Outcome, verify
from equipoise.commands.printing import plain
from equipoise.errors import InvalidArgument, Unavailable, VerificationFailed, WrongState
from equipoise.records.signed_notes import SigningKey

ROUND, OTHER = "aa", "bb"
CHARGED = charge_at(DATA_PARTS, ORDER)


@pytest.fixture
def custodian(custodian: Custodian) -> Custodian:
    """With a second whole round."""
    custodian.play(OTHER)
    return custodian


def test_everything_an_honest_custodian_does_is_in_order() -> None:
    custodian = Custodian()
    custodian.register()
    custodian.play("a1")
    seen = custodian.checkpoint()
    first, _ = custodian.keys[0], custodian.add_key()
    both = custodian.checkpoint()
    custodian.retire_key(first)
    custodian.add_key()
    trusted = [key.verifier for key in (first, custodian.keys[0])]
    for round_id, state in (("b1", "none"), ("b2", "released"), ("b3", "spent")):
        custodian.open(round_id)
        if state != "none":
            custodian.reserve(round_id)
            custodian.seal(round_id, nonce="ab" * 32)
        if state == "spent":
            custodian.run(round_id)
            custodian.settle(round_id)
        if state == "released":
            custodian.settle(round_id, "release")
        custodian.abort(round_id, state)
    custodian.read_seed("a1")
    custodian.destroy_seed("a1")
    custodian.open("c1")
    custodian.reserve("c1")
    custodian.seal("c1")
    custodian.own = AuditorLog("auditor", {"b2": "ab" * 32}, {"a1": 1})
    replaced = custodian.receipt("a1", "ann", b"0" * 32)
    custodian.time += timedelta(seconds=1)
    receipts = [replaced, custodian.receipt("a1", "ann", custodian.commitment("a1", "ann"))]
    audit = verify(custodian.archive(seen), trusted, [both], receipts)
    assert {each.number: each.outcome for each in audit.checks} == dict.fromkeys(QUESTIONS, Outcome.PASSED)
    assert [each.number for each in audit.checks] == [*QUESTIONS]
    assert audit.passed
    data = audit.standing[-1]
    assert data.name == "data/shop"
    assert data.committed.divergence == 3 * CHARGED.divergence  # a1, b3 and c1


def test_an_archive_is_read_as_it_was_written(custodian: Custodian, tmp_path: Path) -> None:
    custodian.own = AuditorLog("auditor", {ROUND: "00" * 32}, {ROUND: 2})
    archive = custodian.archive(custodian.checkpoint())
    write_archive(archive, tmp_path / "archive")
    assert read_archive(tmp_path / "archive") == archive
    with pytest.raises(InvalidArgument, match="is not empty"):
        write_archive(archive, tmp_path / "archive")


def test_a_file_that_was_cut_off_is_refused(custodian: Custodian, tmp_path: Path) -> None:
    write_archive(custodian.archive(), tmp_path / "archive")
    journal = tmp_path / "archive" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-1])
    with pytest.raises(VerificationFailed, match="was cut off"):
        read_archive(tmp_path / "archive")


def test_the_report_says_what_was_found_and_what_was_not_looked_for(custodian: Custodian) -> None:
    audit = verify(custodian.archive(), custodian.trusted)
    report = as_markdown(audit)
    assert "Everything that was checked is in order" in report
    assert f"| `{ROUND}` | shop | 1 | equilibrium |" in report
    assert "| `data/shop` | 1.35" in report
    assert "A3, Has the log only grown since every checkpoint that was seen before? no checkpoint" in report
    told = json.loads(json.dumps(plain(as_json(audit))))
    assert told["passed"] is True
    assert [each["number"] for each in told["checks"]] == [*QUESTIONS]
    assert {each["round"] for each in told["rounds"]} == {ROUND, OTHER}


def test_a_report_of_a_cheat_begins_with_the_first_difference(custodian: Custodian) -> None:
    custodian.journal[5] = replace(custodian.journal[5], cost=Cost())
    report = as_markdown(verify(custodian.archive(), custodian.trusted))
    assert "**Not in order.** The first difference: A5, the budget journal is damaged at entry 6." in report


def test_what_analysts_may_not_know_of_one_another_is_not_in_the_report() -> None:
    """Neither who submitted nor how many did."""
    reports = []
    for silent in (set[str](), {"ann"}, {"ann", "bob"}):
        custodian = Custodian()
        custodian.silent = silent
        custodian.register()
        custodian.play(ROUND)
        audit = verify(custodian.archive(), custodian.trusted)
        assert audit.passed
        assert audit.checkpoint is not None
        root = audit.checkpoint.root
        told = json.dumps(plain(as_json(audit))) + as_markdown(audit)
        reports.append(told.replace(root.hex(), "ROOT"))
    assert reports[0] == reports[1] == reports[2]


def test_a_seed_that_was_read_before_its_round_ended_is_found(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.read_seed("cc")
    assert (
        "comes while the round is open: it must be released or aborted"
        in failures(custodian, custodian.archive())["A8"]
    )


def test_two_receipts_of_one_time_are_found(custodian: Custodian) -> None:
    receipts = [custodian.receipt(ROUND, "ann", each) for each in (custodian.commitment(ROUND, "ann"), b"w" * 32)]
    audit = verify(custodian.archive(), custodian.trusted, (), receipts)
    assert failed_checks(audit)["A11"] == "two receipts of 'ann' have the same time; neither is newer"


def test_keys_that_were_added_and_retired_are_remarked(custodian: Custodian) -> None:
    first = custodian.keys[0]
    trusted = [first.verifier, custodian.add_key().verifier]
    custodian.retire_key(first)
    remarks = verify(custodian.archive(), trusted).remarks
    assert [remark.split()[-1] for remark in remarks] == ["added", "retired"]
    assert all("the log key" in remark for remark in remarks)


def test_a_release_that_waits_for_its_time_is_no_gap(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.run("cc")
    custodian.settle("cc")
    later = int(custodian.time.timestamp() + 10 * 86_400) * 1_000_000
    custodian.listed["cc"] = replace(custodian.listed["cc"], state="released", release_time=later)
    assert not failures(custodian, custodian.archive())
    custodian.listed["cc"] = replace(custodian.listed["cc"], release_time=1)
    assert "is listed as released, but recorded as sealed" in failures(custodian, custodian.archive())["A8"]


def test_keys_of_two_logs_are_refused(custodian: Custodian) -> None:
    other = SigningKey("equipoise/other", custodian.keys[0].private)
    with pytest.raises(InvalidArgument, match="all of one log"):
        verify(custodian.archive(), [*custodian.trusted, other.verifier])


def test_what_was_written_off_is_counted_and_remarked(custodian: Custodian) -> None:
    """It may exceed the cap, as nobody knows what was spent; but then nothing more is reserved."""
    lost = Cost(divergence=5 * 10**12)
    custodian.append("write-off", "data/shop", "", lost, '{"finding": "missing"}')
    audit = verify(custodian.archive(), custodian.trusted)
    assert audit.passed
    assert audit.remarks == ["entry 18: on data/shop something was written off after a loss"]
    assert audit.standing[-1].committed.divergence == lost.divergence + 2 * CHARGED.divergence
    custodian.open("cc")
    custodian.reserve("cc")
    assert "takes data/shop to epsilon 6.36" in failures(custodian, custodian.archive())["A7"]


def test_an_account_of_one_order_holds_both_of_its_limits() -> None:
    """Half of the cap's delta alone is more than an account may lose of it, however little diverges."""
    custodian = Custodian()
    custodian.register(order=8.0)
    custodian.open("aa")
    events = events_to_json("equilibrium", DATA_PARTS)
    custodian.append("reserve", "data/shop", "aa", charge_at(DATA_PARTS, 8.0), events)
    assert not {"A6", "A7"} & failures(custodian, custodian.archive()).keys()
    most = (ApproximateDpEvent("samplers", Fraction(0), Fraction(6, 10**7)),)
    custodian.append("reserve", "data/shop", "bb", charge_at(most, 8.0), events_to_json("equilibrium", most))
    assert "entry 5 of the budget journal takes data/shop" in failures(custodian, custodian.archive())["A7"]


def test_a_table_with_two_budgets_is_remarked(custodian: Custodian) -> None:
    custodian.register("again")
    audit = verify(custodian.archive(), custodian.trusted)
    assert audit.passed
    assert audit.remarks[0] == "shop, again hold the same data: what people in them may lose is the sum"
    assert "the custodian says that nobody in again is in a dataset registered before" in audit.remarks[1]


def test_an_auditor_draws_a_nonce_once(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text('target = "here:1"\nname = "eve"\n')
    with offered_nonce(tmp_path, ROUND) as drawn:
        pass
    with offered_nonce(tmp_path, ROUND) as again, offered_nonce(tmp_path, OTHER) as other:
        assert again == drawn != other
    note_read(tmp_path, ROUND, "now")
    note_read(tmp_path, ROUND, "later")
    own = own_acts(tmp_path)
    assert (own.name, own.nonces[ROUND], own.reads) == ("eve", drawn.hex(), {ROUND: 2})
    with (
        pytest.raises(InvalidArgument, match="is not the identifier of a round"),
        offered_nonce(tmp_path, "../elsewhere"),
    ):
        pass


def test_a_nonce_that_was_refused_is_looked_for_in_no_round(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text('target = "here:1"\nname = "eve"\n')
    for lost in (Unavailable("no answer"), WrongState("the round is sealed")):
        with pytest.raises(type(lost)), offered_nonce(tmp_path, ROUND) as drawn:
            raise lost
        # It may have arrived, where nothing came back; and then a later refusal is of the second time.
        assert own_acts(tmp_path).nonces == {ROUND: drawn.hex()}
    with pytest.raises(WrongState), offered_nonce(tmp_path, OTHER):
        raise WrongState("a session takes none")
    assert set(own_acts(tmp_path).nonces) == {ROUND}
