"""What `equipoise audit verify` answers of an honest custodian, and what it finds of one that cheats."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from harness.custodian import DATA_PARTS, ORDER, Custodian, rechained

from equipoise.accounting import ApproximateDpEvent, Cost, charge_at, charge_of, events_to_json
from equipoise.auditing.archive import Archive, AuditorLog, read_archive, write_archive
from equipoise.auditing.auditor_log import note_read, offered_nonce, own_acts
from equipoise.auditing.questions import QUESTIONS
from equipoise.auditing.replay_checks import ReplayReport, read_replay_report
from equipoise.auditing.report import as_json, as_markdown
from equipoise.auditing.verify import Audit, Outcome, verify
from equipoise.commands.printing import plain
from equipoise.errors import InvalidArgument, Unavailable, VerificationFailed, WrongState
from equipoise.records.record import Kind
from equipoise.records.signed_notes import SigningKey, sign_note

ROUND, OTHER = "aa", "bb"
PLANNED, CHARGED = charge_of(DATA_PARTS), charge_at(DATA_PARTS, ORDER)
LESS = replace(CHARGED, divergence=CHARGED.divergence - 10**6)


def failures(audit: Audit) -> dict[str, str]:
    return {each.number: each.detail for each in audit.checks if each.outcome is Outcome.FAILED}


def found(custodian: Custodian, archive: Archive, seen: Sequence[bytes] = ()) -> dict[str, str]:
    return failures(verify(archive, custodian.trusted, seen))


@pytest.fixture
def custodian() -> Custodian:
    """A table and two whole rounds."""
    made = Custodian()
    made.register()
    made.play(ROUND)
    made.play(OTHER)
    return made


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
    assert f"| `{ROUND}` | shop | equilibrium |" in report
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


def unknown_key(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    stranger = Custodian().keys[0]
    text = archive.checkpoint.decode().split("\n\n")[0] + "\n"
    return replace(archive, checkpoint=sign_note(text, [custodian.keys[0], stranger]))


def unrecorded_key(custodian: Custodian) -> Archive:
    """A trusted key that the log says has been retired."""
    archive = custodian.archive()
    first = custodian.keys[0]
    custodian.add_key()
    custodian.retire_key(first)
    custodian.keys = [first, *custodian.keys]
    return replace(custodian.archive(), earlier=archive.checkpoint)


def leaf_removed(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    return replace(archive, leaves=archive.leaves[:-1])


def leaves_swapped(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    first, second, *others = archive.leaves
    return replace(archive, leaves=(second, first, *others))


def record_removed(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    return replace(archive, records=archive.records[:2] + archive.records[3:])


def record_twice(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    return replace(archive, records=(archive.records[0], *archive.records))


def item_changed(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    record = archive.records[2]
    changed = record.items[0].content.replace(b'"beta":0.05', b'"beta":0.06')
    items = (replace(record.items[0], content=changed), *record.items[1:])
    return replace(archive, records=(*archive.records[:2], replace(record, items=items), *archive.records[3:]))


def wrong_salt(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    record = archive.records[2]
    items = (replace(record.items[0], salt=bytes(32)), *record.items[1:])
    return replace(archive, records=(*archive.records[:2], replace(record, items=items), *archive.records[3:]))


def plan_removed(custodian: Custodian) -> Archive:
    """As an analyst's item is removed with the analyst, but this one is of no analyst."""
    archive = custodian.archive()
    record = archive.records[2]
    items = (record.items[0], replace(record.items[1], content=b"", salt=b""), *record.items[2:])
    return replace(archive, records=(*archive.records[:2], replace(record, items=items), *archive.records[3:]))


def charge_lowered(custodian: Custodian) -> Archive:
    """In the journal alone, with all digests made anew."""
    custodian.journal[5] = replace(custodian.journal[5], cost=Cost(rho=1))
    custodian.journal[:] = rechained(custodian.journal)
    return custodian.archive()


def entry_dropped(custodian: Custodian) -> Archive:
    del custodian.journal[6]
    return custodian.archive()


def last_entries_dropped(custodian: Custodian) -> Archive:
    del custodian.journal[-2:]
    return custodian.archive()


def journal_forked(custodian: Custodian) -> Archive:
    """Another history of the newest entries, as long as the first."""
    custodian.journal[-1] = replace(custodian.journal[-1], time=custodian.time.replace(year=2027))
    custodian.journal[:] = rechained(custodian.journal)
    return custodian.archive()


@pytest.mark.parametrize(
    ("cheat", "check", "words"),
    [
        (unknown_key, "A1", "signed by the unknown key equipoise/test"),
        (unrecorded_key, "A1", "which the log says is not in force"),
        (leaf_removed, "A2", "there are 7 leaves, and the checkpoint says 8"),
        (leaves_swapped, "A2", "the leaves do not hash to the checkpoint's root"),
        (record_removed, "A4", "entry 2 of the log has no record"),
        (record_twice, "A4", "entry 1 of the log has no record, or two"),
        (item_changed, "A4", "entry 2 of the log: the item round does not open to its hash"),
        (wrong_salt, "A4", "entry 2 of the log: the item round does not open to its hash"),
        (plan_removed, "A4", "entry 2 of the log: the item plan does not open to its hash"),
        (charge_lowered, "A5", "is not the one that entry 3 of the log"),
        (
            charge_lowered,
            "A6",
            "entry 6 of the budget journal charges data/shop something else than what its parts",
        ),
        (entry_dropped, "A5", "the budget journal is damaged at entry 7"),
        (last_entries_dropped, "A5", "some were dropped"),
        (journal_forked, "A5", "commits to, at entry 17"),
    ],
)
def test_what_was_changed_afterwards_is_named(
    custodian: Custodian, cheat: Callable[[Custodian], Archive], check: str, words: str
) -> None:
    assert words in found(custodian, cheat(custodian)).get(check, "")


def test_two_checkpoints_of_one_size_are_a_fork(custodian: Custodian) -> None:
    other = Custodian(custodian.keys)
    other.register()
    other.play(ROUND)
    other.play("cc")
    failed = found(custodian, custodian.archive(), [other.checkpoint()])
    assert failed["A3"] == "there are two checkpoints of size 8: the log was forked"


def test_an_old_checkpoint_is_not_taken_for_a_new_one(custodian: Custodian) -> None:
    old = custodian.archive()
    custodian.open("cc")
    assert "an old one is shown again" in found(custodian, old, [custodian.checkpoint()])["A3"]


def test_a_log_that_was_written_anew_does_not_continue_what_was_seen(custodian: Custodian) -> None:
    """A round was removed, and everything else made consistent again."""
    seen = custodian.checkpoint()
    anew = Custodian(custodian.keys)
    anew.register()
    for round_id in (ROUND, "dd", "ee"):
        anew.play(round_id)
    assert "the log was forked, or changed afterwards" in found(custodian, anew.archive(seen))["A3"]


def test_a_round_that_is_not_recorded_is_missed(custodian: Custodian) -> None:
    """By the list of rounds, and by the journal where the list hides it, too."""
    custodian.remove(OTHER)
    listed = found(custodian, custodian.archive())["A8"]
    assert listed == f"the round {OTHER} is listed, but its opening is not recorded"
    del custodian.listed[OTHER]
    journaled = found(custodian, custodian.archive())["A8"]
    assert journaled == f"the round {OTHER} is in the budget journal, but is not recorded"


def test_a_round_that_is_listed_with_other_times_is_named(custodian: Custodian) -> None:
    honest = custodian.listed[OTHER]
    for name, words in (("open_time", "opening time"), ("release_time", "release time")):
        custodian.listed[OTHER] = replace(honest, **{name: getattr(honest, name) + 1})
        failed = found(custodian, custodian.archive())["A8"]
        assert failed == f"the round {OTHER} is listed with another {words} than is recorded"
    custodian.listed[OTHER] = replace(honest, state="sealed", release_time=None)  # it was released meanwhile
    assert not found(custodian, custodian.archive())


def test_a_round_that_is_said_to_be_from_before_the_log_is_missed(custodian: Custodian) -> None:
    """No time of opening that the custodian lists, and no dataset, excuses a round from being recorded."""
    hidden = custodian.listed[OTHER]
    custodian.open_account("data/hidden", "sum", 3.0, ORDER)
    custodian.remove(OTHER)
    for dataset in ("shop", "hidden"):
        custodian.listed[OTHER] = replace(hidden, open_time=0, dataset=dataset)
        problem = f"the round {OTHER} is listed, but its opening is not recorded"
        assert found(custodian, custodian.archive()) == {"A8": problem}


def removing(archive: Archive, indices: Sequence[int], analyst: str) -> Archive:
    """Without the items of one analyst in some records."""
    about = f'"analyst":"{analyst}"'.encode()
    records = [
        replace(
            record,
            items=tuple(
                replace(item, content=b"", salt=b"") if place > 1 and about in item.content else item
                for place, item in enumerate(record.items)
            ),
        )
        if record.index in indices
        else record
        for record in archive.records
    ]
    return replace(archive, records=tuple(records))


def test_a_single_item_cannot_be_removed_as_if_its_analyst_was_deleted(custodian: Custodian) -> None:
    """Else a custodian who is found out by a receipt could remove just what the receipt is compared with."""
    archive, others = custodian.archive(), custodian.receipt(ROUND, "ann", b"w" * 32)
    audit = verify(removing(archive, [3], "ann"), custodian.trusted, (), [others])
    assert failures(audit)["A8"] == (
        "entry 3 of the log (round-sealed): the item of 'ann' was removed, but others of that analyst were not"
    )
    audit = verify(removing(archive, range(len(archive.records)), "ann"), custodian.trusted, (), [others])
    assert not failures(audit)
    (receipts,) = [check for check in audit.checks if check.number == "A11"]
    assert receipts.outcome is Outcome.NOT_CHECKED
    assert receipts.detail.startswith(f"only hashes are left of 'ann' in the round {ROUND}")


def test_a_seed_that_was_read_before_its_round_ended_is_found(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.read_seed("cc")
    assert (
        "comes while the round is open, and not released or aborted" in found(custodian, custodian.archive())["A8"]
    )


def test_two_receipts_of_one_time_are_found(custodian: Custodian) -> None:
    receipts = [custodian.receipt(ROUND, "ann", each) for each in (custodian.commitment(ROUND, "ann"), b"w" * 32)]
    audit = verify(custodian.archive(), custodian.trusted, (), receipts)
    assert failures(audit)["A11"] == "two receipts of 'ann' have the same time; neither is newer"


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
    assert not found(custodian, custodian.archive())
    custodian.listed["cc"] = replace(custodian.listed["cc"], release_time=1)
    assert "is listed as released, but recorded as sealed" in found(custodian, custodian.archive())["A8"]


def release_before_reservation(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.release("cc")


def sealed_before_reservation(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.seal("cc")
    custodian.reserve("cc")


def run_before_seal(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.run("cc")
    custodian.seal("cc")


def spent_without_run(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.settle("cc")
    custodian.release("cc")


def released_before_spending(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.run("cc")
    custodian.release("cc")


def sealed_twice(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.seal("cc")


def opened_on_nothing(custodian: Custodian) -> None:
    custodian.records = [each for each in custodian.records if each.kind != "dataset-registered"]


def released_after_abort(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.settle("cc", "release")
    custodian.abort("cc", "released")
    custodian.release("cc")


def given_back_after_run(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.run("cc")
    custodian.settle("cc", "release")
    custodian.abort("cc", "released")


def charged_less_throughout(custodian: Custodian) -> None:
    """Journal and record agree, and both were signed: only the parts tell."""
    custodian.open("cc")
    custodian.reserve("cc", LESS)
    custodian.seal("cc")


def planned_less(custodian: Custodian) -> None:
    custodian.open("cc", cost=replace(PLANNED, rho=PLANNED.rho - 1))


def cap_exceeded(custodian: Custodian) -> None:
    events = json.dumps({"cap": {"epsilon": 1.444, "delta": 1e-6}})  # two rounds fit, and three do not
    custodian.append("set-cap", "data/shop", "", Cost(), events)
    custodian.play("cc")


def cap_below_what_is_spent(custodian: Custodian) -> None:
    events = json.dumps({"cap": {"epsilon": 1.43, "delta": 1e-6}})
    custodian.append("set-cap", "data/shop", "", Cost(), events)


def rounds_that_do_not_add(custodian: Custodian) -> None:
    """People in the table are in every round, so that the worst alone says too little."""
    custodian.open_account("data/other", "worst", 3.0)


def released_late(custodian: Custodian) -> None:
    """At a point of the grid, but not the first: answers were there, and nobody was told."""
    custodian.play("cc")
    late = json.loads(custodian.records[-1].items[0].content)["release_time"] + 60_000_000
    custodian.change_last("release", release_time=late)
    custodian.listed["cc"] = replace(custodian.listed["cc"], release_time=late)


def a_seed_for_two_rounds(custodian: Custodian) -> None:
    """Under another salt each, so that the commitments differ."""
    custodian.open("cc")
    custodian.change_last("round", seed_fingerprint=fingerprint_of(custodian, ROUND))


def fingerprint_of(custodian: Custodian, round_id: str) -> str:
    opened = [each for each in custodian.records if each.kind == Kind.ROUND_OPENED]
    items = [json.loads(each.items[0].content) for each in opened]
    return str(next(item["seed_fingerprint"] for item in items if item["round"] == round_id))


def a_journal_before_the_log(custodian: Custodian) -> None:
    """The log began upon charges that the journal which is shown does not have."""
    first, custodian.records[-1:] = custodian.records[-1], [custodian.records[0]]
    custodian.change_last("start", journal={"digest": "ab" * 32})
    custodian.records[0], custodian.records[-1] = custodian.records[-1], first


def seed_read_after_destruction(custodian: Custodian) -> None:
    custodian.destroy_seed(ROUND)
    custodian.read_seed(ROUND)


def seed_read_off_the_record(custodian: Custodian) -> None:
    custodian.own = AuditorLog("auditor", {}, {ROUND: 1})


def nonce_ignored(custodian: Custodian) -> None:
    custodian.own = AuditorLog("auditor", {ROUND: "ab" * 32}, {})


@pytest.mark.parametrize(
    ("cheat", "check", "words"),
    [
        (release_before_reservation, "A8", "comes while the round is open, and not sealed"),
        (sealed_before_reservation, "A8", "reserves something else than the budget journal"),
        (run_before_seal, "A8", "data were touched, or charges settled, before it"),
        (spent_without_run, "A8", "the journal does not say that it ran"),
        (released_before_spending, "A8", "spends something else than the budget journal"),
        (sealed_twice, "A8", "comes while the round is sealed, and not open"),
        (opened_on_nothing, "A8", "the dataset 'shop' is not registered before"),
        (released_after_abort, "A8", "comes while the round is aborted, and not sealed"),
        (given_back_after_run, "A6", "cannot follow those before it: 'release'"),
        (charged_less_throughout, "A6", "charges data/shop something else than what its parts come to"),
        (planned_less, "A9", "the data cost is not what its parts come to"),
        (cap_exceeded, "A7", "takes data/shop to epsilon"),
        (cap_below_what_is_spent, "A7", "takes data/shop to epsilon"),
        (rounds_that_do_not_add, "A7", "opens data/other so that rounds do not add up as they must"),
        (seed_read_after_destruction, "A8", "a seed was read after it was destroyed"),
        (seed_read_off_the_record, "A10", "was read 1 times, of which 0 are recorded"),
        (released_late, "A8", "is later than the grid's first after its end"),
        (a_seed_for_two_rounds, "A10", f"has the same seed as the round {ROUND}"),
        (a_journal_before_the_log, "A5", "not the one that entry 0 of the log (log-started) commits to"),
        (nonce_ignored, "A10", "does not name the nonce that the auditor gave"),
    ],
)
def test_what_was_done_wrongly_and_signed_is_named(
    custodian: Custodian, cheat: Callable[[Custodian], None], check: str, words: str
) -> None:
    cheat(custodian)
    assert words in found(custodian, custodian.archive()).get(check, "")


def replay_of(custodian: Custodian, *kinds: Kind, round_id: str = ROUND, **changed: Any) -> ReplayReport:
    """What a replay of the round reports: that it follows from the first records of these kinds."""
    roots = {each.kind.value: each.root for each in reversed(custodian.records) if each.kind in kinds}
    return replace(ReplayReport(round_id, True, roots), **changed)


RELIED_ON = (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_RELEASED)


def test_a_replay_of_what_is_on_record_passes(custodian: Custodian) -> None:
    custodian.read_seed(ROUND)
    for kinds in (RELIED_ON, (*RELIED_ON, Kind.SEED_READ)):
        audit = verify(custodian.archive(), custodian.trusted, replays=[replay_of(custodian, *kinds)])
        assert audit.passed


def test_a_seed_that_a_replay_read_off_the_record_is_found(custodian: Custodian) -> None:
    """As where the replay ran on a copy of the store, whose records enter no log."""
    custodian.read_seed(ROUND)
    unread = replay_of(custodian, *RELIED_ON, Kind.SEED_READ)
    custodian.records.pop()
    custodian.read_seed(ROUND)
    named = failures(verify(custodian.archive(), custodian.trusted, replays=[unread]))["A10"]
    assert f"names the seed-read record {unread.records['seed-read'].hex()}, which is not in the log" in named


@pytest.mark.parametrize(
    ("replay", "words"),
    [
        (lambda made: replay_of(made, *RELIED_ON), "used its seed, but nobody's reading of it is on record"),
        (lambda made: replay_of(made, *RELIED_ON, agrees=False), "has found a difference"),
        (lambda made: replay_of(made, *RELIED_ON[:-1]), "names no round-released record"),
        (lambda made: replay_of(made, *RELIED_ON, round_id="ff"), "which is another round's"),
        (lambda _: ReplayReport(ROUND, True, {"seed": bytes(32)}), "names the seed record 00"),
    ],
)
def test_a_replay_of_something_else_is_found(
    custodian: Custodian, replay: Callable[[Custodian], ReplayReport], words: str
) -> None:
    assert words in failures(verify(custodian.archive(), custodian.trusted, replays=[replay(custodian)]))["A10"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"round": "ab", "agrees": true, "records": {"seed-read": "00"}}',
        '{"round": "ab", "agrees": 1, "records": {}}',
    ],
)
def test_what_is_no_report_of_a_replay_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "replay").write_text(text)
    with pytest.raises(InvalidArgument, match="is no report of a replay"):
        read_replay_report(tmp_path / "replay")


def test_another_workload_than_the_receipt_s_is_found(custodian: Custodian) -> None:
    receipt = custodian.receipt(ROUND, "ann", b"w" * 32)
    audit = verify(custodian.archive(), custodian.trusted, (), [receipt])
    assert "another workload of 'ann' was used than the newest receipt says" in failures(audit)["A11"]


@pytest.mark.parametrize(
    ("promised", "words"),
    [
        ({"max_half_width": 0.001}, "promises the max half width 0.001, but 0.1 is on record"),
        ({"opened_root": bytes(32)}, f"promises the opened root {'00' * 32}, but"),
    ],
)
def test_a_promise_that_is_not_on_record_is_found(
    custodian: Custodian, promised: dict[str, Any], words: str
) -> None:
    """Also by a receipt that another one has replaced."""
    custodian.promised = promised
    lie = custodian.receipt(ROUND, "ann", b"w" * 32)
    custodian.promised, custodian.time = {}, custodian.time + timedelta(seconds=1)
    receipts = [lie, custodian.receipt(ROUND, "ann", custodian.commitment(ROUND, "ann"))]
    detail = failures(verify(custodian.archive(), custodian.trusted, (), receipts))["A11"]
    assert words in detail
    assert detail.endswith("the custodian has made two different promises")
    assert failures(verify(custodian.archive(), custodian.trusted, (), receipts[1:])) == {}


def test_keys_of_two_logs_are_refused(custodian: Custodian) -> None:
    other = SigningKey("equipoise/other", custodian.keys[0].private)
    with pytest.raises(InvalidArgument, match="all of one log"):
        verify(custodian.archive(), [*custodian.trusted, other.verifier])


@pytest.mark.parametrize("file", ["checkpoint", "leaves.jsonl", "records.jsonl", "journal.jsonl"])
def test_any_bit_that_is_flipped_is_found(
    custodian: Custodian, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is signed; each time another, at random."""
    # One accountant is enough here.
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    write_archive(custodian.archive(), tmp_path / "archive")
    path = tmp_path / "archive" / file
    whole = path.read_bytes()
    drawn = random.Random(os.urandom(8))
    for _ in range(25):
        bit = drawn.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            audit = verify(read_archive(tmp_path / "archive"), custodian.trusted)
        except VerificationFailed:
            continue
        assert not audit.passed, f"bit {bit} of {file}"
    path.write_bytes(whole)
    assert verify(read_archive(tmp_path / "archive"), custodian.trusted).passed


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
    assert "takes data/shop to epsilon 6.36" in found(custodian, custodian.archive())["A7"]


def test_an_account_of_one_order_holds_both_of_its_limits() -> None:
    """Half of the cap's delta alone is more than an account may lose of it, however little diverges."""
    custodian = Custodian()
    custodian.register(order=8.0)
    custodian.open("aa")
    events = events_to_json("equilibrium", DATA_PARTS)
    custodian.append("reserve", "data/shop", "aa", charge_at(DATA_PARTS, 8.0), events)
    assert not {"A6", "A7"} & found(custodian, custodian.archive()).keys()
    most = (ApproximateDpEvent("samplers", Fraction(0), Fraction(6, 10**7)),)
    custodian.append("reserve", "data/shop", "bb", charge_at(most, 8.0), events_to_json("equilibrium", most))
    assert "entry 5 of the budget journal takes data/shop" in found(custodian, custodian.archive())["A7"]


def test_a_table_with_two_budgets_is_remarked(custodian: Custodian) -> None:
    custodian.register("again")
    audit = verify(custodian.archive(), custodian.trusted)
    assert audit.passed
    assert audit.remarks == ["shop, again hold the same data: what people in them may lose is the sum"]


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
