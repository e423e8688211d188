"""What operators type about analysts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import print_json, print_line, print_table
from equipoise.errors import InvalidArgument
from equipoise.profile.enrolment import Bundle, authority_fingerprint, key_fingerprint
from equipoise.profile.profile import read_file

analyst_app = typer.Typer(help="Analysts: admit, renew, revoke, delete, list.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The analyst's name: letters, digits, '.', '-' and '_'.")]
Target = Annotated[
    str | None,
    typer.Option(
        help="Where the analyst reaches the server, HOST:PORT. [default: as in your profile]", show_default=False
    ),
]


@analyst_app.command("add")
def add(
    name: Name,
    request: Annotated[
        Path | None,
        typer.Option(help="The signing request that the analyst made with equipoise enroll and sent to you."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The bundle to write, which you send back. [default: NAME.json] "
            "Without a request, the profile directory to make. [default: profiles/NAME]",
            show_default=False,
        ),
    ] = None,
    target: Target = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Admit an analyst: issue a certificate for its signing request. A name is used once, for ever.

    Compare the fingerprint with the analyst over a channel you trust. Without --request, the key is made on this
    machine, and a whole profile is written: for trials, and where you are the analyst yourself.
    """
    with Operator.from_profile(profile) as operator:
        if request is not None:
            asked = read_file(request)
            hand_over(operator.admit_analyst(name, asked, target, request_id), asked, to, as_json)
            return
        if target is not None:
            raise InvalidArgument("--target", "goes with --request")
        made = operator.add_analyst(name, to if to is not None else Path("profiles") / name, request_id)
    if as_json:
        print_json({"name": name, "profile": made})
    else:
        print_line(f"Admitted {name}; its profile is {made}.")


@analyst_app.command("renew")
def renew(
    name: Name,
    request: Annotated[
        Path, typer.Option(help="The signing request that the analyst made with equipoise enroll --renew.")
    ],
    to: Annotated[
        Path | None,
        typer.Option("--out", help="The bundle to write. [default: NAME.json]", show_default=False),
    ] = None,
    target: Target = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Issue another certificate to an analyst, for a new key. Earlier ones stay valid until they expire.

    Also lets in again who was revoked, but not with a key whose certificate was revoked.
    """
    asked = read_file(request)
    with Operator.from_profile(profile) as operator:
        hand_over(operator.renew_analyst(name, asked, target, request_id), asked, to, as_json)


@analyst_app.command("login")
def allow_login(
    name: Name,
    subject: Annotated[
        str, typer.Option(help="The analyst's account at the identity provider: its subject identifier (sub).")
    ],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Let an analyst log in with its account at the company's identity provider; admits it if it is new.

    The account takes the place of an earlier one. To end it: equipoise operator analyst revoke.
    """
    with Operator.from_profile(profile) as operator:
        operator.allow_login(name, subject, request_id)
    if as_json:
        print_json({"name": name, "subject": subject})
    else:
        print_line(f"{name} may log in with the account {subject}: equipoise login")


@analyst_app.command("revoke")
def revoke(
    name: Name, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Revoke all certificates of an analyst: new calls are refused, and open ones end within a minute.

    What it submitted stays, and is answered and charged: abort the round if it must not be. To let it in again,
    with a new key: equipoise operator analyst renew.
    """
    with Operator.from_profile(profile) as operator:
        operator.revoke_analyst(name, request_id)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        print_line(f"Revoked every certificate of {name}.")


@analyst_app.command("delete")
def delete(
    name: Name, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Delete an analyst with its workloads and results. Refused while it has a share in an unfinished round.

    What was charged stays charged, and nobody is ever admitted under the name again. The rounds in which it asked
    can no longer be computed again for an audit. To keep somebody out, revoking is enough.
    """
    with Operator.from_profile(profile) as operator:
        operator.delete_analyst(name, request_id)
    if as_json:
        print_json({"name": name, "deleted": True})
    else:
        print_line(f"Deleted {name}.")


@analyst_app.command("list")
def list_analysts(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List the analysts, and when their certificates expire."""
    with Operator.from_profile(profile) as operator:
        analysts = list(operator.analysts())
    if as_json:
        print_json({"analysts": analysts})
    else:
        rows = ((each.name, f"{each.create_time:%Y-%m-%d}", standing(each.certified_until)) for each in analysts)
        print_table(("analyst", "admitted", "certificate"), rows)


def standing(certified_until: datetime | None) -> str:
    """How somebody's certificates are."""
    if certified_until is None:
        return "revoked"
    return f"{'until' if certified_until > datetime.now(UTC) else 'expired'} {certified_until:%Y-%m-%d}"


def hand_over(bundle: Bundle, asked: bytes, to: Path | None, as_json: bool) -> None:
    """Write the answer to a request to a file, and say what its reader and the writer can compare.

    Args:
        bundle: the answer to the request.
        asked: the public key that was certified.
        to: the file that is written; None: the analyst's name with `.json`, here.
        as_json: whether one JSON object is printed instead of sentences.

    Raises:
        InvalidArgument: the file cannot be written.
    """
    path = to or Path(f"{bundle.name}.json")
    try:
        path.write_text(bundle.to_json(), encoding="ascii")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
    compared, authority = key_fingerprint(asked), authority_fingerprint(bundle.authority)
    if as_json:
        print_json({"name": bundle.name, "bundle": path, "fingerprint": compared, "authority": authority})
        return
    print_line(f"Certified the key {compared} as {bundle.name}.")
    print_line(f"Send {path} to {bundle.name}, who will see this authority: {authority}")
