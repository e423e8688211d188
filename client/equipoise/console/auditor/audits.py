"""A whole audit: every record is downloaded and checked, and the report is kept to be read and saved."""

from __future__ import annotations

import json

from starlette.responses import Response

from equipoise.auditing.auditor_log import own_acts
from equipoise.auditing.download import download as download_records
from equipoise.auditing.report import as_json, as_markdown
from equipoise.auditing.verify import Audit, verify
from equipoise.commands.printing import plain
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, download
from equipoise.console.jobs import Finding, Job
from equipoise.console.rendering import plain_table
from equipoise.errors import NotFound
from equipoise.profile.profile import LOG_KEYS, read_log_keys
from equipoise.profile.receipt_store import ReceiptStore

NEWEST = ("audit", "newest")


def home(desk: Desk, _: Asked) -> Response:
    """What an audit does, and the report of the newest one of this run of the console."""
    audit: Audit | None = desk.kept.get(NEWEST)
    accounts = [] if audit is None else audit.standing
    rows = [
        [
            each.name,
            f"{each.committed_epsilon:.6g}",
            f"{each.cap.epsilon:g}",
            f"{each.cap.delta:g}",
            each.counted.in_words,
        ]
        for each in accounts
    ]
    return desk.show(
        "auditor/audit.html",
        section="Audit",
        audit=audit,
        accounts=plain_table(("account", "spent epsilon", "of a cap of", "delta", "counted"), rows),
    )


def run(desk: Desk, _: Asked) -> Response:
    """Downloads every record and makes all checks."""

    def work(job: Job) -> None:
        keys, store = read_log_keys(desk.profile / LOG_KEYS), ReceiptStore(desk.profile)
        job.tell("downloading every record")
        remembered = store.checkpoint()
        records = download_records(desk.auditor, remembered, own_acts(desk.profile))
        job.tell("checking")
        audit = verify(records, keys, [] if remembered is None else [remembered])
        desk.kept[NEWEST] = audit
        job.findings += [
            Finding(each.number, each.question, each.outcome.value, each.detail) for each in audit.checks
        ]
        job.well = audit.passed
        job.verdict = "All that was checked is in order." if audit.passed else "Not in order: see below."
        if audit.passed:
            store.keep_checkpoint(records.checkpoint)

    return desk.start(Job("Audit all records", "/audit", "Read the report"), work)


def report(desk: Desk, asked: Asked) -> Response:
    """The report as a file: what `equipoise audit verify` writes with --report, or prints with --json."""
    audit: Audit | None = desk.kept.get(NEWEST)
    if audit is None:
        raise NotFound("no audit was made since the console was started")
    match asked.path["kind"]:
        case "md":
            return download(as_markdown(audit).encode(), "audit-report.md")
        case "json":
            text = json.dumps(plain(as_json(audit)), ensure_ascii=False)
            return download(text.encode(), "audit-report.json")
        case _:
            raise NotFound("there is no such file")
