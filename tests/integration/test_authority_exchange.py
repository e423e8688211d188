"""The authority is exchanged under a running server: nobody is cut off, and in the end the old one is of no use."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness.lying_server import TERMS, lying_server

from equipoise.clients.analyst import Client
from equipoise.errors import EquipoiseError
from equipoise.profile.certificates import read_certificates
from equipoise.profile.profile import AUTHORITY, CERTIFICATE


@contextmanager
def connected(profile: Path) -> Iterator[Client]:
    """A new connection with a profile."""
    with Client.from_profile(profile) as client:
        yield client


@pytest.mark.nightly
def test_an_authority_is_exchanged_while_a_server_runs(tmp_path: Path) -> None:
    with lying_server(tmp_path, "nothing") as place:
        ann, before = place.profile("ann"), (place.profile("ann") / AUTHORITY).read_bytes()
        with connected(ann) as stays:
            told = stays.identity()
            rotated = place.held("ca", "rotate")
            assert rotated.code == 0, rotated.text
            assert "Signed 4 certificates anew" in rotated.text
            assert place.held("ca", "rotate").code == 1
            # Who was connected stays so, and who trusts the old authority alone connects.
            assert stays.identity() == told
        assert (ann / AUTHORITY).read_bytes() == before
        assert place.run("ann", "whoami").code == 0
        refused = place.held("ca", "retire")
        assert refused.code == 1
        assert (
            "not all have used a certificate of the new authority yet: ann, auditor, bob, operator" in refused.text
        )
        old = {path.name: path.read_bytes() for path in ann.iterdir() if path.is_file()}
        for who in ("ann", "auditor"):
            followed = place.run(who, "authority")
            assert "now trusts the new authority" in followed.text
            assert "is the one you trust" in place.run(who, "authority").text
        new = (ann / AUTHORITY).read_bytes()
        assert new != before
        assert len(read_certificates(new)) == 1
        assert (ann / "key.pem").read_bytes() == old["key.pem"]
        # Whoever is admitted now trusts the new authority alone.
        place.operator.add_analyst("cyd", tmp_path / "cyd")
        assert (tmp_path / "cyd" / AUTHORITY).read_bytes() == new
        assert place.run("cyd", "whoami").code == 0
        assert place.held("ca", "retire").text.count("bob, operator") == 1
        with connected(place.profile("bob")) as stays:
            assert stays.identity().name == "bob"
            retired = place.held("ca", "retire", "--lock-out")
            assert retired.code == 0, retired.text
            # On the open connection, too.
            with pytest.raises(EquipoiseError):
                stays.identity()
        assert place.run("bob", "whoami").code == 1
        assert place.run("bob", "authority").code == 1
        for who in ("ann", "cyd", "auditor"):
            assert place.run(who, "whoami").code == 0
        (ann / AUTHORITY).write_bytes(before)
        (ann / CERTIFICATE).write_bytes(old[CERTIFICATE])
        assert place.run("ann", "whoami").code == 1  # the old profile
        assert place.run("auditor", "audit", "verify").code == 0
    files = [place.state / "ca" / name for name in ("authority.pem", "authority.key")]
    assert stat.S_IMODE(files[1].stat().st_mode) == 0o600
    assert {path.name for path in (place.state / "ca").iterdir()} == {path.name for path in files}
    assert place.held("check").code == 0


@pytest.mark.nightly
def test_a_running_server_ends_the_old_authority_at_the_time_that_was_stated(tmp_path: Path) -> None:
    with lying_server(tmp_path, "nothing") as place:
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=30)
        rotated = place.held("ca", "rotate", "--until", end.isoformat())
        assert rotated.code == 0, rotated.text
        assert place.run("ann", "authority").code == 0
        with connected(place.profile("bob")) as stays:
            while let_in(stays):
                assert datetime.now(UTC) < end + timedelta(minutes=2)
                time.sleep(0.2)
        assert datetime.now(UTC) >= end
        assert place.run("bob", "whoami").code == 1
        assert place.run("bob", "authority").code == 1
        # Who has moved goes on; who has not is locked out, the auditor, too.
        assert place.run("ann", "whoami").code == 0
        assert place.run("auditor", "whoami").code == 1
        assert place.held("ca", "retire").code == 1  # it is done


def let_in(client: Client) -> bool:
    """Whether the server still answers with who one is."""
    try:
        client.identity()
    except EquipoiseError:
        return False
    return True


@pytest.mark.nightly
def test_people_are_revoked_in_both_generations(tmp_path: Path) -> None:
    with lying_server(tmp_path, "nothing") as place:
        assert place.held("ca", "rotate").code == 0
        for who in ("ann", "bob"):
            if who == "ann":
                assert place.run(who, "authority").code == 0
            place.operator.revoke_analyst(who)
            assert place.run(who, "whoami").code == 1
            assert place.run(who, "authority").code == 1
        place.operator.open(TERMS)
        audited = place.run("auditor", "audit", "verify")
        assert audited.code == 0, audited.text
