"""The log's checkpoint, and whether it continues what was seen before."""

from __future__ import annotations

from starlette.responses import Response

from equipoise.auditing.download import read_log
from equipoise.auditing.log_checks import check_continuation, check_root, check_signatures
from equipoise.auditing.steps import open_steps
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.jobs import Finding, Job
from equipoise.errors import VerificationFailed
from equipoise.profile.profile import LOG_KEYS, read_log_keys
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.signed_notes import claimed


def show(desk: Desk, _: Asked) -> Response:
    """The newest checkpoint, and the one that the profile keeps."""
    note, kept = desk.auditor.checkpoint(), ReceiptStore(desk.profile).checkpoint()
    return desk.show(
        "auditor/log.html",
        section="Log",
        note=note.decode("utf-8", "replace"),
        newest=claimed(note),
        kept=None if kept is None else claimed(kept),
    )


def compare(desk: Desk, _: Asked) -> Response:
    """Reads the whole log: its signatures, its root, and whether it continues the checkpoint that is kept."""

    def work(job: Job) -> None:
        keys, store = read_log_keys(desk.profile / LOG_KEYS), ReceiptStore(desk.profile)
        job.tell("reading the log")
        note, leaves, records = read_log(desk.auditor)
        kept = store.checkpoint()
        try:
            steps = open_steps(records, leaves)
            checkpoint, known = check_signatures(note, keys, steps)
            job.findings.append(Finding("A1", "The custodian's keys in force have signed it", "passed"))
            check_root(checkpoint, leaves)
            job.findings.append(Finding("A2", f"Its {checkpoint.size:,} records hash to its root", "passed"))
            if kept is None:
                why = "none is kept; the next comparison can use this one"
                job.findings.append(Finding("A3", "It continues what was seen before", "not checked", why))
            else:
                check_continuation(checkpoint, leaves, [kept], keys, known, steps)
                size = f"of {claimed(kept).size:,} records"
                job.findings.append(
                    Finding("A3", "It continues the checkpoint that the profile keeps", "passed", size)
                )
        except VerificationFailed as error:
            job.findings.append(Finding("", "The log is not what it must be", "failed", error.message))
            job.well, job.verdict = False, "Not in order. Run a whole audit, and keep its report."
            return
        store.keep_checkpoint(note)
        job.verdict = "The log is whole, signed, and the continuation of what was seen."

    return desk.start(Job("Compare the log with what was seen", "/log", "Back to the log"), work)
