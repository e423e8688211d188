"""The journal of both budgets, with a mark where an entry is missing or its digest does not follow."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from equipoise.commands.dataset_columns import JOURNAL
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.rendering import Part, plain_table
from equipoise.model.accounts import JournalEntry
from equipoise.model.journal import START, entry_digest

ROWS = 200


def show(desk: Desk, asked: Asked) -> Response:
    """One page of the journal, of all accounts or of one. The chain is checked from its beginning each time."""
    entries = list(desk.auditor.journal())
    marks = broken_places(entries)
    account = asked.query.get("account", "")
    chosen = [each for each in entries if account in ("", each.account)]
    first = (asked.page - 1) * ROWS
    shown = chosen[first : first + ROWS]
    rows = [[marks.get(each.sequence, ""), *(str(cell(each)) for cell in JOURNAL.values())] for each in shown]
    part: Part[JournalEntry] = Part(
        shown,
        asked.page,
        more=len(chosen) > first + ROWS,
        first=first,
        last=max(1, -(-len(chosen) // ROWS)),
        query={"account": account} if account else {},
    )
    return desk.show(
        "auditor/journal.html",
        section="Journal",
        part=part,
        journal=plain_table(("gap", *JOURNAL), rows),
        accounts=sorted({each.account for each in entries if each.account}),
        account=account,
        marks=marks,
        total=len(entries),
    )


def broken_places(entries: Iterable[JournalEntry]) -> dict[int, str]:
    """Returns where the chain is broken: by the number of the first entry after the gap, what is wrong.

    Args:
        entries: the whole journal, in order.
    """
    marks: dict[int, str] = {}
    number, digest = 0, START
    for entry in entries:
        missing = entry.sequence - number - 1
        if missing:
            marks[entry.sequence] = f"{missing:,} missing before" if missing > 0 else "out of order"
        elif entry_digest(digest, entry) != entry.digest:
            marks[entry.sequence] = "does not follow"
        number, digest = entry.sequence, entry.digest
    return marks
