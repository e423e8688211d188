"""Health, as far as an operator's own calls show it: the server answers, nothing is stuck, nothing runs out."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import islice

from starlette.responses import Response

from equipoise.commands.columns import shown_time
from equipoise.console.asked import Asked
from equipoise.console.charts import budget_bar
from equipoise.console.desk import Desk
from equipoise.console.jobs import Finding
from equipoise.console.operator.rounds import next_step

SOON = timedelta(days=30)
NEARLY_USED = 90.0  # percent of a budget
LOOKED_AT = 100  # of the newest rounds, and of the analysts


def show(desk: Desk, _: Asked) -> Response:
    """One line for each thing that was looked at."""
    operator = desk.operator
    began = time.monotonic()
    details = list(islice(operator.rounds(page=LOOKED_AT), LOOKED_AT))
    seconds = time.monotonic() - began
    now = datetime.now(UTC)
    found = [Finding("", "The server answers", "passed", f"{desk.connection.target}, within {seconds:.2f} s")]
    found.append(_until("Your certificate", desk.certified_until, now))
    ending = [
        each.name
        for each in islice(operator.analysts(), LOOKED_AT)
        if each.certified_until is not None and each.certified_until - now < SOON
    ]
    found.append(_list("Analysts' certificates last", ending, "end within 30 days", "none ends within 30 days"))
    failed = [each.round.id for each in details if each.progress.phase.startswith("failed")]
    found.append(_list("Runs end with answers", failed, "failed; run again", "none has failed"))
    waiting = [each.round.id for each in details if next_step(each) is not None]
    steps = f"{len(waiting)} of the newest {len(details)} wait for you" if waiting else "none waits for you"
    found.append(Finding("", "Rounds go on", "passed", steps))
    used = [
        f"{account.name} ({bar.used:g} %)"
        for standing in operator.datasets()
        for account in (standing.data, *standing.analysts)
        if (bar := budget_bar(account)).used >= NEARLY_USED
    ]
    found.append(_list("Budgets have room", used, "are nearly used up", f"none is used above {NEARLY_USED:g} %"))
    return desk.show(
        "operator/health.html", section="Health", found=found, well=all(each.outcome == "passed" for each in found)
    )


def _until(what: str, end: datetime, now: datetime) -> Finding:
    return Finding("", f"{what} lasts", "failed" if end - now < SOON else "passed", f"until {shown_time(end)}")


def _list(title: str, found: list[str], wrong: str, well: str) -> Finding:
    if not found:
        return Finding("", title, "passed", well)
    return Finding("", title, "failed", f"{', '.join(found)}: {wrong}")
