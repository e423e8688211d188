"""What the commands refuse before any server is asked, each in one clear line that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from equipoise.cli import main


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the command says on standard error; it must fail with exit code 1 and print nothing else."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


@pytest.fixture
def seed_key(tmp_path: Path) -> Path:
    """An auditor's private key, in a file."""
    path = tmp_path / "seed.key"
    pem = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem)
    path.chmod(0o600)
    return path


def test_a_seed_is_not_asked_for_where_it_could_not_be_written(
    tmp_path: Path, seed_key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each reading of a seed is on record for good, so the file is looked at before anything is asked."""
    out = tmp_path / "seed.hex"
    out.write_text("older")
    arguments = ("audit", "seed", "round-1", "--out", out, "--seed-key", seed_key, "--profile", tmp_path)
    assert refusal(capsys, *arguments) == (
        f"error: {out}: cannot be written: it exists already; the seed was not asked for\n"
    )
    assert out.read_text() == "older"


def test_statements_that_are_no_text_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statements = tmp_path / "statements.json"
    statements.write_bytes(b"\xff\xfe")
    said = refusal(capsys, "submit", "round-1", statements, "--profile", tmp_path)
    assert said == f"error: {statements}: is not UTF-8 text\n"
