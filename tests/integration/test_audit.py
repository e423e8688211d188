"""An auditor of a real server: everything downloaded, verified offline, and every reading of a seed on record."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.client_command import answered, refusal
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.server_process import EACH_ITS_SEED, HURRIED, SEED, make_state, running

from equipoise.auditing.archive import read_archive
from equipoise.auditing.rounds import read_rounds
from equipoise.auditing.steps import open_steps
from equipoise.cli import main
from equipoise.clients.analyst import Client
from equipoise.clients.auditor import Auditor
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share, Terms
from equipoise.profile.profile import LOG_KEYS, Profile, read_log_keys
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.records.merkle import leaf_hash, verify_consistency, verify_inclusion
from equipoise.records.signed_notes import open_checkpoint
from equipoise_server.cli import main as run_server_command
from equipoise_server.replay.seed import seed_in

SCHEMA = Schema((Attribute("colour", ("red", "green")),))
BUDGET = Budget(8.0, 1e-4)
RED = attribute("colour") == "red"
TERMS = Terms(
    "shop", (Share("ann", 2, 2), Share("bob", 2, 2)), BUDGET, BUDGET, mechanism="gaussian", accepted=SMALL_TABLE
)


@dataclass(frozen=True)
class Deployment:
    """A server with one round that was released, one that was aborted and one that is open."""

    auditor: Path
    released: str
    receipt: Path


@dataclass(frozen=True)
class Place:
    """An auditor of the deployment who has audited nothing yet; `released` is the round with answers."""

    directory: Path
    auditor: Path
    released: str
    receipt: Path
    capsys: pytest.CaptureFixture[str]

    def audit(self, *arguments: object) -> dict[str, Any]:
        """The object that a command prints."""
        found = answered(self.capsys, self.auditor, "audit", *arguments)
        assert isinstance(found, dict)
        return found

    def refused(self, *arguments: object) -> str:
        """What a command says that must fail with exit code 1."""
        return refusal(self.capsys, self.auditor, "audit", *arguments)

    def failed(self, archive: Path | None, *options: object) -> str:
        """What `audit verify` prints of an archive that is not in order, or of what the server has."""
        given = [] if archive is None else [str(archive)]
        with pytest.raises(SystemExit) as ended:
            main(["audit", "verify", *given, *map(str, options), "--profile", str(self.auditor)])
        assert ended.value.code == 1
        return self.capsys.readouterr().out


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("deployment")
    state = make_state(directory / "state", HURRIED)
    (state / "data" / "shop.csv").write_text("colour\n" + "red\ngreen\n" * 50)
    profiles = state / "profiles"
    with running(state, script=EACH_ITS_SEED) as server:
        for name in ("operator", "auditor"):
            path = profiles / name / "profile.toml"
            target = Profile.load(path.parent).target
            path.write_text(path.read_text().replace(target, f"127.0.0.1:{server.port}"))
        with Operator.from_profile(profiles / "operator") as operator:
            operator.register_dataset(
                "shop", "shop.csv", SCHEMA, Budget(20.0, 1e-3), Budget(20.0, 1e-3), accepted=LARGE_CAPS
            )
            for name in ("ann", "bob"):
                operator.add_analyst(name, directory / name)
            released, aborted = (operator.open(TERMS).round.id for _ in range(2))
            main_ended(["audit", "nonce", released, "--profile", str(profiles / "auditor")])
            with Client.from_profile(directory / "ann") as ann:
                receipt = ann.submit(released, [RED])
                (directory / "receipt").write_bytes(receipt.envelope)
                operator.seal(released)
                operator.run_to_completion(released)
                operator.release(released)
                ann.wait(released)
            operator.abort(aborted, "no time")
            operator.open(TERMS)
        yield Deployment(profiles / "auditor", released, directory / "receipt")


@pytest.fixture
def state(deployment: Deployment) -> Path:
    """The state directory of the server."""
    return deployment.auditor.parent.parent


@pytest.fixture
def place(deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    auditor = tmp_path / "auditor"
    shutil.copytree(deployment.auditor, auditor)
    return Place(tmp_path, auditor, deployment.released, deployment.receipt, capsys)


def main_ended(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def outcomes(audit: dict[str, Any]) -> dict[str, str]:
    return {each["number"]: f"{each['outcome']} {each['detail']}".strip() for each in audit["checks"]}


@contextmanager
def files_that_cannot_grow() -> Iterator[None]:
    """No file of this process takes another byte, as on a disk that is full; that of other processes do."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.full
def test_a_deployment_is_audited_offline(place: Place) -> None:
    archive, report = place.directory / "archive", place.directory / "report.md"
    place.audit("download", "--out", archive)
    first = place.audit("verify", archive, "--report", report, "--receipt", place.receipt)
    assert set(outcomes(first).values()) == {
        "passed",
        "not checked no checkpoint was seen before; the next audit can compare with this one",
    }
    assert f"| `{place.released}` | shop | 1 | gaussian |" in report.read_text()

    # A seed is opened by the auditor's key alone, and that it was is looked for from then on.
    seed = place.directory / "seed"
    place.audit("seed", place.released, "--out", seed)
    kept = read_archive(archive)
    recorded = read_rounds(open_steps(kept.records, kept.leaves)).rounds[place.released]
    assert seed_in(seed, recorded.terms.seed_commitment).seed == SEED
    assert seed.stat().st_mode & 0o777 == 0o600
    assert "seed cannot be written" in place.refused("seed", place.released, "--out", seed).replace(
        f"{seed}: ", "seed "
    )
    again = place.audit("verify", "--receipt", place.receipt)
    assert set(outcomes(again).values()) == {"passed"}
    (read,) = [each for each in again["rounds"] if each["round"] == place.released]
    assert [each["auditor"] for each in read["seed_read"]] == ["auditor"]

    # What was found is told though it cannot be remembered.
    with files_that_cannot_grow():
        assert "all that was checked is in order" in place.failed(None)

    # The archive from before is older than what has been seen since.
    assert "an old one is shown again" in place.failed(archive)
    with Client.from_profile(place.receipt.parent / "ann") as ann:
        (place.directory / "bundle").write_bytes(ann.bundle(place.released).to_bytes())
    for seen in (archive / "checkpoint", place.directory / "bundle"):
        assert outcomes(place.audit("verify", "--checkpoint", seen))["A3"] == "passed"


def test_a_replay_whose_reading_of_the_seed_is_not_in_the_log_is_found(place: Place, state: Path) -> None:
    """On a copy of the state directory the same command opens the same seed, and no log says so."""
    copy = place.directory / "copy"
    shutil.copytree(state, copy)
    reports = {}
    for own in (copy, state):
        with pytest.raises(SystemExit) as ended:
            run_server_command(["audit", "replay", place.released, "--state", str(own), "--json"])
        assert not ended.value.code
        reports[own] = place.directory / f"{own.name}.json"
        reports[own].write_text(place.capsys.readouterr().out)
    assert "names the seed-read record" in place.failed(None, "--replay", reports[copy])
    # What is on record enters the log before a seed is given out.
    place.audit("seed", place.released, "--out", place.directory / "seed")
    found = outcomes(place.audit("verify", "--replay", reports[state]))
    assert found["A10"] == "passed"


def test_a_changed_archive_is_found_out(place: Place) -> None:
    archive = place.directory / "archive"
    place.audit("download", "--out", archive)
    for file, old, new, words in (
        ("journal.jsonl", '"action":"run"', '"action":"spend"', "the budget journal is damaged at entry"),
        ("records.jsonl", '\\"beta\\":0.05', '\\"beta\\":0.06', "the item round does not open to its hash"),
        ("checkpoint", "\n", "\r", "a signed note"),
    ):
        changed = place.directory / file
        shutil.copytree(archive, changed)
        content = (changed / file).read_bytes().decode()
        assert old in content
        (changed / file).write_bytes(content.replace(old, new, 1).encode())
        assert words in place.failed(changed)


def test_proofs_hold_for_every_leaf_and_size(place: Place) -> None:
    trusted = read_log_keys(place.auditor / LOG_KEYS)
    archive = place.directory / "archive"
    place.audit("download", "--out", archive)
    leaves = read_archive(archive).leaves
    with Auditor.from_profile(place.auditor) as auditor:
        checkpoint = open_checkpoint(auditor.checkpoint(), trusted)
        for index, leaf in enumerate(leaves):
            path = auditor.inclusion_proof(index, checkpoint.size)
            verify_inclusion(leaf_hash(leaf), index, checkpoint.size, path, checkpoint.root)
        old = open_checkpoint((archive / "checkpoint").read_bytes(), trusted)
        path = auditor.consistency_proof(old.size, checkpoint.size)
        verify_consistency(old.size, old.root, checkpoint.size, checkpoint.root, path)
