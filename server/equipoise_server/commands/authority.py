"""The exchange of the deployment's authority."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from equipoise.commands.options import TIME_FORMATS
from equipoise.commands.printing import counted, print_json, print_line
from equipoise.profile.enrolment import authority_fingerprint
from equipoise_server.admin.authority_exchange import Exchanged, retire_authority, rotate_authority
from equipoise_server.commands.printing import DEFAULT_STATE, AsJson, State


def rotate(
    until: Annotated[
        datetime | None,
        typer.Option(
            formats=TIME_FORMATS,
            help="When servers end the old authority by themselves, such as 2030-01-31T18:00Z. Whoever has not "
            "fetched a new certificate by then is locked out. [default: when ca retire is called]",
            show_default=False,
        ),
    ] = None,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Exchange the authority's key in place; servers may run meanwhile, and certificates keep working.

    The old key signs the new one, and is removed. Everybody who is certified gets a certificate of the new
    authority for the same key, and fetches it with: equipoise authority. When all have, run: equipoise-server ca
    retire, or let servers do it by themselves --until a time. Interrupted, it is simply done again.
    """
    done = rotate_authority(state, until=until)
    _report(done, f"Signed {counted(done.certificates, 'certificate')} anew. The new authority is:", as_json)


def retire(
    lock_out: Annotated[
        bool,
        typer.Option(
            "--lock-out",
            help="Go on where people have not used their new certificates: they are locked out, and need to be "
            "renewed with a new profile.",
        ),
    ] = False,
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Retire the previous authority: what it signed is refused from now on; servers may run meanwhile.

    Refused, naming them, as long as somebody would be locked out. Calls with its certificates end within a minute.
    """
    done = retire_authority(state, lock_out=lock_out)
    _report(done, f"Revoked {counted(done.certificates, 'certificate')} of the old authority. Left is:", as_json)


def _report(done: Exchanged, text: str, as_json: bool) -> None:
    fingerprint = authority_fingerprint(done.authority.pem)
    if as_json:
        print_json({"authority": fingerprint, "certificates": done.certificates})
        return
    print_line(text)
    print_line(f"  {fingerprint}")
