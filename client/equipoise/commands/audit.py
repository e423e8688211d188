"""What auditors type."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from equipoise.auditing.archive import read_archive, write_archive
from equipoise.auditing.auditor_log import note_read, offered_nonce, own_acts
from equipoise.auditing.download import download, read_log
from equipoise.auditing.identity_list import AuthorityChange, IdentityChange, NamedCertificate, registry_changes
from equipoise.auditing.ledger_export import exported
from equipoise.auditing.opened_seeds import open_recorded, recorded_seed
from equipoise.auditing.replay_checks import read_replay_report
from equipoise.auditing.report import as_json as audit_to_json
from equipoise.auditing.report import as_markdown
from equipoise.auditing.verify import Audit, Outcome, verify
from equipoise.clients.auditor import Auditor
from equipoise.commands.audit_options import ArchiveDirectory, Checkpoints, KeyFile, Receipts, Replays, Report
from equipoise.commands.budgets import AccountName
from equipoise.commands.columns import ROUNDS
from equipoise.commands.dataset_columns import JOURNAL
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, RoundId
from equipoise.commands.printing import Columns, counted, print_json, print_line, print_list
from equipoise.commands.verification import read_checkpoint
from equipoise.errors import InvalidArgument, NotFound
from equipoise.profile.profile import LOG_KEYS, SEED_KEY, read_file, read_log_keys, read_seed_key
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.record import key_id

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


@audit_app.command("nonce")
def nonce(
    round_id: RoundId, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Add randomness to an open round, so that the custodian cannot have chosen all of it.

    It is drawn once, kept in the profile, and looked for on record by the next audit. A session takes it until its
    first answer.
    """
    with Auditor.from_profile(profile) as auditor, offered_nonce(profile, round_id) as drawn:
        auditor.set_nonce(round_id, drawn, request_id)
    if as_json:
        print_json({"round": round_id, "nonce": drawn})
    else:
        print_line(f"round {round_id} has the nonce {drawn.hex()}")


@audit_app.command("seed")
def seed(
    round_id: RoundId,
    out: Annotated[
        Path, typer.Option(help="A new file, mode 0600: the commitment's salt and the seed, in hexadecimal.")
    ],
    seed_key: Annotated[
        Path | None,
        typer.Option("--seed-key", help="The private key. [default: the profile's]", show_default=False),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Decrypt a round's seed, with which and the data a round can be replayed. Your access is recorded in the log.

    A seed that is not the one on record is refused, and kept as evidence (refused-seeds in the profile). Whoever
    holds a seed can remove the noise from the round's answers: destroy it after the replay.
    """
    private = read_seed_key(profile / SEED_KEY if seed_key is None else seed_key)
    if out.exists():
        # Before anything is asked: each reading is on record for good.
        raise InvalidArgument(str(out), "cannot be written: it exists already; the seed was not asked for")
    public, trusted = private.public_key().public_bytes_raw(), read_log_keys(profile / LOG_KEYS)
    with Auditor.from_profile(profile) as auditor:
        recorded = recorded_seed(auditor, trusted, round_id)
        sealed = auditor.sealed_seeds(round_id)
    note_read(profile, round_id, datetime.now(UTC).isoformat())
    for each in sealed:
        if each.key_id == key_id(public):
            _write_secret(out, open_recorded(private, each.sealed, recorded, profile).hex() + "\n")
            break
    else:
        raise NotFound(f"the seed is not sealed to this key, {key_id(public)}")
    if as_json:
        print_json({"round": round_id, "seed": out})
    else:
        print_line(f"replay it with: equipoise-server audit replay {round_id} --seed-file {out}")


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


def _write_secret(path: Path, text: str) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
