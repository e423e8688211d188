"""Who gets in besides analysts, and the server's own certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.admission import hand_over, standing
from equipoise.commands.printing import print_json, print_line, print_table
from equipoise.model.identities import Role
from equipoise.profile.profile import read_file
from equipoise_server.admin.identities import (
    add_identity,
    list_identities,
    renew_identity,
    renew_server_certificate,
    revoke_identity,
)
from equipoise_server.commands.printing import DEFAULT_STATE, AsJson, State
from equipoise_server.identity.authority import server_names

Name = Annotated[str, typer.Argument(help="The name, as certificates and the journal have it.")]
SessionWorkload = Annotated[
    Path, typer.Option("--request", help="The request that was made with equipoise enroll, and sent to you.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="The bundle to write, to be sent back. [default: NAME.json]", show_default=False),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="Where its reader reaches the server, HOST:PORT. [default: as configured]", show_default=False
    ),
]


def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="What it may do.")],
    request: SessionWorkload,
    to: Out = None,
    target: Target = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Admit another operator or auditor, who made a request with: equipoise enroll.

    Compare the fingerprint with the person over a channel you trust. A name is given once, for ever.
    """
    asked = read_file(request)
    hand_over(add_identity(state, name, role, asked, target), asked, to, as_json)


def renew(
    name: Name,
    request: SessionWorkload,
    to: Out = None,
    target: Target = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Give an operator or auditor another certificate, for a request of: equipoise enroll --renew.

    Those it has stay good until they expire. Also lets in again who was revoked, but not
    with a key whose certificate was.
    """
    asked = read_file(request)
    hand_over(renew_identity(state, name, asked, target), asked, to, as_json)


def revoke(name: Name, state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Keep anybody out: its certificates are refused at once, and what it has open ends within a minute.

    Servers may run meanwhile. The last operator can be revoked, too; another one is admitted with: identity add.
    """
    revoke_identity(state, name)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        print_line(f"Revoked every certificate of {name}.")


def list_all(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """List operators, auditors and analysts, and until when their newest certificates are good."""
    identities = list_identities(state)
    if as_json:
        print_json({"identities": identities})
        return
    print_table(
        ("name", "role", "certificate"),
        ((each.name, each.role.value, standing(each.certified_until)) for each in identities),
    )


def renew_server(
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="A host name or address by which clients reach this server; repeat for several. [default: those "
            "of the present certificate]"
        ),
    ] = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Give the server a new key and certificate, before the present one expires; then start it again.

    Nobody else has to do anything: clients trust the authority, and resume what the restart cut off.
    """
    certificate = renew_server_certificate(state, host or ())
    until, names = certificate.not_valid_after_utc, server_names(certificate)
    if as_json:
        print_json({"certified_until": until, "hosts": names})
    else:
        print_line(f"Certified {', '.join(names)} until {until:%Y-%m-%d}. Start the server again.")
