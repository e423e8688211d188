"""What an analyst keeps of its own is compared with the bundle; no flipped bit passes in any of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from harness.examples import examples
from harness.small_custodian import STATEMENTS, Custodian, Told, signing_key
from harness.verifying import KEY, flipped, found, log_of, papers, with_evidence
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.commands.verification import verify_bundle
from equipoise.errors import VerificationFailed
from equipoise.records import envelopes
from equipoise.records.evidence import Earlier
from equipoise.records.receipts import RECEIPT_TYPE, ReceiptPayload
from equipoise.records.signed_notes import VerifierKey, sign_note
from equipoise.verification.checks import Check, VerifierInputs
from equipoise.verification.log_history import EarlierCheckpoint


def test_the_kept_receipt_must_be_the_one_that_was_used() -> None:
    log = log_of()
    bundle = Told().bundle(log)
    kept = bundle.evidence.receipt
    assert kept is not None
    assert found(bundle, papers(receipt=kept)) is None
    payload = ReceiptPayload.from_bytes(envelopes.open_envelope(kept, RECEIPT_TYPE, [KEY]))
    newer = log.receipt(replace(payload, commitment=bytes(32), accept_time=payload.accept_time + 1))
    withdrawn = log.receipt(replace(payload, commitment=None, statements=0, queries=0))
    others = log.receipt(replace(payload, analyst="bob"))
    forged = envelopes.sign(RECEIPT_TYPE, payload.to_bytes(), [signing_key(7)])
    for wrong in (newer, withdrawn, others, forged, b"", kept + b"\n"):
        assert found(bundle, papers(receipt=wrong)) is Check.RECEIPT
    absent = Told(statements=None).bundle(log_of())
    assert found(absent, papers(receipt=kept)) is Check.RECEIPT
    assert found(absent, papers(receipt=withdrawn)) is None


@pytest.mark.parametrize(
    ("field", "value", "check"),
    [
        ("deployment", "fedcba9876543210", Check.RECEIPT),
        ("round_id", "cd" * 16, Check.RECEIPT),
        ("analyst", "bob", Check.RECEIPT),
        ("commitment", bytes(32), Check.RECEIPT),
        ("statements", 2, Check.WORKLOAD),
        ("queries", 9, Check.WORKLOAD),
    ],
)
def test_everything_that_the_bundle_s_receipt_says_is_compared(field: str, value: object, check: Check) -> None:
    """One key may sign for several deployments, and whoever holds it signs whatever it likes."""
    log = log_of()
    bundle = Told().bundle(log)
    assert bundle.evidence.receipt is not None
    payload = ReceiptPayload.from_bytes(envelopes.open_envelope(bundle.evidence.receipt, RECEIPT_TYPE, [KEY]))
    assert getattr(payload, field) != value
    wrong = log.receipt(replace(payload, **{field: value}))  # type: ignore[arg-type]
    assert found(with_evidence(bundle, receipt=wrong)) is check


def test_the_remembered_statements_must_be_those_that_were_used() -> None:
    bundle = Told().bundle(log_of())
    assert found(bundle, papers(statements=STATEMENTS)) is None
    assert found(bundle, papers(statements=STATEMENTS[:2])) is Check.WORKLOAD
    assert found(Told(statements=None).bundle(log_of()), papers(statements=STATEMENTS)) is Check.WORKLOAD


def test_the_remembered_questions_must_be_those_that_the_receipt_commits_to() -> None:
    """A custodian who signs for other questions, or for none, while the statements are the analyst's own."""
    own = b"-- understood as: SELECT COUNT(*) AS n FROM shop\n"
    bundle = Told(questions=own).bundle(log_of())
    assert found(bundle, papers(statements=STATEMENTS, questions=own)) is None
    assert found(bundle, papers(statements=STATEMENTS)) is None
    for other in (own[:-1], own.replace(b"n FROM", b"m FROM"), b"", own + own):
        assert found(bundle, papers(statements=STATEMENTS, questions=other)) is Check.WORKLOAD
    # The receipt that was kept commits to the questions: the custodian's copy cannot have others, or none.
    kept = bundle.evidence.receipt
    for told in (Told(), Told(questions=own + own)):
        assert found(told.bundle(log_of()), papers(receipt=kept)) is Check.RECEIPT
    assert found(Told().bundle(log_of()), papers(statements=STATEMENTS, questions=own)) is None


def test_a_checkpoint_held_before_or_after_must_be_of_the_same_log() -> None:
    log = log_of()
    first = Told().bundle(log, earlier=3)
    size = len(log.leaves)
    held = {at: EarlierCheckpoint(log.checkpoint(at)) for at in (2, 3, size)}
    assert found(first, papers(checkpoint=held[3])) is None
    assert found(first, papers(checkpoint=held[size])) is None
    assert found(first, papers(checkpoint=held[2])) is Check.HISTORY  # nothing proves it
    other = Custodian()
    other.grow(2 * size)
    for at in (3, size):
        assert found(first, papers(checkpoint=EarlierCheckpoint(other.checkpoint(at)))) is Check.HISTORY  # a fork
    log.grow(4)
    later = Told(statements=None).bundle(log, earlier=size)
    assert found(later, papers(checkpoint=EarlierCheckpoint.from_file(log.checkpoint(size)))) is None
    assert found(first, papers(checkpoint=EarlierCheckpoint.from_file(later.to_bytes()))) is None
    assert found(first, papers(checkpoint=EarlierCheckpoint(later.evidence.checkpoint))) is Check.HISTORY
    forked = with_evidence(
        later, earlier=Earlier(other.checkpoint(size), (later.evidence.earlier or Earlier(b"", ())).path)
    )
    assert found(first, papers(checkpoint=EarlierCheckpoint.from_file(forked.to_bytes()))) is Check.HISTORY
    assert found(first, papers(checkpoint=EarlierCheckpoint(b"no note"))) is Check.HISTORY


def test_the_earlier_checkpoint_of_a_bundle_is_of_its_own_log() -> None:
    """The custodian's key may sign for two deployments: the one did not grow out of the other."""
    log = log_of()
    bundle = Told().bundle(log, earlier=3)
    earlier = bundle.evidence.earlier
    assert earlier is not None
    text = earlier.checkpoint.decode().partition("\n\n")[0] + "\n"
    origin, _, rest = text.partition("\n")
    other = sign_note(f"{origin}-of-another\n{rest}", log.keys)
    assert found(with_evidence(bundle, earlier=replace(earlier, checkpoint=sign_note(text, log.keys)))) is None
    assert found(with_evidence(bundle, earlier=replace(earlier, checkpoint=other))) is Check.HISTORY


PASSING = Told().bundle(log_of(), earlier=3)
DATA = PASSING.to_bytes()
OTHER_FILES = {
    "receipt": PASSING.evidence.receipt or b"",
    "checkpoint": PASSING.evidence.checkpoint,
}


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.integers(0, 8 * len(DATA) - 1))
def test_every_flipped_bit_is_found(bit: int) -> None:
    assert found(flipped(DATA, bit)) is not None


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.sampled_from(sorted(OTHER_FILES)), st.data())
def test_every_flipped_bit_of_what_the_analyst_keeps_is_found(name: str, data: st.DataObject) -> None:
    content = OTHER_FILES[name]
    changed = flipped(content, data.draw(st.integers(0, 8 * len(content) - 1)))
    kept = papers(receipt=changed) if name == "receipt" else papers(checkpoint=EarlierCheckpoint(changed))
    assert found(PASSING, kept) is (Check.RECEIPT if name == "receipt" else Check.HISTORY)


def test_a_flipped_bit_of_the_key_is_found() -> None:
    line = KEY.to_text().encode()
    for bit in range(8 * len(line)):
        try:
            key = VerifierKey.from_text(flipped(line, bit).decode())
        except (VerificationFailed, UnicodeDecodeError):
            continue
        assert found(PASSING, VerifierInputs([key])) is Check.CHECKPOINT


@pytest.mark.parametrize(
    "name", ["x\n13 ok\nAll 13 checks hold.", "x\x1b[2K\x1b[1Gall is well", "x\ud800", "x\u202ey"]
)
def test_a_name_in_a_bundle_cannot_speak_for_the_verifier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Whoever made the file chose the name; it is shown to people before anything has proven it."""
    file = tmp_path / "bundle"
    file.write_bytes(with_evidence(Told().bundle(log_of()), deployment=name).to_bytes())
    with pytest.raises(typer.Exit):
        verify_bundle(file, KEY.to_text(), None, None, None, tmp_path)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith(" 2 FAILED")
    assert all(line.isprintable() for line in shown)
    assert len(shown) == 3
    with pytest.raises(typer.Exit):
        verify_bundle(file, KEY.to_text(), None, None, None, tmp_path, as_json=True)
    assert not json.loads(capsys.readouterr().out)["verified"]


def test_checkpoints_are_of_one_log_by_its_name_and_by_every_proof() -> None:
    log, other = log_of(), Custodian()
    other.grow(40)
    first = Told().bundle(log, earlier=3)
    size = len(log.leaves)

    def renamed(note: bytes) -> bytes:
        _, _, rest = note.partition(b"\n\n")[0].partition(b"\n")
        return sign_note(f"equipoise/other\n{rest.decode()}\n", log.keys)

    # Of the same size, root and key, but under another name.
    assert found(first, papers(checkpoint=EarlierCheckpoint(renamed(log.checkpoint(size))))) is Check.HISTORY
    held = first.evidence.earlier
    assert held is not None
    named = with_evidence(first, earlier=replace(held, checkpoint=renamed(held.checkpoint)))
    assert found(named) is Check.HISTORY
    # A later checkpoint of a fork, which has grown from the fork's own checkpoint of this size.
    fork = EarlierCheckpoint(other.checkpoint(40), replace(other.earlier(size), checkpoint=other.checkpoint(size)))
    assert found(first, papers(checkpoint=fork)) is Check.HISTORY
    # The same, said to have grown from the checkpoint of this bundle.
    said = EarlierCheckpoint(other.checkpoint(40), replace(other.earlier(size), checkpoint=log.checkpoint(size)))
    assert found(first, papers(checkpoint=said)) is Check.HISTORY
