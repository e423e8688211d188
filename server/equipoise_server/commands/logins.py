"""Who may log in with the company's identity provider, and the file that people need for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.printing import print_json, print_line
from equipoise.errors import InvalidArgument
from equipoise.model.identities import Role
from equipoise_server.admin.identities import allow_login, login_file
from equipoise_server.commands.printing import DEFAULT_STATE, AsJson, State


def allow(
    name: Annotated[str, typer.Argument(help="The name, as in certificates and in the journal.")],
    role: Annotated[Role, typer.Option(help="The role.")],
    subject: Annotated[
        str, typer.Option(help="The person's account at the identity provider: its subject identifier (sub).")
    ],
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Let an operator, auditor or analyst log in with an account of the identity provider.

    Admits somebody of a new name. The account takes the place of an earlier one; identity revoke ends it. Servers
    may run meanwhile.
    """
    allow_login(state, name, role, subject)
    if as_json:
        print_json({"name": name, "role": role, "subject": subject})
    else:
        print_line(f"{name}, {role}, may log in with the account {subject}: equipoise login")


def publish(
    to: Annotated[Path, typer.Option("--out", help="The file to write, for everybody who logs in.")] = Path(
        "login.json"
    ),
    door: Annotated[
        str | None,
        typer.Option(help="Where people reach the login, HOST:PORT. [default: as configured]", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Where people reach the server, HOST:PORT. [default: as configured]", show_default=False),
    ] = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Write the file that people log in with: addresses, authority, the log's keys, the provider.

    It holds nothing secret. Publish it where people believe what they read, such as your company's own pages.
    """
    made = login_file(state, door, target)
    try:
        to.write_text(made.to_json(), encoding="ascii")
    except OSError as error:
        raise InvalidArgument(str(to), f"cannot be written: {error.strerror}") from None
    if as_json:
        print_json({"file": to, "door": made.door, "target": made.target, "issuer": made.issuer})
    else:
        print_line(f"Publish {to}. People log in with: equipoise login --from {to.name}")
