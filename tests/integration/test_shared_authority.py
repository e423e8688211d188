"""The authority is exchanged where several servers share a PostgreSQL store and the files of a state directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness.lying_server import Outcome, command
from harness.server_process import HURRIED, ServerProcess, make_state, running
from harness.stores import Cluster

from equipoise.clients.operator import Operator
from equipoise.errors import Unavailable
from equipoise.profile.profile import AUTHORITY, Profile


@pytest.fixture
def state(tmp_path: Path, postgresql: Cluster) -> Iterator[Path]:
    url = postgresql.create()
    yield make_state(tmp_path / "state", HURRIED, store=url)
    postgresql.drop(url)


def at(profile: Path, server: ServerProcess) -> Path:
    """A profile that calls a server."""
    path = profile / "profile.toml"
    path.write_text(path.read_text().replace(Profile.load(profile).target, f"127.0.0.1:{server.port}"))
    return profile


def held(state: Path, *arguments: object) -> Outcome:
    """What `equipoise-server` says to the holder of the state directory."""
    return command(state.parent, "equipoise_server.cli", *arguments, "--state", state)


def says(profile: Path, *arguments: object) -> Outcome:
    """What `equipoise` says to the holder of a profile."""
    return command(profile.parent, "equipoise.cli", *arguments, "--profile", profile)


@pytest.mark.nightly
def test_all_servers_take_up_a_new_authority_and_refuse_the_old_one_when_it_is_retired(
    state: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(running(state)) for _ in range(2)]
        olga = at(state / "profiles" / "operator", servers[0])
        auditor = at(state / "profiles" / "auditor", servers[1])
        with Operator.from_profile(olga) as operator:
            operator.add_analyst("ann", tmp_path / "ann")
        old = (tmp_path / "ann" / AUTHORITY).read_bytes()
        rotated = held(state, "ca", "rotate")
        assert rotated.code == 0, rotated.text
        assert held(state, "check").code == 0
        for number, server in enumerate(servers):
            # Who trusts the old authority alone still connects to each, and each admits by the new one.
            assert says(at(tmp_path / "ann", server), "whoami").code == 0
            with Operator.from_profile(at(olga, server)) as operator:
                operator.add_analyst(f"new{number}", tmp_path / f"new{number}")
            assert (tmp_path / f"new{number}" / AUTHORITY).read_bytes() != old
            for other in servers:
                assert says(at(tmp_path / f"new{number}", other), "whoami").code == 0
        late = tmp_path / "late"  # trusts the old authority alone
        shutil.copytree(tmp_path / "ann", late)
        for profile in (tmp_path / "ann", olga, auditor):
            followed = says(profile, "authority")
            assert "now trusts the new authority" in followed.text
        # All have called with their new certificates, at one server or another.
        for profile in (tmp_path / "ann", olga, auditor):
            assert says(profile, "whoami").code == 0
        retired = held(state, "ca", "retire")
        assert retired.code == 0, retired.text
        for server in servers:
            assert says(at(late, server), "whoami").code == 1
            for profile in (tmp_path / "ann", olga, auditor):
                assert says(at(profile, server), "whoami").code == 0
        audited = says(auditor, "audit", "verify")
        assert audited.code == 0, audited.text
        listed = says(auditor, "audit", "identities").text
        assert "(the authority) rotated holder" in listed
        assert "(the authority) retired holder" in listed
    assert held(state, "check").code == 0


def test_a_server_with_other_files_admits_nobody_and_check_says_why(state: Path, tmp_path: Path) -> None:
    """A machine that has a copy of the state directory, which the exchange on another has not reached."""
    copy = tmp_path / "copy"
    shutil.copytree(state, copy)
    with running(copy) as server:
        olga = at(copy / "profiles" / "operator", server)
        assert held(state, "ca", "rotate").code == 0
        with (
            Operator.from_profile(olga) as operator,
            pytest.raises(Unavailable, match="authority is being exchanged"),
        ):
            operator.add_analyst("ann", tmp_path / "ann")
    checked = held(copy, "check")
    assert checked.code == 1
    assert "the authority in ca is not the one on record" in checked.text
