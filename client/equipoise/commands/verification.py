"""What analysts type to verify a round, and their lawyers ten years later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.files import read_statements
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RoundId
from equipoise.commands.printing import err, print_json, print_line
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.profile.accepted_losses import accepted_losses
from equipoise.profile.kept_sql import kept_session_sql, kept_sql
from equipoise.profile.profile import LOG_KEYS, parse_log_keys, read_file, read_log_keys, read_settings
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.queries.text_file import read_text
from equipoise.questions.questions import Questions, comments_before
from equipoise.questions.sql_extra import PARSER, questions_of
from equipoise.records.bundle import Bundle
from equipoise.records.proven_round import proven_round
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs, verify
from equipoise.verification.log_history import EarlierCheckpoint
from equipoise.verification.own_round import download_own_round
from equipoise.verification.question_checks import OwnQuestions

BundleFile = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The file that `equipoise bundle` wrote.")]


def bundle(
    round_id: RoundId,
    to: Annotated[Path, typer.Option("--out", help="The file to write.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Write all evidence of your part in an ended round to one file, and verify it with what your profile keeps.

    The file holds everything that `equipoise verify` needs, now and in ten years, without any server: what you
    asked, what you got, and the custodian's signed records of both. Exits with 1 where a check fails; the file is
    written all the same, as evidence.
    """
    with Client.from_profile(profile) as client, err.status("downloading"):
        own = download_own_round(client, profile, round_id)
    _write(to, own.data)
    facts: dict[str, object] = {"file": str(to), "bytes": len(own.data)}
    _report(facts, [f"{len(own.data):,} bytes written to {to}."], own.data, own.inputs, as_json)
    ReceiptStore(profile).keep_checkpoint(own.checkpoint)


def verify_bundle(
    file: BundleFile,
    key: Annotated[
        str | None,
        typer.Option(
            help="The custodian's public keys: a file with a line each, or one such line. "
            "[default: log.vkey in the profile, and then the receipt that the profile has kept counts, too]",
            show_default=False,
        ),
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option(help="Your receipt: its workload must be the one that was used.")
    ] = None,
    statements: Annotated[
        Path | None,
        typer.Option(
            help="The statements file that you submitted, or your SQL: it must be what was used. Of a session also "
            "a file of SQL that a profile has kept. [default: the SQL that the profile has kept with the receipt]",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A checkpoint of the log, or another bundle, earlier or later: both must be of one log."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Verify a bundle offline by thirteen numbered checks, one a line, up to the first that fails.

    docs/verification.md says what each of them means and what none of them proves. Exits with 0 where all hold,
    else with 1.
    """
    data = read_file(file)
    kept = None
    accepted: dict[str, int] = {}
    sources: tuple[Path, ...] = ()
    if key is None:
        source = str(profile / LOG_KEYS)
        keys = read_log_keys(profile / LOG_KEYS)
        kept = _stored_receipt(data, profile)
        accepted = accepted_losses(profile)
        if kept is not None and receipt is None and statements is None:
            sources = _kept_sql(profile, Bundle.from_bytes(data).evidence.round_id)
    else:
        source = key
        is_line = "+" in key and not Path(key).exists()
        keys = parse_log_keys(key.encode(), "--key") if is_line else read_log_keys(Path(key))
    if statements is not None and statements.suffix == ".sql":
        sources = (statements,)
    own = None if statements is None or sources else read_statements(statements)
    remembered, questions = (own, ()) if not sources else _read_sql(sources, data)
    papers = VerifierInputs(
        keys,
        kept if receipt is None else read_file(receipt),
        remembered,
        None if checkpoint is None else read_checkpoint(checkpoint),
        questions,
        accepted=accepted,
    )
    intro = [f"The custodian's keys are those of {source}."]
    if receipt is None and kept is not None:
        intro.append(f"Your own receipt is the one that {profile} has kept.")
    if sources and statements is None:
        intro.append(f"Your own SQL is what was kept with the receipt, {', '.join(map(str, sources))}.")
    _report({"file": str(file), "keys": source}, intro, data, papers, as_json)


def read_checkpoint(file: Path) -> EarlierCheckpoint:
    """Read the checkpoint in a file, a signed note or a bundle. Raises `InvalidArgument` naming the file."""
    try:
        return EarlierCheckpoint.from_file(read_file(file))
    except VerificationFailed as error:
        raise InvalidArgument(str(file), error.message) from None


def _report(facts: dict[str, object], intro: list[str], data: bytes, papers: VerifierInputs, as_json: bool) -> None:
    """Verifies, tells each check, and ends the program with 1 where one fails."""
    checks: list[dict[str, object]] = []

    def passed(check: Check, said: str) -> None:
        checks.append({"number": check.value, "title": check.title, "holds": True, "found": said})
        if not as_json:
            print_line(f"{check.value:>2} ok      {check.title}: {said}")

    if not as_json:
        for line in intro:
            print_line(line)
    failure = None
    try:
        verify(data, papers, passed)
    except CheckFailed as failed:
        failure = failed
        outcome = {"title": failed.check.title, "holds": False, "found": failed.problem}
        checks.append({"number": failed.check.value, **outcome})
    if as_json:
        print_json(facts | {"verified": failure is None, "checks": checks})
    elif failure is not None:
        print_line(f"{failure.check.value:>2} FAILED  {failure.check.title}: {failure.problem}")
    else:
        print_line(f"All {len(Check)} checks hold.")
    if failure is not None:
        raise typer.Exit(1)


def _stored_receipt(data: bytes, profile: Path) -> bytes | None:
    """The receipt that the profile's holder has kept of the bundle's round, where the bundle is its own."""
    try:
        evidence = Bundle.from_bytes(data).evidence
    except VerificationFailed:
        return None  # the first check will say so
    _, name = read_settings(profile)
    return ReceiptStore(profile).newest(evidence.round_id) if name == evidence.analyst else None


def _kept_sql(profile: Path, round_id: str) -> tuple[Path, ...]:
    """The files with the SQL that the profile has kept of a round or session."""
    path = kept_sql(profile, round_id)
    return kept_session_sql(profile, round_id) if path is None else (path,)


def _read_sql(
    sources: Sequence[Path], data: bytes
) -> tuple[tuple[Statement, ...] | None, tuple[OwnQuestions, ...]]:
    """Translates files of SQL by the bundle's schema, which the checks compare with the log's.

    Returns the statements that the analyst asked in all, None where that is not known, and the questions of each
    file. A file that the profile kept of a session says what was understood at the time; it has the questions of
    one call of `ask` only. A bundle without a schema has neither: the first checks will say so.

    Raises `InvalidArgument` for what that schema does not allow to ask.
    """
    try:
        proven = proven_round(Bundle.from_bytes(data).evidence)
    except VerificationFailed:
        return None, ()
    statements: list[Statement] = []
    own = []
    for source in sources:
        text = read_text(source)
        understood = comments_before(text)
        questions = _translated(text, proven.schema, needed=not understood)
        if questions is None:
            own.append(OwnQuestions(understood.encode(), None, str(source)))
            continue
        if proven.round.session is None or understood:
            said = (understood or questions.as_comments).encode()
            own.append(OwnQuestions(said, questions.statements, str(source)))
        if proven.round.session is None or not understood:
            statements += questions.statements
    return tuple(statements) or None, tuple(own)


def _translated(text: str, schema: Schema, *, needed: bool) -> Questions | None:
    """What SQL asks; None where its parser is not installed, and what was understood at the time has to do."""
    try:
        return questions_of(text, schema)
    except InvalidArgument as error:
        if needed or error.field != PARSER:
            raise
        return None


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.part")
    try:
        try:
            unfinished.write_bytes(data)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidArgument("--out", f"{path} cannot be written: {error.strerror}") from None
