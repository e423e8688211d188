"""A part of the log is lost with the store: analysts are told, decide themselves, and verify again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness.client_command import answered, refusal
from harness.console_pages import Browser
from harness.dangers import LARGE_CAPS_TYPED
from harness.server_process import make_state, running
from harness.shop_commands import SCHEMA, STATEMENTS, Run, open_round, register

from equipoise.cli import main as client_main
from equipoise.profile.profile import Profile
from equipoise_server.cli import main as server_main


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A state directory with a table, without a server."""
    state = make_state(tmp_path / "state")
    rows = [f"{('red', 'green')[row % 3 % 2]},{'smlx'[row * row % 7 % 4]}" for row in range(400)]
    (state / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "statements.json").write_text(json.dumps({"version": 1, "statements": STATEMENTS}))
    return tmp_path


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(who: str, *arguments: object) -> Any:
        return answered(capsys, profile_of(place, who), *arguments)

    return command


def profile_of(place: Path, who: str) -> Path:
    return (place / "state" / "profiles" if who in ("operator", "auditor") else place) / who


@contextmanager
def served(place: Path) -> Iterator[None]:
    """A server on the state directory, and every profile that is there leads to it."""
    with running(place / "state") as server:
        for path in (*place.glob("*/profile.toml"), *place.glob("state/profiles/*/profile.toml")):
            target = Profile.load(path.parent).target
            path.write_text(path.read_text().replace(target, f"127.0.0.1:{server.port}"))
        yield


def held(run: Run, place: Path) -> str:
    """A round that is released."""
    round_id = open_round(run)
    for who in ("ann", "bob"):
        run(who, "submit", round_id, place / "statements.json")
    for step in ("seal", "run", "release"):
        run("operator", "operator", "round", step, round_id)
    run("ann", "wait", round_id)
    return round_id


def by_server(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What a command of the custodian's prints, which must succeed."""
    with pytest.raises(SystemExit) as ended:
        server_main([*map(str, words)])
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    return printed.out


def last_check(capsys: pytest.CaptureFixture[str], profile: Path, *words: object) -> dict[str, Any]:
    """The last check that a verification makes, passed or failed."""
    with pytest.raises(SystemExit):
        client_main([*map(str, words), "--profile", str(profile), "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    return {"number": checks[-1]["number"], "holds": checks[-1]["holds"], "found": checks[-1]["found"]}


@pytest.mark.full
def test_analysts_accept_a_loss_that_the_log_admits(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    state, ann = place / "state", place / "ann"
    with served(place):
        register(run, place)
        kept = held(run, place)
        by_server(capsys, "backup", "--state", state, "--out", place / "backup")
        lost = held(run, place)
        for who in ("ann", "bob"):
            assert run(who, "bundle", lost, "--out", place / f"{who}.lost")["verified"]
        assert "nothing was lost" in refusal(capsys, ann, "accept-loss", kept)
    by_server(capsys, "restore", "--state", state, "--from", place / "backup", "--older")
    by_server(capsys, "ledger", "write-off", "--state", state)

    with served(place):
        verified = partial(last_check, capsys, ann, "bundle", kept, "--out", place / "ann.kept")
        failed = verified()
        assert (failed["number"], failed["holds"]) == (13, False)
        assert "says that the custodian's store was restored from an older copy" in failed["found"]
        way_on = failed["found"].rpartition(": ")[2].split()
        assert way_on[:3] == ["equipoise", "accept-loss", kept]
        # Looking accepts nothing, and no other root is accepted.
        shown = run("ann", *way_on[1:3])
        assert (shown["accepted"], shown["lost"]["root"]) == (False, way_on[3])
        assert "is not that of the checkpoint in the profile" in refusal(capsys, ann, *way_on[1:3], "00" * 32)
        assert verified() == failed
        before = (ann / "checkpoint").read_bytes()
        assert run("ann", *way_on[1:]) == {**shown, "accepted": True}
        assert (ann / "accepted-losses" / way_on[3]).read_bytes() == before
        again = verified()
        assert (again["number"], again["holds"]) == (13, True)
        assert f"lost, as you have accepted: the log of {shown['lost']['size']} leaves" in again["found"]
        # What is held of the lost part stays true, and is compared no more.
        for words in (["ann.lost"], ["ann.kept", "--checkpoint", place / "ann.lost"]):
            assert last_check(capsys, ann, "verify", place / str(words[0]), *words[1:])["holds"]
        assert run("ann", "bundle", held(run, place), "--out", place / "ann.next")["verified"]
        by_the_pages(place, kept)


@pytest.mark.nightly
def test_where_the_guard_was_lost_the_keys_that_signed_are_retired(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows how much of the log was lost. Analysts take the old key's line out, as the runbook says."""
    state, ann = place / "state", place / "ann"
    with served(place):
        register(run, place)
        kept = held(run, place)
        assert run("ann", "bundle", kept, "--out", place / "ann.kept")["verified"]
    for name in ("guard", "guard.digests"):
        (state / name).unlink()
    by_server(capsys, "ledger", "write-off", "--state", state)
    lines = re.findall(r"equipoise/\S+", by_server(capsys, "keys", "show", "--state", state))
    before = (ann / "log.vkey").read_text()
    for who in ("ann", "bob"):
        (place / who / "log.vkey").write_text("".join(f"{line}\n" for line in lines if line not in before))
    with served(place):
        caps = ("--epsilon", 60, "--delta", 1e-3, *LARGE_CAPS_TYPED)
        run("operator", "operator", "budget", "set-cap", "data/shop", *caps)
        new = held(run, place)
        failed = last_check(capsys, ann, "bundle", new, "--out", place / "ann.new")
        assert (failed["number"], failed["holds"]) == (13, False)
        assert "which has signed your checkpoint, signs no more" in failed["found"]
        assert run("ann", *failed["found"].rpartition(": ")[2].split()[1:])["accepted"]
        assert last_check(capsys, ann, "bundle", new, "--out", place / "ann.new")["holds"]


def by_the_pages(place: Path, round_id: str) -> None:
    """Bob does the same in its browser."""
    with Browser.of(place / "bob") as bob:
        for _ in range(2):  # a failed verification changes nothing
            failed = bob.finish(bob.post(f"/rounds/{round_id}/verify")).text
            assert "restored from an older copy" in failed
            assert f"/rounds/{round_id}/loss" in failed
        page = bob.get(f"/rounds/{round_id}/loss").text
        assert "up to its first" in page
        (root,) = [part.split('"')[0] for part in page.split('name="root" value="')[1:]]
        assert bob.post(f"/rounds/{round_id}/loss", root="0" * 64).status_code == 400
        assert "You have accepted that the log of" in bob.post(f"/rounds/{round_id}/loss", root=root).text
        assert "All 13 checks hold" in bob.finish(bob.post(f"/rounds/{round_id}/verify")).text
        assert "nothing was lost" in bob.get(f"/rounds/{round_id}/loss").text
