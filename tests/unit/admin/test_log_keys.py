"""The log's keys and auditors' are exchanged while servers may run, and the log is written to files."""

from __future__ import annotations

import json
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from string import Template

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from harness.runbook_place import block

from equipoise.errors import AlreadyExists, DataLoss, InvalidArgument, NotFound, VerificationFailed, WrongState
from equipoise.records.merkle import leaf_hash, root_of
from equipoise.records.record import Kind
from equipoise.records.signed_notes import SigningKey, VerifierKey, open_checkpoint, sign_note
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.ledger_repair import verify, write_off_state
from equipoise_server.admin.log_keys import add_auditor_key, add_log_key, export_log, list_keys, retire_key
from equipoise_server.admin.new_state import create_state
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.cli import main
from equipoise_server.storage.crash_points import CrashPoint, install_hook
from equipoise_server.storage.tables.transparency import checkpoints
from equipoise_server.storage.tree_heads import TreeHead, root_at
from equipoise_server.transparency import log
from equipoise_server.transparency.keys import Purpose, in_force
from equipoise_server.transparency.record_writer import record
from equipoise_server.transparency.sequencing import Sequencer

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def clock() -> datetime:
    return NOW


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    create_state(path, clock=clock)
    sequence(path)
    return path


def sequence(state: Path) -> bytes:
    """What a server does within a second; the newest checkpoint."""
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    try:
        Sequencer(store, deployment.guard, deployment.signer).sequence(NOW)
        with store.read() as connection:
            note = log.checkpoint(connection)
    finally:
        store.close()
    assert note is not None
    return note


def signed_again(state: Path, size: int = 3) -> bytes | None:
    """The checkpoint of a size, signed anew; None where a file that it needs is gone."""
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    try:
        with store.read() as connection:
            root = root_at(connection, size)
            assert root is not None
            return deployment.signer.checkpoint(connection, TreeHead(size, root))
    except InvalidArgument:
        return None
    finally:
        store.close()


def verifiers(state: Path) -> dict[str, VerifierKey]:
    """The log's keys that are in force, by id."""
    keys = [each for each in list_keys(state, clock) if each.key.retired is None]
    return {each.key.id: each.verifier for each in keys if each.verifier is not None}


def test_two_keys_sign_while_one_takes_the_other_s_place(state: Path) -> None:
    ((old_id, old),) = verifiers(state).items()
    first = sequence(state)
    with pytest.raises(WrongState, match="only key"):
        retire_key(state, Purpose.LOG, old_id, clock)
    added = add_log_key(state, clock)
    new = added.verifier
    assert new is not None
    # What the log does not say yet, no checkpoint of it relies on, whenever it is signed.
    assert signed_again(state) == first
    both = sequence(state)
    # Whoever knows either key, and is told of the other, is content; a signature by a key nobody told of is not.
    assert open_checkpoint(both, [old], [new]) == open_checkpoint(both, [new], [old])
    with pytest.raises(VerificationFailed, match="unknown key"):
        open_checkpoint(both, [old])
    retire_key(state, Purpose.LOG, old_id, clock)
    last = sequence(state)
    assert [signed_again(state, size) for size in (3, 4, 5)] == [None, None, last]
    assert open_checkpoint(last, [new]).size == open_checkpoint(first, [old]).size + 2
    assert [path.name for path in (state / "keys").glob("log-*.key")] == [f"log-{added.key.id}.key"]
    assert {each.key.id: each.key.retired for each in list_keys(state, clock) if each.verifier is not None} == {
        old_id: NOW,
        added.key.id: None,
    }
    with pytest.raises(NotFound):
        retire_key(state, Purpose.LOG, old_id, clock)
    assert verify(state)["log_size"] == 5
    # Each checkpoint has the signatures of the keys that the log names up to its size, and of none that came next.
    check_state(state, clock)


def test_an_auditor_s_key_is_put_beside_the_first_and_retired(state: Path, tmp_path: Path) -> None:
    (first,) = [each.key for each in list_keys(state, clock) if each.key.purpose is Purpose.AUDITOR]
    public, wrong = tmp_path / "public.pem", tmp_path / "wrong.pem"
    public.write_bytes(
        X25519PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    wrong.write_bytes(
        generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    added = add_auditor_key(state, public, clock).key
    with pytest.raises(AlreadyExists):
        add_auditor_key(state, public, clock)
    with pytest.raises(InvalidArgument, match="not an X25519 key"):
        add_auditor_key(state, wrong, clock)
    with pytest.raises(InvalidArgument, match="not a public key in PEM"):
        add_auditor_key(state, state / "equipoise.toml", clock)
    for degenerate in (bytes(32), b"\x01" + bytes(31)):
        point = X25519PublicKey.from_public_bytes(degenerate)
        wrong.write_bytes(point.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        with pytest.raises(InvalidArgument, match="small order"):
            add_auditor_key(state, wrong, clock)
    retire_key(state, Purpose.AUDITOR, first.id, clock)
    store = open_deployment(state, NOW).open_store()
    with store.read() as connection:
        assert in_force(connection, Purpose.AUDITOR) == [added]
    store.close()


@pytest.mark.thin(3)
@pytest.mark.parametrize("point", [CrashPoint.KEY_MADE, CrashPoint.KEY_WRITTEN, CrashPoint.KEY_COMMITTED])
def test_a_crash_while_keys_are_exchanged_leaves_a_log_that_is_signed(state: Path, point: CrashPoint) -> None:
    def die(reached: CrashPoint) -> None:
        if reached is point:
            raise KeyboardInterrupt

    (old_id,) = verifiers(state)
    with install_hook(die), pytest.raises(KeyboardInterrupt):
        add_log_key(state, clock)
    open_checkpoint(sequence(state), list(verifiers(state).values()))
    add_log_key(state, clock)
    if point is not CrashPoint.KEY_MADE:
        with install_hook(die), pytest.raises(KeyboardInterrupt):
            retire_key(state, Purpose.LOG, old_id, clock)
    open_checkpoint(sequence(state), list(verifiers(state).values()))
    check_state(state, clock)


def test_a_server_without_the_file_of_a_key_in_force_is_told_which_and_can_be_helped(state: Path) -> None:
    (old_id,) = verifiers(state)
    (state / "keys" / f"log-{old_id}.key").unlink()
    with pytest.raises(InvalidArgument, match=f"log-{old_id}.key: cannot be read"):
        check_state(state, clock)
    add_log_key(state, clock)
    retire_key(state, Purpose.LOG, old_id, clock)
    check_state(state, clock)
    open_checkpoint(sequence(state), list(verifiers(state).values()))


@pytest.mark.parametrize("stripped", [False, True], ids=["another key's", "one of two"])
def test_a_checkpoint_that_is_not_signed_by_the_keys_in_force_is_found(state: Path, stripped: bool) -> None:
    """Its size and root are right: without the signatures, only the readers of the log would notice."""
    add_log_key(state, clock)
    sequence(state)
    check_state(state, clock)
    store = open_deployment(state, NOW).open_store()
    with store.write() as connection:
        head = log.signed_head(connection)
        assert head is not None
        text, _, signatures = head.note.decode().rpartition("\n\n")
        stranger = SigningKey(text.splitlines()[0], Ed25519PrivateKey.generate())
        one = f"{text}\n\n{signatures.splitlines()[0]}\n".encode()
        note = one if stripped else sign_note(f"{text}\n", [stranger])
        connection.execute(checkpoints.update().where(checkpoints.c.size == head.size).values(note=note))
    store.close()
    with pytest.raises(DataLoss, match=f"the log's checkpoint of size {head.size} is"):
        check_state(state, clock)


def test_a_key_file_that_is_another_s_is_refused(state: Path) -> None:
    (old_id,) = verifiers(state)
    added = add_log_key(state, clock).key
    path = state / "keys" / f"log-{old_id}.key"
    path.write_bytes((state / "keys" / f"log-{added.id}.key").read_bytes())
    with pytest.raises(InvalidArgument, match=f"is not the key {old_id} of the log"):
        check_state(state, clock)
    path.write_text("nothing")
    with pytest.raises(InvalidArgument, match="is not a private key in PEM"):
        check_state(state, clock)


def test_without_its_guard_the_log_goes_on_under_a_new_key_alone(state: Path) -> None:
    ((_, old),) = verifiers(state).items()
    (state / "guard").unlink()
    with pytest.raises(DataLoss, match="is missing"):
        check_state(state, clock)
    done = write_off_state(state, clock)
    new = VerifierKey.from_text(done["new_key"])
    assert list(verifiers(state).values()) == [new] != [old]
    assert open_checkpoint(sequence(state), [new]).size == 5
    check_state(state, clock)


def test_the_log_is_written_to_files_that_say_what_it_says(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_deployment(state, NOW).open_store()
    with store.write() as connection:
        for _ in range(300):
            record(connection, Kind.SEED_READ, [], now=NOW)
    store.close()
    note = sequence(state)
    with pytest.raises(SystemExit, match="0"):
        main(["log", "export", str(tmp_path / "log"), "--state", str(state), "--json"])
    assert json.loads(capsys.readouterr().out)["size"] == 303
    files = {str(path.relative_to(tmp_path / "log")) for path in (tmp_path / "log").rglob("*") if path.is_file()}
    both = {f"tile/{kind}/{name}" for kind in ("0", "entries") for name in ("000", "001.p/47")}
    assert files == {"checkpoint", "tile/1/000.p/1", *both}
    assert (tmp_path / "log" / "checkpoint").read_bytes() == note
    leaves: list[bytes] = []
    for name in ("000", "001.p/47"):
        rest = (tmp_path / "log" / "tile" / "entries" / name).read_bytes()
        while rest:
            end = 2 + int.from_bytes(rest[:2], "big")
            leaves.append(rest[2:end])
            rest = rest[end:]
    hashes = [leaf_hash(leaf) for leaf in leaves]
    checkpoint = open_checkpoint(note, list(verifiers(state).values()))
    assert (len(hashes), root_of(hashes)) == (checkpoint.size, checkpoint.root)
    assert (tmp_path / "log" / "tile" / "0" / "001.p" / "47").read_bytes() == b"".join(hashes[256:])
    with pytest.raises(InvalidArgument, match="cannot be written"):
        export_log(state, tmp_path / "log", clock)


def test_the_runbook_s_exchange_of_keys(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"STATE": str(state), "PUBLIC": "seed.pub", "DIRECTORY": str(tmp_path / "log")}
    (words["OLD"],) = verifiers(state)
    for number in range(2):
        _carry_out(block("The log's keys", number), words)
    ((new_id, new),) = verifiers(state).items()
    assert new_id != words["OLD"]
    assert new.to_text() in capsys.readouterr().out
    (words["OLD"],) = [each.key.id for each in list_keys(state, clock) if each.key.purpose is Purpose.AUDITOR]
    subprocess.run(["sh", "-euc", block("Auditors' keys")], check=True, capture_output=True, timeout=60)
    _carry_out(block("Auditors' keys", 1), words)
    sequence(state)
    _carry_out(block("The log for others"), words)
    assert (tmp_path / "log" / "checkpoint").exists()


def _carry_out(commands: str, words: dict[str, str]) -> None:
    for command in commands.splitlines():
        program, *arguments = shlex.split(Template(command).substitute(words))
        assert program == "equipoise-server"
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
