"""What everybody can prove after the demo's round, from files alone: airlines, auditor, and who has the data.

bundles/AIRLINE.json   an airline's part: what it asked, what it got, and the signed records of both
archive/               all that is on record, as the auditor downloaded it
audit.md               the auditor's report
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from equipoise.auditing.archive import read_archive, write_archive
from equipoise.auditing.download import download
from equipoise.auditing.report import as_markdown
from equipoise.auditing.verify import Outcome
from equipoise.auditing.verify import verify as verify_archive
from equipoise.clients.analyst import Client
from equipoise.clients.auditor import Auditor
from equipoise.profile.profile import LOG_KEYS, SEED_KEY, read_log_keys, read_seed_key
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.bundle import Bundle
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs
from equipoise.verification.checks import verify as verify_bundle
from equipoise_lab.demo.play import TABLE_FILE, Workloads
from equipoise_server.clock import system_clock
from equipoise_server.config_file import load_config
from equipoise_server.datasets.source import source_at
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.replay.replay import Replay
from equipoise_server.replay.seed import unsealed
from equipoise_server.replay.stored import StoredRound
from equipoise_server.storage.store import read_only

BUNDLES, ARCHIVE, REPORT = "bundles", "archive", "audit.md"


@dataclass(frozen=True)
class Proven:
    """What was proven. A failure is in words that name the check and the first difference; empty where all hold.

    `unmade`: how many of the auditor's checks could not be made, as for want of an optional library.
    """

    bundles: int
    bundle_failure: str
    audit_checks: int
    unmade: int
    audit_failure: str
    replay_checks: int
    replay_failure: str

    @property
    def holds(self) -> bool:
        """Whether everything does."""
        return not (self.bundle_failure or self.audit_failure or self.replay_failure)


def collect(place: Path, airlines: Iterable[str], round_id: str) -> None:
    """Download every airline's bundle and the auditor's archive, while the server runs.

    Args:
        place: the demo's directory.
        airlines: the names of the analysts.
        round_id: the round, which has ended.
    """
    (place / BUNDLES).mkdir()
    for airline in airlines:
        with Client.from_profile(_profile(place, airline)) as client:
            bundle_file(place, airline).write_bytes(client.bundle(round_id).to_bytes())
    with Auditor.from_profile(place / "state" / "profiles" / "auditor") as auditor:
        write_archive(download(auditor), place / ARCHIVE)


def prove(place: Path, workloads: Workloads, round_id: str) -> Proven:
    """Check all of it again, with no server: the bundles, the records, and with data and seed the round itself."""
    bundles = {airline: bundle_file(place, airline).read_bytes() for airline in workloads}
    receipts = {airline: ReceiptStore(_profile(place, airline)).receipt(round_id) for airline in workloads}
    failures = []
    for airline, statements in workloads.items():
        papers = VerifierInputs(read_log_keys(_profile(place, airline) / LOG_KEYS), receipts[airline], statements)
        try:
            verify_bundle(bundles[airline], papers, lambda *_: None)
        except CheckFailed as error:
            failures.append(f"{airline}: {error.message}")
    auditor = place / "state" / "profiles" / "auditor"
    # What airlines were shown and given they may show an auditor: another log, or another workload, would be found.
    shown = {Bundle.from_bytes(bundle).evidence.checkpoint for bundle in bundles.values()}
    given = [receipt for receipt in receipts.values() if receipt is not None]
    audit = verify_archive(read_archive(place / ARCHIVE), read_log_keys(auditor / LOG_KEYS), sorted(shown), given)
    (place / REPORT).write_text(as_markdown(audit), encoding="utf-8")
    failed = [f"{each.number}: {each.detail}" for each in audit.checks if each.outcome is Outcome.FAILED]
    config = load_config(place / "state")
    url, guard = config.store_url(place / "state"), Guard(place / "state" / GUARD_FILE)
    with read_only(url) as store:
        private = read_seed_key(auditor / SEED_KEY)
        table = source_at(config.data_path(place / "state") / TABLE_FILE)
        replayed = Replay(
            StoredRound(store, round_id),
            lambda commitment: unsealed(url, guard, round_id, private, commitment, system_clock()),
            lambda _: table,
            lambda *_: None,
        ).run()
    return Proven(
        bundles=len(workloads),
        bundle_failure="; ".join(failures),
        audit_checks=sum(each.outcome is Outcome.PASSED for each in audit.checks),
        unmade=sum(each.outcome is Outcome.NOT_CHECKED for each in audit.checks),
        audit_failure="; ".join(failed),
        replay_checks=len(replayed.checks),
        replay_failure="" if replayed.difference is None else f"{replayed.failed}: {replayed.difference}",
    )


def lines(proven: Proven) -> list[str]:
    """What was proven, for people."""
    unmade = f"; {proven.unmade} could not be made here" if proven.unmade else ""
    return [
        f"Each airline verified its own part offline, {len(Check)} checks with its own receipt and statements: "
        + (proven.bundle_failure or f"all {proven.bundles} hold."),
        "The auditor verified every record and charge without the data: "
        + (proven.audit_failure or f"all {proven.audit_checks} checks hold{unmade}."),
        "With the data and the seed the round was computed again and compared with what was delivered: "
        + (proven.replay_failure or "every message is the same."),
    ]


def bundle_file(place: Path, airline: str) -> Path:
    """Return the path of an airline's bundle."""
    return place / BUNDLES / f"{airline}.json"


def _profile(place: Path, airline: str) -> Path:
    return place / "profiles" / airline
