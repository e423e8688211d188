"""The clock of the machine, where a server does not trust it."""

from __future__ import annotations

from equipoise_server.admin.clock import confirm_clock
from equipoise_server.commands.printing import DEFAULT_STATE, OUT, AsJson, State, print_json


def confirm(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Say that this machine's clock is right, where a server does not trust it; servers may run meanwhile.

    Look at the printed time first-hand. What it makes due is done within a second: rounds whose closing time has
    come are closed, and results and seeds whose time is over are removed for good.
    """
    before, now = confirm_clock(state)
    if as_json:
        print_json({"recorded": None if before is None else before.isoformat(), "confirmed": now.isoformat()})
        return
    known = "" if before is None else f" The time recorded before was {before:%Y-%m-%d %H:%M} UTC."
    OUT.print(f"Confirmed {now:%Y-%m-%d %H:%M} UTC.{known}", highlight=False, soft_wrap=True)
