"""What auditors type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from equipoise.auditing.archive import read_archive, write_archive
from equipoise.auditing.auditor_log import own_acts
from equipoise.auditing.download import download, read_log
from equipoise.auditing.identity_list import AuthorityChange, IdentityChange, NamedCertificate, registry_changes
from equipoise.auditing.ledger_export import exported
from equipoise.auditing.replay_checks import read_replay_report
from equipoise.auditing.report import as_json as audit_to_json
from equipoise.auditing.report import as_markdown
from equipoise.auditing.verify import Audit, Outcome, verify
from equipoise.clients.auditor import Auditor
from equipoise.commands.audit_acts import accept, nonce, seed
from equipoise.commands.audit_options import ArchiveDirectory, Checkpoints, KeyFile, Receipts, Replays, Report
from equipoise.commands.budgets import AccountName
from equipoise.commands.dataset_columns import JOURNAL
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile
from equipoise.commands.printing import Columns, counted, print_json, print_line, print_list
from equipoise.commands.round_lists import ROUNDS
from equipoise.commands.verification import read_checkpoint
from equipoise.errors import InvalidArgument
from equipoise.profile.profile import LOG_KEYS, read_file, read_log_keys
from equipoise.profile.receipt_store import ReceiptStore

audit_app = typer.Typer(
    help="For auditors: download every record, verify it offline, add randomness to rounds.",
    no_args_is_help=True,
)

REGISTRY_CHANGES: Columns[IdentityChange | AuthorityChange] = {
    "entry": lambda each: each.index,
    "time (UTC)": lambda each: f"{each.time:%Y-%m-%d %H:%M:%S}",
    "name": lambda each: each.name if isinstance(each, IdentityChange) else "(the authority)",
    "role": lambda each: each.role.value if isinstance(each, IdentityChange) else "",
    "event": lambda each: each.event.value,
    "by": lambda each: each.by if isinstance(each, IdentityChange) else "holder",
    "certificates": lambda each: " ".join(
        f"{known.name}:{known.digest.hex()[:16]}"
        if isinstance(known, NamedCertificate)
        else known.digest.hex()[:16]
        for known in each.certificates
    ),
}


@audit_app.command("rounds")
def rounds(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all rounds with their plans and shares, newest first."""
    with Auditor.from_profile(profile) as auditor:
        print_list("rounds", list(auditor.rounds()), ROUNDS, as_json)


@audit_app.command("journal")
def journal(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show the budget journal: every reservation and charge. Each line's digest covers all lines before it."""
    with Auditor.from_profile(profile) as auditor:
        print_list("entries", list(auditor.journal()), JOURNAL, as_json)


@audit_app.command("identities")
def identities(
    archive: ArchiveDirectory = None,
    key: KeyFile = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """List who was admitted, renewed, revoked and deleted, by whom, with the SHA-256 of each certificate.

    Exchanges of the authority are listed, too, with the certificates that were signed anew or have ended. The list
    is what the signed log says: its checkpoint and every record are verified first. Keep it from analysts.
    """
    trusted = read_log_keys(profile / LOG_KEYS if key is None else key)
    if archive is None:
        with Auditor.from_profile(profile) as auditor:
            changes = registry_changes(*read_log(auditor), trusted)
    else:
        kept = read_archive(archive)
        changes = registry_changes(kept.checkpoint, kept.leaves, kept.records, trusted)
    print_list("changes", changes, REGISTRY_CHANGES, as_json)


@audit_app.command("export")
def export(account: AccountName, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Write the privacy events of an account's charges as JSON, for an accountant such as dp_accounting.

    docs/mechanisms/equilibrium.md has ten lines that add them up again.
    """
    with Auditor.from_profile(profile) as auditor:
        document = exported(account, (each for each in auditor.journal() if each.account == account))
    if as_json:
        print_json(document)
    else:
        print(json.dumps(document, indent=1))


@audit_app.command("download")
def download_archive(
    out: Annotated[Path, typer.Option(help="A new directory for the archive.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Download every record into one directory, to be verified offline and kept."""
    with Auditor.from_profile(profile) as auditor:
        archive = download(auditor, ReceiptStore(profile).checkpoint(), own_acts(profile))
    write_archive(archive, out)
    if as_json:
        print_json({"archive": out, "entries": len(archive.leaves), "journal": len(archive.journal)})
        return
    parts = (len(archive.leaves), "record"), (len(archive.rounds), "round"), (len(archive.journal), "journal entry")
    print_line(f"{out}: {', '.join(counted(*part) for part in parts)}")
    print_line(f"verify them with: equipoise audit verify {out}")


@audit_app.command("verify")
def verify_archive(
    archive: ArchiveDirectory = None,
    key: KeyFile = None,
    checkpoint: Checkpoints = None,
    receipt: Receipts = None,
    replay: Replays = None,
    report: Report = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Check all records: the log, the budget journal, every round. Exits with 1 if a check fails.

    docs/auditing.md says what each check answers, and what none can. No private data are needed, and, with an
    archive, no server. What was found in order is remembered in the profile, and compared with the next time.
    """
    trusted = read_log_keys(profile / LOG_KEYS if key is None else key)
    if archive is None:
        with Auditor.from_profile(profile) as auditor:
            records = download(auditor, ReceiptStore(profile).checkpoint(), own_acts(profile))
    else:
        records = read_archive(archive)
    seen = [read_checkpoint(path).checkpoint for path in checkpoint or ()]
    if (remembered := ReceiptStore(profile).checkpoint()) is not None:
        seen.append(remembered)
    receipts = [read_file(path).rstrip(b"\n") for path in receipt or ()]
    audit = verify(records, trusted, seen, receipts, [read_replay_report(path) for path in replay or ()])
    # What was found is said before anything is written, which may fail.
    if as_json:
        print_json(audit_to_json(audit))
    else:
        _print_checks(audit)
    if report is not None:
        _write_report(report, as_markdown(audit))
    if audit.passed and profile.is_dir():
        ReceiptStore(profile).keep_checkpoint(records.checkpoint)
    if not audit.passed:
        raise typer.Exit(1)


audit_app.command("accept-loss")(accept)
audit_app.command("nonce")(nonce)
audit_app.command("seed")(seed)


def _print_checks(audit: Audit) -> None:
    for each in audit.checks:
        print_line(f"{each.number:<4} {each.outcome:<12} {each.question}")
        if each.detail:
            print_line(f"{'':<17} {each.detail}")
    for remark in audit.remarks:
        print_line(f"remark: {remark}")
    unmade = sum(each.outcome is Outcome.NOT_CHECKED for each in audit.checks)
    also = f"; {counted(unmade, 'check')} could not be made" if unmade else ""
    print_line(f"all that was checked is in order{also}" if audit.passed else "NOT in order: see above")


def _write_report(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
