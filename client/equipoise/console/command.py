"""What people type to open the console."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile
from equipoise.commands.printing import print_json, print_line
from equipoise.errors import InvalidArgument

if TYPE_CHECKING:
    from equipoise.console.desk import Desk

NEEDED = ("starlette", "jinja2", "uvicorn", "python_multipart")


def console(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of 127.0.0.1; 0: one that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser at once.")] = True,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Open the console: pages in your browser for all that your role may do. Interrupt it to end it.

    The pages are made on this machine, with your own profile: your key stays where it is, and the server gains no
    door. The address that is printed works once, in one browser. docs/console.md says what each page does.
    """
    for package in NEEDED:
        if find_spec(package) is None:
            raise InvalidArgument(package, "is not installed; run: pip install 'equipoise[console]'")
    from equipoise.console.serving import serve  # noqa: PLC0415 - optional

    def opened(address: str, desk: Desk) -> None:
        if as_json:
            caller = {"name": desk.caller.name, "role": desk.caller.role}
            print_json({**caller, "server": desk.connection.target, "address": address})
            return
        print_line(f"{desk.caller.name}, {desk.caller.role}, at {desk.connection.target}. Open, once:")
        print_line(f"  {address}")
        if browser:
            webbrowser.open(address)

    serve(profile, port, opened)
