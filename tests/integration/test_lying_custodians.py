"""Rounds whose custodian lies, by the commands: who is lied to gets exit code 1 and one sentence that says how.

What the same steps find where nobody lies is `full`: in the quick tier the rounds of other tests are in order.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness.lying_server import SESSION, TERMS, lying_server
from harness.record_items import forge_item

from equipoise.auditing.opened_seeds import REFUSED, REFUSED_SEEDS
from equipoise.records.log_items import StartItem
from equipoise.records.record import Audience
from equipoise.records.record_layouts import make_item
from equipoise.records.sealed_seeds import SALT_BYTES, fingerprint
from equipoise.records.signed_notes import SigningKey, sign_note
from equipoise_server.transparency import keys

NO_LIE = pytest.param("nothing", "", marks=pytest.mark.full)
HONEST = pytest.param("nothing", marks=pytest.mark.full)


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    ("lie", "words"),
    [
        NO_LIE,
        ("a_smaller_half_width_than_on_record", "the receipt promises the max half width"),
        pytest.param(
            "another_record_than_on_record", "the receipt promises the opened root", marks=pytest.mark.full
        ),
    ],
)
def test_a_promise_that_is_not_on_record_is_found_by_analyst_and_auditor(
    tmp_path: Path, lie: str, words: str
) -> None:
    with lying_server(tmp_path, lie) as place:
        round_id, bundle = place.released(), tmp_path / "bundle"
        made = place.run("ann", "bundle", round_id, "--out", bundle)
        receipt = place.profile("ann") / "receipts" / round_id
        audited = place.run("auditor", "audit", "verify", "--receipt", receipt)
    verified = place.run("ann", "verify", bundle)
    for found, title in ((made, "6 FAILED"), (verified, "6 FAILED"), (audited, "A11 failed")):
        assert found.code == (1 if words else 0), found.text
        assert (title in found.text) == bool(words)
        assert words in found.text
        assert ("the custodian has made two different promises" in found.text) == bool(words)


@pytest.mark.sparse(5)
@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ("receipts_by_an_unknown_key", "the receipt is not signed by the custodian's key in log.vkey"),
        ("receipts_in_another_name", "the receipt is for 'bob', not for you, 'ann'"),
        ("other_terms_than_shown", "the receipt promises the beta 0.025, but 0.05 was shown to you"),
    ],
)
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.thin(8)
def test_a_receipt_that_is_not_the_custodian_s_word_is_refused_at_once(
    tmp_path: Path, lie: str, words: str, session: bool
) -> None:
    with lying_server(tmp_path, lie) as place:
        if session:
            round_id = place.operator.open_session(SESSION).round.id
            refused = place.run("ann", "ask", round_id, place.statements, "--accept-unprotected")
        else:
            round_id = place.operator.open(TERMS).round.id
            refused = place.run("ann", "submit", round_id, place.statements)
    assert refused.code == 1
    assert words in refused.text
    (kept,) = (place.profile("ann") / "refused-receipts").iterdir()
    assert kept.name.startswith(round_id)


@pytest.mark.full
def test_one_seed_in_two_rounds_is_found_by_the_audit(tmp_path: Path) -> None:
    with lying_server(tmp_path, "one_seed") as place:
        first, _ = (place.operator.open(TERMS).round.id for _ in range(2))
        audited = place.run("auditor", "audit", "verify")
    assert audited.code == 1
    assert f"has the same seed as the round {first}" in audited.text


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("lie", [HONEST, "one_seed_under_other_fingerprints"])
def test_a_seed_whose_fingerprint_is_another_is_refused_when_it_is_opened(tmp_path: Path, lie: str) -> None:
    with lying_server(tmp_path, lie) as place:
        round_id, out = place.released(), tmp_path / "seed"
        opened = place.run("auditor", "audit", "seed", round_id, "--out", out)
        assert place.run("auditor", "audit", "verify").code == 0  # the log alone does not tell
    refused = place.profile("auditor") / REFUSED_SEEDS
    assert out.exists() == (lie == "nothing") == (not refused.exists())
    if lie == "nothing":
        assert opened.code == 0, opened.text
        return
    assert opened.code == 1
    assert "the round's seed is not the one whose fingerprint is on record" in opened.text
    (kept,) = refused.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    evidence = REFUSED.from_bytes(kept.read_bytes(), "what was refused")
    assert evidence.opened is not None
    recorded = evidence.opening.items[0].content
    assert fingerprint(evidence.opened[SALT_BYTES:]).hex().encode() not in recorded
    assert round_id.encode() in recorded


@pytest.mark.full
def test_a_release_later_than_the_grid_is_found_by_the_audit(tmp_path: Path) -> None:
    with lying_server(tmp_path, "a_late_release") as place:
        place.released()
        audited = place.run("auditor", "audit", "verify")
    assert audited.code == 1
    assert "its release time is later than the first point of the release grid after its end" in audited.text


@pytest.mark.full
def test_a_reading_of_a_seed_without_a_record_is_found_by_the_audit(tmp_path: Path) -> None:
    with lying_server(tmp_path, "readings_without_a_record") as place:
        round_id = place.released()
        assert place.run("auditor", "audit", "seed", round_id, "--out", tmp_path / "seed").code == 0
        audited = place.run("auditor", "audit", "verify")
    assert audited.code == 1
    assert f"the seed of the round {round_id} was read 1 times, of which 0 are recorded" in audited.text


@pytest.mark.sparse(4)
@pytest.mark.parametrize("lie", ["a_nonce_left_out", "a_nonce_changed"])
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.full
def test_a_nonce_that_is_left_out_or_changed_is_found_by_the_audit(tmp_path: Path, lie: str, session: bool) -> None:
    with lying_server(tmp_path, lie) as place:
        if session:
            round_id = place.operator.open_session(SESSION).round.id
            assert place.run("auditor", "audit", "nonce", round_id).code == 0
            answered = place.run("ann", "ask", round_id, place.statements, "--accept-unprotected")
            assert answered.code == 0, answered.text
            place.operator.seal(round_id)
        else:
            place.sealed(nonce=True)
        audited = place.run("auditor", "audit", "verify")
    assert audited.code == 1
    assert "does not name the nonce that the auditor gave" in audited.text


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("lie", [HONEST, "a_nonce_not_used"])
def test_a_session_s_nonce_that_is_on_record_and_not_used_is_found_by_the_replay(tmp_path: Path, lie: str) -> None:
    # So much noise that two draws of it are the same count by chance in one of some thousand runs.
    noisy = replace(SESSION, data_budget=replace(SESSION.data_budget, epsilon=0.001))
    with lying_server(tmp_path, lie) as place:
        round_id = place.operator.open_session(noisy).round.id
        assert place.run("auditor", "audit", "nonce", round_id).code == 0
        answered = place.run("ann", "ask", round_id, place.statements, "--accept-unprotected")
        assert answered.code == 0, answered.text
        place.operator.seal(round_id)
        place.finished(round_id)
    replayed = place.held("audit", "replay", round_id)
    assert replayed.code == (0 if lie == "nothing" else 1), replayed.text
    assert ("FAIL answers: analyst ann, message 1, query 0" in replayed.text) == (lie != "nothing"), replayed.text


@pytest.mark.full
@pytest.mark.parametrize(
    ("start", "words"),
    [
        pytest.param({"time": 1}, "A4 failed", marks=pytest.mark.full),
        ({"time": 1, "journal": {"sequence": 0, "digest": "ab" * 32}}, "is not the one that entry 0 of the log"),
    ],
)
def test_a_log_that_begins_without_the_journal_s_head_is_found_by_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: dict[str, object], words: str
) -> None:
    def lying(item: object, audience: Audience) -> object:
        told = isinstance(item, StartItem)
        return forge_item("start", audience, start) if told else make_item(item, audience)

    with monkeypatch.context() as patched:
        patched.setattr(keys, "make_item", lying)
        with lying_server(tmp_path, "nothing") as place:
            audited = place.run("auditor", "audit", "verify")
    assert audited.code == 1
    assert words in audited.text, audited.text


@pytest.mark.full
def test_a_stored_checkpoint_that_another_key_has_signed_is_found_by_the_check(tmp_path: Path) -> None:
    with lying_server(tmp_path, "nothing") as place:
        place.operator.open(TERMS)
        assert place.run("auditor", "audit", "verify").code == 0
    assert place.held("check").code == 0
    with closing(sqlite3.connect(place.state / "equipoise.db")) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        query = "SELECT size, note FROM checkpoints WHERE note IS NOT NULL ORDER BY size LIMIT 1"
        size, note = connection.execute(query).fetchone()
        text = note.partition(b"\n\n")[0].decode() + "\n"
        stranger = SigningKey(text.partition("\n")[0], Ed25519PrivateKey.generate())
        connection.execute("UPDATE checkpoints SET note = ? WHERE size = ?", [sign_note(text, [stranger]), size])
        connection.commit()
    checked = place.held("check")
    assert checked.code == 1
    assert f"the log's checkpoint of size {size} is damaged" in checked.text


@pytest.mark.sparse(3)
@pytest.mark.full
@pytest.mark.parametrize(
    ("lie", "words"),
    [
        NO_LIE,
        ("admissions_without_a_record", "'ann' has a share, but is not admitted before"),
        pytest.param(
            "a_revocation_that_is_not_kept",
            "a workload of 'ann' was used, who had no certificate in force",
            marks=pytest.mark.full,
        ),
    ],
)
def test_whoever_is_let_in_beside_the_record_is_found_by_the_audit(tmp_path: Path, lie: str, words: str) -> None:
    with lying_server(tmp_path, lie) as place:
        if lie == "a_revocation_that_is_not_kept":
            place.operator.revoke_analyst("ann")
        place.sealed()
        audited = place.run("auditor", "audit", "verify")
        listed = place.run("auditor", "audit", "identities", "--json")
        refused = place.run("ann", "audit", "identities")
    assert audited.code == (1 if words else 0), audited.text
    assert ("A12 failed" in audited.text) == bool(words)
    assert words in audited.text
    told = [(each["event"], each["name"], each["by"]) for each in json.loads(listed.text)["changes"]]
    admitted = [] if lie == "admissions_without_a_record" else ["ann", "bob"]
    revoked = [("revoked", "ann", "operator/operator")] if lie == "a_revocation_that_is_not_kept" else []
    made = [("added", name, "holder") for name in ("operator", "auditor")]
    assert told == [*made, *(("added", name, "operator/operator") for name in admitted), *revoked]
    assert refused.code == 1
    assert "may not call" in refused.text
