"""Bundles of a real server's rounds pass offline, whatever became of the round; others are given nothing."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pytest
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.rounds_bench import COLOUR, SCHEMA, SIZE, write_table
from harness.server_process import make_state, running

from equipoise.cli import main
from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import NotFound, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share, Terms
from equipoise.profile.profile import LOG_KEYS, Profile, read_log_keys
from equipoise.profile.receipt_store import CHECKPOINT, ReceiptStore
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.statements_file import statements_to_json
from equipoise.records.bundle import Bundle
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs, verify
from equipoise.verification.log_history import EarlierCheckpoint
from equipoise_server.cli import main as server_main

STATEMENTS: dict[str, tuple[Statement, ...]] = {
    "ann": (Marginal(("colour", "size")), COLOUR == "red"),
    "bob": (SIZE.isin(["s", "m"]), Marginal(("size",))),
}
ANALYSTS = ("ann", "bob", "cyd", "eve")  # cyd takes its workload back, eve has no share
CAP = Budget(40.0, 1e-3)


@dataclass
class Place:
    """A server's people: the operator, and the analysts by name with their profiles."""

    directory: Path
    operator: Operator
    clients: dict[str, Client]

    def opened(self, mechanism: str, options: Mapping[str, object] = MappingProxyType({})) -> str:
        """A round to which ann and bob have submitted, and cyd, who has taken it back."""
        shares = tuple(Share(name, 4, 12, 4, 4) for name in ("ann", "bob", "cyd"))
        budget = Budget(8.0, 1e-4)
        terms = Terms("shop", shares, budget, budget, mechanism=mechanism, options=options, accepted=SMALL_TABLE)
        round_id = self.operator.open(terms).round.id
        self.clients["ann"].submit(round_id, STATEMENTS["bob"])
        for name, statements in STATEMENTS.items():
            self.clients[name].submit(round_id, statements)
        self.clients["cyd"].submit(round_id, STATEMENTS["ann"])
        self.clients["cyd"].withdraw(round_id)
        return round_id

    def released(self, mechanism: str, options: Mapping[str, object] = MappingProxyType({})) -> str:
        """Such a round, whose results can be read."""
        round_id = self.opened(mechanism, options)
        self.operator.seal(round_id)
        self.operator.run_to_completion(round_id)
        self.operator.release(round_id)
        self.clients["ann"].wait(round_id)
        return round_id

    def papers(self, name: str, round_id: str) -> VerifierInputs:
        """All that an analyst has kept."""
        profile = self.directory / name
        held = ReceiptStore(profile).checkpoint()
        return VerifierInputs(
            read_log_keys(profile / LOG_KEYS),
            ReceiptStore(profile).receipt(round_id),
            STATEMENTS.get(name),
            None if held is None else EarlierCheckpoint(held),
        )


@contextmanager
def a_place(directory: Path) -> Iterator[Place]:
    state = make_state(directory / "state")
    write_table(state / "data")
    with ExitStack() as stack:
        server = stack.enter_context(running(state))
        profile = state / "profiles" / "operator"
        settings = profile / "profile.toml"
        settings.write_text(settings.read_text().replace(Profile.load(profile).target, f"127.0.0.1:{server.port}"))
        operator = stack.enter_context(Operator.from_profile(profile))
        operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, accepted=LARGE_CAPS)
        clients = {}
        for name in ANALYSTS:
            operator.add_analyst(name, directory / name)
            clients[name] = stack.enter_context(Client.from_profile(directory / name))
        yield Place(directory, operator, clients)


def failing(bundle: Bundle, papers: VerifierInputs) -> Check | None:
    try:
        verify(bundle.to_bytes(), papers, lambda check, said: None)
    except CheckFailed as failed:
        return failed.check
    return None


@pytest.mark.full
def test_every_analyst_can_verify_whatever_became_of_the_round(tmp_path: Path) -> None:
    with a_place(tmp_path) as place:
        released = place.released("equilibrium", options={"game_share": 0.5, "play": "mixed"})
        rounds = [released]
        for seal in (False, True):
            round_id = place.opened("gaussian")
            if seal:
                place.operator.seal(round_id)
            with pytest.raises(WrongState, match="not ended"):
                place.clients["ann"].evidence(round_id)
            place.operator.abort(round_id, "the power failed")
            rounds.append(round_id)
        for round_id in rounds:
            assert refusal_of_eve(place, round_id) == refusal_of_eve(place, "0" * 32)
            for name in ("ann", "bob", "cyd"):
                bundle, papers = place.clients[name].bundle(round_id), place.papers(name, round_id)
                assert papers.receipt is not None
                assert failing(bundle, papers) is None
                assert (bundle.synopsis is not None) == (round_id == released)
                assert bool(bundle.stream) == (round_id == released and name in STATEMENTS)
        evidence_of_one_is_of_no_use_to_another(place, released)


@pytest.mark.full
def test_a_marginal_of_some_records_is_answered_and_verified_like_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (Marginal(("size",), where=COLOUR == "red"), Marginal(("size",)))
    monkeypatch.setitem(STATEMENTS, "bob", asked)
    monkeypatch.setitem(STATEMENTS, "ann", asked[:1])
    with a_place(tmp_path) as place:
        round_id, bob = place.opened("gaussian"), place.clients["bob"]
        counted = bob.dry_run(round_id, asked)
        assert (counted.statements, counted.queries, counted.sensitivity) == (2, 8, 4)
        place.operator.seal(round_id)
        place.operator.run_to_completion(round_id)
        place.operator.release(round_id)
        bob.wait(round_id)
        answers = list(bob.results(round_id, asked))
        assert [(each.statement, *each.cell) for each in answers[:5]] == [
            *((0, size) for size in ("s", "m", "l", "xl")),
            (1, "s"),
        ]
        for red, all_of_size in zip(answers[:4], answers[4:], strict=True):
            assert red.low is not None
            assert all_of_size.high is not None
            assert red.low <= all_of_size.high
        for name in ("ann", "bob"):
            bundle, papers = place.clients[name].bundle(round_id), place.papers(name, round_id)
            assert failing(bundle, papers) is None
        whole = replace(papers, statements=(asked[1], asked[1]))
        assert failing(bundle, whole) is Check.WORKLOAD


def refusal_of_eve(place: Place, round_id: str) -> str:
    with pytest.raises(NotFound) as refused:
        place.clients["eve"].evidence(round_id)
    return str(refused.value)


def evidence_of_one_is_of_no_use_to_another(place: Place, round_id: str) -> None:
    ann, bob = (place.clients[name].bundle(round_id) for name in ("ann", "bob"))
    assert failing(replace(ann, stream=bob.stream), place.papers("ann", round_id)) is Check.STREAM
    assert failing(bob, place.papers("ann", round_id)) is Check.RECEIPT
    shown = ann.evidence.to_bytes()
    assert b"bob" not in shown
    assert b"cyd" not in shown


def told(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """What a command prints, which must end with this code."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    printed = capsys.readouterr()
    assert (ended.value.code or 0) == code, printed.err
    return printed.out or printed.err


@pytest.mark.full
def test_by_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with a_place(tmp_path) as place:
        bundled(place, capsys)
    verified(tmp_path, capsys)


@pytest.mark.full
def test_while_keys_are_exchanged_the_old_one_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also once a checkpoint is kept that the new one has signed, too, of which the profile does not know."""
    with a_place(tmp_path) as place:
        ann = tmp_path / "ann"
        round_id = place.opened("gaussian")
        place.operator.abort(round_id, "the power failed")
        with pytest.raises(SystemExit) as ended:
            server_main(["keys", "add", "log", "--state", str(tmp_path / "state")])
        assert not ended.value.code
        given_up = time.monotonic() + 60
        while (ReceiptStore(ann).checkpoint() or b"").count(b"equipoise/") < 3:  # the origin, and both signatures
            assert time.monotonic() < given_up
            told(capsys, 0, "bundle", round_id, "--out", tmp_path / "bundle", "--profile", ann)
        again = told(capsys, 0, "bundle", round_id, "--out", tmp_path / "again", "--profile", ann)
        assert "held by you" in again
        # A file that holds no checkpoint is named.
        (ann / CHECKPOINT).write_bytes(b"nonsense")
        refused = told(capsys, 1, "bundle", round_id, "--out", tmp_path / "none", "--profile", ann)
        assert str(ann / CHECKPOINT) in refused.replace("\n", "")


def bundled(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Ann's bundle of a round, twice; the second has the proof that the log has only grown since the first."""
    ann, here = place.directory / "ann", place.directory
    profile = ("--profile", ann)
    round_id = place.opened("pooled", options={"least": 0, "synopsis": 5000})
    first = (ann / "receipts" / round_id).read_bytes()
    place.clients["ann"].submit(round_id, STATEMENTS["bob"])
    replaced = (ann / "receipts" / round_id).read_bytes()
    assert replaced != first
    (here / "first").write_bytes(first)
    (here / "own.json").write_text(statements_to_json(STATEMENTS["bob"]))
    (here / "other.json").write_text(statements_to_json(STATEMENTS["ann"]))
    file = here / "ann.bundle"
    assert "has not ended" in told(capsys, 1, "bundle", round_id, "--out", file, *profile)
    place.operator.seal(round_id)
    place.operator.run_to_completion(round_id)
    place.operator.release(round_id)
    place.clients["ann"].wait(round_id)

    assert "All 13 checks hold." in told(capsys, 0, "bundle", round_id, "--out", file, *profile)
    place.operator.abort(place.opened("gaussian"), "the power failed")  # the log grows
    again = told(capsys, 0, "bundle", round_id, "--out", here / "again", *profile)
    assert "held by you" in again
    # A custodian who has used another workload than the one in the receipt.
    own = ann / "receipts" / round_id
    own.write_bytes(first)
    assert " 6 FAILED" in told(capsys, 1, "bundle", round_id, "--out", here / "denied", *profile)
    own.write_bytes(replaced)


def verified(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any server: what passes, and what does not."""
    ann, file = here / "ann", here / "ann.bundle"
    profile = ("--profile", ann)
    shown = told(capsys, 0, "verify", file, *profile, "--statements", here / "own.json")
    assert "6 ok" in shown
    assert "the same as your own" in shown
    line = (ann / LOG_KEYS).read_text().strip()
    (here / "key").write_text(line + "\n")
    for key in (line, here / "key"):
        assert "none of your own was given" in told(capsys, 0, "verify", file, "--key", key)
    found = json.loads(told(capsys, 0, "verify", file, *profile, "--json"))
    assert found["verified"]
    assert [check["number"] for check in found["checks"]] == list(range(1, 14))

    later = ("--checkpoint", here / "again")
    assert "held by you" in told(capsys, 0, "verify", file, *profile, *later)
    assert " 6 FAILED" in told(capsys, 1, "verify", file, *profile, "--receipt", here / "first")
    assert " 7 FAILED" in told(capsys, 1, "verify", file, *profile, "--statements", here / "other.json")
    data = file.read_bytes()
    file.write_bytes(re.sub(rb'"index":[0-9]+', b'"index":0', data, count=1))
    found = json.loads(told(capsys, 1, "verify", file, *profile, "--json"))
    assert not found["verified"]
    assert (found["checks"][-1]["number"], found["checks"][-1]["holds"]) == (3, False)
    file.write_bytes(data[:-1])
    assert " 1 FAILED" in told(capsys, 1, "verify", file, *profile)
    for wrong in ("nowhere", here):
        assert "cannot be read" in told(capsys, 1, "verify", here / wrong, *profile)
    assert "cannot be read" in told(capsys, 1, "verify", here / "again", "--profile", here / "nobody")
    assert "none: cannot be read" in told(capsys, 1, "verify", here / "again", "--key", "none")
    assert "verifier key" in told(capsys, 1, "verify", here / "again", "--key", line[:-1])
    shutil.rmtree(ann / "receipts")
    assert "All 13 checks hold." in told(capsys, 0, "verify", here / "again", *profile)
