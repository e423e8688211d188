"""What the holder of the state directory does about identities: never upon a store that was restored."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.stores import back_up, restore

from equipoise.errors import DataLoss
from equipoise.model.identities import Role
from equipoise.profile.enrolment import begin
from equipoise_server.admin.identities import add_identity, list_identities, renew_identity, revoke_identity
from equipoise_server.admin.new_state import create_state


@pytest.mark.slow
def test_no_command_makes_up_for_a_revocation_that_a_restored_copy_does_not_have(
    tmp_path: Path, store_url: str
) -> None:
    """The guard counts requests: had one more been written before it looked, eve would be in force again."""
    state = tmp_path / "state"
    create_state(state, store=store_url)
    eves, bobs = begin(tmp_path / "eve"), begin(tmp_path / "bob")
    add_identity(state, "eve", Role.ANALYST, eves)
    before = back_up(store_url)
    revoke_identity(state, "eve")
    assert {each.name: each.certified_until for each in list_identities(state)}["eve"] is None
    after = back_up(store_url)
    restore(store_url, before)
    for command in (
        lambda: add_identity(state, "bob", Role.ANALYST, bobs),
        lambda: renew_identity(state, "auditor", bobs),
        lambda: revoke_identity(state, "auditor"),
        lambda: list_identities(state),
    ):
        with pytest.raises(DataLoss, match="revocations may be missing"):
            command()
    restore(store_url, after)
    add_identity(state, "bob", Role.ANALYST, bobs)
    certified = {each.name: each.certified_until is not None for each in list_identities(state)}
    assert certified == {"auditor": True, "bob": True, "eve": False, "operator": True}
