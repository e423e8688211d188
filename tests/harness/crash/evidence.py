"""What analysts and auditors find out by themselves, of a server that dies all the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.crash.dying_server import Persisting, Server
from harness.crash.promises import Promises

from equipoise.auditing.auditor_log import own_acts
from equipoise.auditing.download import download
from equipoise.auditing.verify import Outcome, verify
from equipoise.clients.analyst import Client
from equipoise.clients.auditor import Auditor
from equipoise.model.rounds import RoundState
from equipoise.profile.profile import LOG_KEYS, read_log_keys
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.signed_notes import claimed
from equipoise.verification.checks import VerifierInputs
from equipoise.verification.checks import verify as verify_bundle
from equipoise.verification.log_history import EarlierCheckpoint


def verify_part(caller: Persisting[Client], profile: Path, round_id: str) -> None:
    """An analyst verifies its part in an ended round as `equipoise bundle` does, with all that it has kept."""
    kept = ReceiptStore(profile)
    before = kept.checkpoint()
    size = 0 if before is None else claimed(before).size
    bundle = caller.ask(lambda it: it.bundle(round_id, size))
    inputs = VerifierInputs(
        read_log_keys(profile / LOG_KEYS),
        kept.newest(round_id),
        None,
        None if before is None else EarlierCheckpoint(before),
    )
    verify_bundle(bundle.to_bytes(), inputs, lambda *_: None)
    kept.keep_checkpoint(bundle.evidence.checkpoint)


@dataclass
class Audits:
    """One after the other: each against the checkpoints of all before, with all analysts' receipts."""

    server: Server
    profiles: Path
    promises: Promises
    names: Iterable[str]  # whose receipts it has
    audits: int = 0
    seen: list[bytes] = field(default_factory=list)

    def audit(self) -> None:
        """Everything on record is in order, and nothing is missing that clients were told of before."""
        # A release enters the log at its release time, from which on results are read.
        released = {round_id for round_id, _ in self.promises.as_of_now().streams}
        stores = [ReceiptStore(self.profiles / name) for name in self.names]
        receipts = [found for round_id in released for kept in stores if (found := kept.newest(round_id))]
        profile = self.server.state / "profiles" / "auditor"
        caller = Persisting(self.server, lambda: Auditor.from_profile(profile))
        archive = caller.ask(lambda it: download(it, own=own_acts(profile)))
        caller.close()
        audit = verify(archive, read_log_keys(profile / LOG_KEYS), self.seen, receipts)
        failed = [f"{each.number}: {each.detail}" for each in audit.checks if each.outcome is Outcome.FAILED]
        assert failed == [], failed
        assert audit.recorded is not None
        states = {round_id: audit.recorded.rounds[round_id].state for round_id in released}
        assert set(states.values()) <= {RoundState.RELEASED.value}, states
        self.seen.append(archive.checkpoint)
        self.audits += 1
