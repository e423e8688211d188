"""What an analyst keeps and can prove: receipts, and the verification of an ended round."""

from __future__ import annotations

from starlette.responses import Response

from equipoise.commands.columns import shown_time
from equipoise.commands.printing import Columns
from equipoise.commands.round_lists import OWN_ROUNDS
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, stretch_of
from equipoise.console.jobs import Finding, Job
from equipoise.console.rendering import table_of
from equipoise.model.rounds import Round
from equipoise.model.times import from_microseconds
from equipoise.profile.accepted_losses import accepted_losses
from equipoise.profile.receipt_store import ReceiptStore, read_receipt, read_session_receipt
from equipoise.records.signed_notes import claimed
from equipoise.verification.checks import Check, CheckFailed, verify
from equipoise.verification.own_round import accept_admitted, admitted_to, download_own_round


def receipts(desk: Desk, asked: Asked) -> Response:
    """The receipts that the profile keeps, of the caller's rounds and sessions, newest first."""
    client, kept = desk.analyst, ReceiptStore(desk.profile)
    part, asking = stretch_of(client.rounds, asked), stretch_of(client.sessions, asked, "sessions")
    columns: Columns[Round] = {
        "round": lambda each: each.id,
        "dataset": lambda each: each.terms.dataset,
        "state": OWN_ROUNDS["state"],
        "opened (UTC)": OWN_ROUNDS["opened (UTC)"],
        "your receipt": lambda each: _in_words(kept, each),
    }
    checkpoint = kept.checkpoint()
    return desk.show(
        "analyst/receipts.html",
        section="Receipts",
        part=part,
        asking=asking,
        receipts=[
            table_of(columns, each.items, [f"{desk.base}/rounds/{one.id}" for one in each.items])
            for each in (part, asking)
        ],
        checkpoint=None if checkpoint is None else claimed(checkpoint),
        losses=accepted_losses(desk.profile),
    )


def verify_round(desk: Desk, asked: Asked) -> Response:
    """Downloads the evidence of the caller's part in a round, and makes all checks of it."""
    client, round_id = desk.analyst, asked.path["round_id"]
    client.round(round_id)

    def work(job: Job) -> None:
        job.tell("downloading the evidence")
        own = download_own_round(client, desk.profile, round_id)
        passed = 0

        def hold(check: Check, said: str) -> None:
            nonlocal passed
            passed += 1
            job.findings.append(Finding(str(check.value), check.title, "passed", said))
            job.tell("checking", passed, len(Check))

        try:
            verify(own.data, own.inputs, hold)
            job.verdict = f"All {len(Check)} checks hold."
            ReceiptStore(desk.profile).keep_checkpoint(own.checkpoint)
        except CheckFailed as failed:
            job.findings.append(Finding(str(failed.check.value), failed.check.title, "failed", failed.problem))
            job.well = False
            job.verdict = "A check failed. Keep the evidence: equipoise bundle writes it to a file."
            if failed.check is Check.HISTORY:
                job.then, job.then_title = f"/rounds/{round_id}/loss", "What the log admits to be lost"

    return desk.start(Job("Verify my part in this round", f"/rounds/{round_id}", "Back to the round"), work)


def loss(desk: Desk, asked: Asked) -> Response:
    """Shows how the log admits that it has lost the kept checkpoint. Nothing is accepted yet."""
    lost, said, _ = admitted_to(desk.analyst, desk.profile, asked.path["round_id"])
    return desk.show("analyst/loss.html", section="Receipts", round_id=asked.path["round_id"], lost=lost, said=said)


def accept(desk: Desk, asked: Asked) -> Response:
    """Accepts that the kept checkpoint is in the lost part of the log."""
    accept_admitted(desk.analyst, desk.profile, asked.path["round_id"], asked.needed("root"))
    return desk.go("/receipts")


def _in_words(kept: ReceiptStore, shown: Round) -> str:
    """What the kept receipt of a round says."""
    if shown.terms.session is None:
        envelope = kept.receipt(shown.id)
        if envelope is None:
            return "none"
        said = read_receipt(envelope)
        what = "withdrawn" if said.commitment is None else "accepted"
        return f"{what} at {shown_time(from_microseconds(said.accept_time))}"
    envelope = kept.session_receipt(shown.id)
    return "none" if envelope is None else f"answer {read_session_receipt(envelope).sequence:,}"
