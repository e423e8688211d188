"""Commands of auditors that leave a trace in the log or the profile: add a nonce, read a seed, accept a loss."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from equipoise.auditing.accepted_losses import accept_loss
from equipoise.auditing.auditor_log import note_read, offered_nonce
from equipoise.auditing.download import read_log
from equipoise.auditing.opened_seeds import open_recorded, recorded_seed
from equipoise.clients.auditor import Auditor
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, RoundId
from equipoise.commands.printing import print_json, print_line
from equipoise.errors import InvalidArgument, NotFound
from equipoise.profile.profile import LOG_KEYS, SEED_KEY, read_log_keys, read_seed_key
from equipoise.records.record import key_id


def accept(
    root: Annotated[str, typer.Argument(help="The root of the checkpoint that the profile keeps, as A3 names it.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Accept that a part of the log is lost which the custodian says it has lost, so that audits can pass again.

    Find out first what was lost, and why. The log as it is now is compared with from then on. The checkpoint of the
    lost part stays in the profile (accepted-losses), as evidence, and audits name it.
    """
    with Auditor.from_profile(profile) as auditor:
        log = read_log(auditor)
    lost, now = accept_loss(profile, root, log, read_log_keys(profile / LOG_KEYS))
    if as_json:
        print_json({"lost": {"size": lost.size, "root": lost.root}, "now": {"size": now.size, "root": now.root}})
        return
    print_line(f"accepted: the log of size {lost.size} with the root {lost.root.hex()} is lost")
    print_line(f"kept instead: the checkpoint of size {now.size} with the root {now.root.hex()}")


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


def _write_secret(path: Path, text: str) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
