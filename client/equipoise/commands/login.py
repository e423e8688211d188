"""How somebody logs in with the company's identity provider."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.login import check_is_login, log_in
from equipoise.clients.provider import Description
from equipoise.clients.provider_login import DeviceCode, by_browser, by_device
from equipoise.commands.options import DEFAULT_PROFILE, AsJson
from equipoise.commands.options import Profile as ProfileOption
from equipoise.commands.printing import print_aside, print_json, print_line
from equipoise.profile.login_file import LoginFile, kept_login
from equipoise.profile.profile import Profile
from equipoise.queries.text_file import read_text


def login(
    file: Annotated[
        Path | None,
        typer.Option("--from", help="The login file that your custodian publishes; needed the first time."),
    ] = None,
    device: Annotated[
        bool, typer.Option(help="Type a code in a browser on another machine, for example where this one has none.")
    ] = False,
    profile: ProfileOption = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Get a short-lived certificate by your company's login; makes the profile, or renews its certificate.

    Your key is made here and never leaves this machine. When the certificate has ended, do the same again: your
    sessions, receipts and results are where they were.
    """
    check_is_login(profile)
    asked = LoginFile.from_json(read_text(file)) if file is not None else kept_login(profile)
    log_in(profile, asked, _device if device else _browser)
    had = Profile.load(profile)
    if as_json:
        print_json({"profile": profile, "name": had.name, "certified_until": had.expire_time})
        return
    print_line(f"{had.name}, certified until {had.expire_time:%Y-%m-%d %H:%M} UTC.")


def _browser(provider: Description, client: str, nonce: str) -> str:
    return by_browser(provider, client, nonce, _open)


def _open(page: str) -> None:
    # Said, too, as not every machine has a browser that can be started; on stderr, where it is no answer.
    print_aside(f"Log in with your browser: {page}")
    webbrowser.open(page)


def _device(provider: Description, client: str, _nonce: str) -> DeviceCode:
    def tell(page: str, code: str) -> None:
        print_aside(f"Open {page} in any browser, and see that it shows this code: {code}")

    return by_device(provider, client, tell)
