"""What a round would promise, from public numbers: without any server."""

from __future__ import annotations

import typer

from equipoise.commands.options import with_fields
from equipoise_lab.planning.acceptance import acceptance
from equipoise_lab.planning.report import as_json as comparison_as_json
from equipoise_lab.planning.report import print_comparison
from equipoise_lab.planning.request import PlanRequest, compared
from equipoise_server.commands.printing import ERR, OUT, AsJson, print_json


@with_fields
def plan(request: PlanRequest, as_json: AsJson = False) -> None:
    """Compare what every mechanism would promise, cost and take for a round, and show which one auto chooses.

    Needs no table and no server: a plan depends on public numbers only. Takes a few seconds, whatever the size.
    Exits with 1 where no mechanism can serve such a round, or no server would accept it: its table would have more
    attributes or categories than can be registered, its analysts are not protected though it is a round, or it does
    not fit on an empty account of --data-cap or --analyst-cap. No number of possible records is too large.
    """
    setting = request.setting()
    with ERR.status("planning") as status:
        comparison = compared(
            request, setting, lambda name, done, total: status.update(f"planning {name}, {done + 1} of {total}")
        )
    accepted = acceptance(request, setting, comparison)
    if as_json:
        print_json(comparison_as_json(setting, comparison, accepted))
    else:
        print_comparison(OUT, setting, comparison, accepted)
    if accepted.refusal:
        raise typer.Exit(1)
