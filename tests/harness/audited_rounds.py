"""A bench as the checks of an audit see it: everything read in pages, as an auditor reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from equipoise.auditing.archive import Archive, ListedRound
from equipoise.auditing.verify import Audit, Outcome, verify
from equipoise.model.times import to_microseconds
from equipoise_server.transparency.views import LogViews
from harness.rounds_bench import Bench, log_of

Part = TypeVar("Part")
FEW = 3  # on a page


def all_pages(page: Callable[[int, str], tuple[list[Part], str]]) -> tuple[Part, ...]:
    """What a list gives, a few at a time."""
    found, token = page(FEW, "")
    while token:
        more, token = page(FEW, token)
        assert 0 < len(more) <= FEW
        found += more
    return tuple(found)


def audited(bench: Bench) -> Audit:
    """Everything as an auditor finds it now."""
    bench.rounds.schedule.keep()
    views = LogViews(bench.store)
    rounds = all_pages(bench.rounds.views.page)
    archive = Archive(
        time=bench.clock(),
        checkpoint=views.checkpoint(),
        earlier=None,
        leaves=all_pages(views.leaves),
        records=all_pages(views.records),
        rounds=tuple(
            ListedRound(
                each.id,
                each.terms.dataset,
                each.state.value,
                to_microseconds(each.open_time),
                None if each.release_time is None else to_microseconds(each.release_time),
            )
            for each in rounds
        ),
        journal=all_pages(bench.rounds.budgets.journal),
    )
    with bench.store.read() as connection:
        signer = log_of(bench.directory, bench.store, bench.guard, bench.clock()).signer
        trusted = signer.verifier_keys(connection)
    return verify(archive, trusted)


def problems(audit: Audit) -> list[str]:
    return [f"{each.number}: {each.detail}" for each in audit.checks if each.outcome is Outcome.FAILED]
