"""A kill between a commit's writing and its sync, then a repeated request, then a power loss: its answer stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dangers import LARGE_CAPS
from harness.faults.asking import CAP, LARGER, SCHEMA, Contents, check_image, make_deployment
from harness.faults.disk import DIE, SYNCS, nothing, traced_disk
from harness.server_process import running

from equipoise.clients.operator import Operator
from equipoise.errors import Unavailable


# Setting a cap syncs the commit, the guard and the guard's name, in this order.
@pytest.mark.nightly
@pytest.mark.parametrize("synced", [0, 1, 2])
def test_what_a_kill_left_unsynced_is_synced_before_it_is_answered_from(
    tmp_path: Path, synced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.clients.connection.ATTEMPTS", 1)
    state = tmp_path / "state"
    make_deployment(state)
    with traced_disk(state, tmp_path) as disk:
        profile = state / "profiles" / "operator"
        with running(state) as server, Operator.from_profile(profile) as operator:
            operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS)
            disk.break_down(DIE, SYNCS, synced)
            with pytest.raises(Unavailable):
                operator.set_cap("data/shop", LARGER, "cap", LARGE_CAPS)
            assert server.process.wait() == -9
            disk.repair()
        with running(state), Operator.from_profile(profile) as operator:
            assert operator.set_cap("data/shop", LARGER, "cap", LARGE_CAPS).cap == LARGER
            before = (state / "guard").read_bytes()
            disk.read()
            disk.write_image(tmp_path / "image", nothing)
            after = (state / "guard").read_bytes()
        check_image(tmp_path / "image", ["register", "cap"], Contents.of(state))
        # The log may have gone on meanwhile, and the guard with it.
        assert (tmp_path / "image" / "guard").read_bytes() in (before, after)
