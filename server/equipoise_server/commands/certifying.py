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

Name = Annotated[str, typer.Argument(help="The name, as in certificates and in the journal.")]
RequestFile = Annotated[
    Path, typer.Option("--request", help="The request that the person made with equipoise enroll and sent to you.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="The bundle to write, which you send back. [default: NAME.json]", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="The address by which its reader reaches the server, HOST:PORT. [default: as configured]",
        show_default=False,
    ),
]


def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="The role.")],
    request: RequestFile,
    to: Out = None,
    target: Target = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Admit an operator or auditor who has made a request with: equipoise enroll.

    Compare the fingerprint with the person over a channel you trust. A name is never given twice.
    """
    asked = read_file(request)
    hand_over(add_identity(state, name, role, asked, target), asked, to, as_json)


def renew(
    name: Name,
    request: RequestFile,
    to: Out = None,
    target: Target = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Issue another certificate to an operator or auditor, after: equipoise enroll --renew.

    Earlier certificates stay valid until they expire. This also readmits somebody who was revoked, but not
    with a key whose certificate was revoked.
    """
    asked = read_file(request)
    hand_over(renew_identity(state, name, asked, target), asked, to, as_json)


def revoke(name: Name, state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Revoke an identity: new calls are refused at once, open calls end within a minute.

    Servers may run meanwhile. Even the last operator can be revoked; admit another one with: identity add.
    """
    revoke_identity(state, name)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        print_line(f"Revoked every certificate of {name}.")


def list_all(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """List operators, auditors and analysts, and when their newest certificates expire."""
    identities = list_identities(state)
    if as_json:
        print_json({"identities": identities})
        return
    print_table(
        ("name", "role", "certificate"),
        ((identity.name, identity.role.value, standing(identity.certified_until)) for identity in identities),
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
    """Issue a new key and certificate to the server; servers may run meanwhile.

    Nobody else has to do anything: clients trust the authority. A server that runs shows the new certificate to
    whoever connects from now on.
    """
    certificate = renew_server_certificate(state, host or ())
    until, names = certificate.not_valid_after_utc, server_names(certificate)
    if as_json:
        print_json({"certified_until": until, "hosts": names})
    else:
        print_line(f"Certified {', '.join(names)} until {until:%Y-%m-%d}.")
