"""How somebody gets a profile, renews it, and sees whether it works."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.options import DEFAULT_PROFILE, AsJson
from equipoise.commands.options import Profile as ProfileOption
from equipoise.commands.printing import print_json, print_line
from equipoise.errors import InvalidArgument
from equipoise.profile.enrolment import (
    REQUEST,
    Bundle,
    authority_fingerprint,
    begin,
    install,
    is_profile,
    key_fingerprint,
)
from equipoise.profile.profile import LOGIN, Profile
from equipoise.profile.succession import follow_authority
from equipoise.queries.text_file import read_text

SOON = timedelta(days=30)


def enroll(
    bundle: Annotated[
        Path | None, typer.Option(help="The bundle that your operator sent back; it completes the profile.")
    ] = None,
    renew: Annotated[
        bool, typer.Option(help="Make a new key and a request for its certificate, for a profile that exists.")
    ] = False,
    profile: ProfileOption = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Make a profile: a key and a signing request for your operator, then the bundle that comes back.

    The key never leaves this machine. The request holds nothing secret, but must reach your operator as it is:
    compare the fingerprint by telephone, for one. The same again with --renew before the certificate expires; the
    old one works until the new one is installed.
    """
    if bundle is not None:
        _install(profile, bundle, as_json)
        return
    if is_profile(profile) and not renew:
        raise InvalidArgument(str(profile), "is complete; to ask for a new certificate, say --renew")
    if renew and not is_profile(profile):
        raise InvalidArgument(str(profile), "holds no profile to renew")
    request = begin(profile)
    compared = key_fingerprint(request)
    if as_json:
        print_json({"request": profile / REQUEST, "fingerprint": compared})
        return
    print_line(f"Send {profile / REQUEST} to your operator, who can compare its fingerprint with you:")
    print_line(f"  {compared}")
    print_line(f"When the bundle comes: equipoise enroll --bundle FILE --profile {profile}")


def whoami(profile: ProfileOption = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show your name and role on the server, and when your certificate expires. Use it to try a new profile."""
    until = Profile.load(profile).expire_time
    with Client.from_profile(profile) as client:
        identity = client.identity()
    if as_json:
        print_json({"name": identity.name, "role": identity.role, "certified_until": until})
        return
    logs_in = (profile / LOGIN).exists()
    end = f"{until:%Y-%m-%d %H:%M} UTC" if logs_in else f"{until:%Y-%m-%d}"
    print_line(f"{identity.name}, {identity.role}, certified until {end}")
    if logs_in:
        print_line("When that is over: equipoise login")
    elif until - datetime.now(UTC) < SOON:
        print_line("That is soon; ask for another certificate with: equipoise enroll --renew")


def authority(profile: ProfileOption = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Follow your deployment's authority to its new key, if the one that your profile trusts has signed it.

    Your own key, and the time until which you are certified, stay the same. Do this when your custodian has
    exchanged the authority, before the old one is retired; at other times it changes nothing.
    """
    with Client.from_profile(profile) as client:
        changed = follow_authority(profile, *client.authority())
    with Client.from_profile(profile) as client:
        # The first call with the new certificate tells the server that the old one is not needed any more.
        client.identity()
    trusted = authority_fingerprint(Profile.load(profile).authority)
    if as_json:
        print_json({"profile": profile, "changed": changed, "authority": trusted})
        return
    print_line("Your profile now trusts the new authority:" if changed else "The authority is the one you trust:")
    print_line(f"  {trusted}")


def _install(profile: Path, file: Path, as_json: bool) -> None:
    received = Bundle.from_json(read_text(file))
    install(profile, received)
    installed = Profile.load(profile)
    facts = {"profile": profile, "name": installed.name, "target": installed.target}
    facts |= {"certified_until": installed.expire_time, "authority": authority_fingerprint(installed.authority)}
    if as_json:
        print_json(facts)
        return
    print_line(f"{profile} is the profile of {installed.name}, certified until {installed.expire_time:%Y-%m-%d}.")
    print_line(f"It trusts servers that this authority certified: {facts['authority']}")
    print_line(f"Try it: equipoise whoami --profile {profile}")
