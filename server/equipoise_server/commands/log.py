"""The keys of the log and of auditors, and the log as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.printing import print_line
from equipoise.errors import InvalidArgument
from equipoise_server.admin.log_keys import (
    KnownKey,
    add_auditor_key,
    add_log_key,
    export_log,
    list_keys,
    retire_key,
)
from equipoise_server.commands.printing import DEFAULT_STATE, AsJson, State, print_json
from equipoise_server.transparency.keys import Purpose

KeyPurpose = Annotated[
    Purpose,
    typer.Argument(help="log: a key that signs the log. auditor: a key to which the seeds of rounds are sealed."),
]


def show_keys(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Show every key that signs or signed the log, and the auditors' keys, to which seeds are sealed.

    A line that begins with equipoise/ verifies the log; it is a line of the file log.vkey in a profile. Publish it
    where your analysts trust what they read.
    """
    keys = list_keys(state)
    if as_json:
        print_json({"keys": [_facts(stored) for stored in keys]})
        return
    for stored in keys:
        ended = "" if stored.key.retired is None else f", retired {stored.key.retired:%Y-%m-%d}"
        print_line(f"{stored.key.purpose} {stored.key.id}, since {stored.key.added:%Y-%m-%d}{ended}")
        if stored.verifier is not None:
            print_line(f"  {stored.verifier.to_text()}")


def add_key(
    purpose: KeyPurpose,
    public: Annotated[
        Path | None, typer.Argument(help="The auditor's public key, X25519 in PEM.", show_default=False)
    ] = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Add a key of the log or of an auditor to those in force; servers may run meanwhile.

    A key of the log is made here; from now on it also signs every checkpoint and receipt. An auditor's
    key is made by the auditor (openssl genpkey -algorithm X25519), who sends the public part.
    """
    if (purpose is Purpose.AUDITOR) != (public is not None):
        raise InvalidArgument("public", "must be given for an auditor's key, and only for that")
    added = add_log_key(state) if public is None else add_auditor_key(state, public)
    if as_json:
        print_json(_facts(added))
        return
    print_line(f"Added the {purpose} key {added.key.id}.")
    if added.verifier is not None:
        print_line("Whoever verifies records needs this line in log.vkey before the older key is retired:")
        print_line(f"  {added.verifier.to_text()}")


def retire(
    purpose: KeyPurpose,
    key: Annotated[str, typer.Argument(help="The key's id, as printed by: keys show.")],
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Retire a key; servers may run meanwhile. The private part of a key of the log is deleted.

    Its signatures stay valid, and seeds that were sealed to it stay sealed to it.
    """
    retire_key(state, purpose, key)
    if as_json:
        print_json({"purpose": purpose.value, "id": key, "retired": True})
        return
    print_line(f"Retired the {purpose} key {key}.")


def export(
    directory: Annotated[Path, typer.Argument(help="A new directory.")],
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Write the log to files, as C2SP's specification tlog-tiles has them: checkpoint, tiles of hashes, entries.

    The files hold salted commitments only, which nobody can open, so they may be published.
    """
    size = export_log(state, directory)
    if as_json:
        print_json({"directory": str(directory), "size": size})
        return
    print_line(f"Wrote a log of {size:,} entries to {directory}.")


def _facts(known: KnownKey) -> dict[str, str | None]:
    key = known.key
    return {
        "purpose": key.purpose.value,
        "id": key.id,
        "public": key.public.hex(),
        "verifier_key": None if known.verifier is None else known.verifier.to_text(),
        "added": key.added.isoformat(),
        "retired": None if key.retired is None else key.retired.isoformat(),
    }
