"""What the commands show of rounds and sessions: each column once, with title and format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from equipoise.commands.dangers import in_short
from equipoise.commands.errors_in_words import error_in_words, typical_cells
from equipoise.commands.printing import Columns, counted, print_facts
from equipoise.model.accounts import Budget
from equipoise.model.rounds import GRANT, Plan, Round, RoundDetail, RoundState, Share, Terms
from equipoise.queries.schema import Attribute
from equipoise.queries.statement_work import most_work


def pair(budget: Budget) -> str:
    """An (epsilon, delta) pair as people write it."""
    return f"({budget.epsilon:.4g}, {budget.delta:.3g})"


def in_words(attribute: Attribute) -> str:
    """An attribute with its categories, their codes in brackets, and which other values each of them holds."""
    ordered = {None: "", True: " (ordered)", False: " (in no order)"}[attribute.ordered]
    others = "values outside of the bins" if attribute.edges else "values that are not listed"
    places = {others: attribute.unknown or (attribute.clamp and "the nearest"), "missing values": attribute.missing}
    held = "".join(f"; {values} count as {place}" for values, place in places.items() if place)
    codes: dict[str, list[str]] = {}
    for code, label in attribute.codes:
        codes.setdefault(label, []).append(code)
    listed = (f"{each} ({', '.join(codes[each])})" if each in codes else each for each in attribute.categories)
    return f"{attribute.name}: {', '.join(listed)}{ordered}{held}"


def shown_time(time: datetime | None) -> str | None:
    """A time as people read it."""
    return None if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


# Shares, a row for each.
SHARES_OF_SESSION: Columns[Share] = {
    "analyst": lambda share: share.analyst,
    "statements": lambda share: f"{share.statements:,}",
    "queries": lambda share: f"{share.queries:,}",
}
SHARES: Columns[Share] = {
    **SHARES_OF_SESSION,
    "sensitivity": lambda share: f"{share.sensitivity:,}" if share.sensitivity else "not declared",
    "support": lambda share: f"{share.support:,}" if share.support else "not declared",
    "ways": lambda share: f"{share.ways:,}" if share.ways else "not declared",
}

# One round, a line for each; None is not shown. Analysts are shown their own share.
FACTS: Mapping[str, Callable[[Round, Share | None], object]] = {
    "round": lambda shown, _: shown.id if shown.terms.session is None else None,
    "session": lambda shown, _: None if shown.terms.session is None or _is_grant(shown) else shown.id,
    "grant": lambda shown, _: shown.id if _is_grant(shown) else None,
    "state": lambda shown, _: shown.state,
    "dataset": lambda shown, _: f"{shown.terms.dataset}, version {shown.dataset_version}",
    "mechanism": lambda shown, _: shown.mechanism,
    "unit of protection": lambda shown, _: None if _is_grant(shown) else shown.terms.unit,
    "data budget": lambda shown, _: pair(shown.terms.data_budget),
    "analyst budget": lambda shown, _: None if _is_grant(shown) else _analyst_budget(shown.terms),
    "intervals hold with": lambda shown, _: f"{1 - shown.terms.beta:.4g}",
    "accepted dangers": lambda shown, _: in_short(shown.terms.accepted),
    "opened": lambda shown, _: shown_time(shown.open_time),
    "session of": lambda shown, own: None if _is_grant(shown) else _length(shown.terms, own),
    "after its updates": lambda shown, _: None if _is_grant(shown) else _ending(shown.terms),
    "unprotected": lambda shown, own: _unprotected(shown.terms, own),
    "your share": lambda _, own: None if own is None else _share_text(own),
    "answered so far": lambda shown, own: (
        None if own is None or shown.terms.session is None else counted(shown.answered, "statement")
    ),
    "closes by itself": lambda shown, _: shown_time(shown.terms.close_time),
    "results open every": lambda shown, _: (
        counted(shown.terms.release_grid_seconds, "second") if shown.terms.release_grid_seconds else None
    ),
    "results open": lambda shown, _: shown_time(shown.release_time),
    "aborted because": lambda shown, _: shown.abort_reason or None,
}


def print_round(shown: Round, share: Share | None = None) -> None:
    """What everybody may see of a round; `share`: the reader's own, an analyst's."""
    print_facts((title, fact(shown, share)) for title, fact in FACTS.items())


def _is_grant(shown: Round) -> bool:
    """Return whether a session is a grant: its answers depend on no other analyst, and it has no updates."""
    return shown.mechanism == GRANT


def _analyst_budget(terms: Terms) -> str:
    return "none" if terms.analyst_budget is None else pair(terms.analyst_budget)


def _length(terms: Terms, own: Share | None) -> str | None:
    """Of a session; with turns also how much work they leave to a statement, for whoever sees all shares."""
    if terms.session is None:
        return None
    length, seconds = terms.session.length, terms.session.turn_seconds
    if not seconds:
        return f"{counted(length, 'statement')}, answered at once"
    turns = f"{counted(length, 'turn')} of {counted(seconds, 'second')}"
    work = f"a statement at most {most_work(seconds, len(terms.shares)):,} units of work"
    return turns if own is not None else f"{turns}; {work}"


def _unprotected(terms: Terms, own: Share | None) -> str | None:
    """What a session without a budget for analysts lets them learn, if there is more than one."""
    if terms.session is None or terms.analyst_budget is not None:
        return None
    if own is None and len(terms.shares) == 1:
        return "there is one analyst, and nobody to protect it from"
    return "from answers one can tell what the other analysts ask"


def _ending(terms: Terms) -> str | None:
    if terms.session is None:
        return None
    return "refusals" if terms.session.ending == "stop" else "answers without an interval"


def _share_text(share: Share) -> str:
    allowed = f"{counted(share.statements, 'statement')}, {counted(share.queries, 'query')}"
    declared = {"sensitivity": share.sensitivity, "support": share.support, "ways": share.ways}
    allowed += "".join(f", {name} {number:,}" for name, number in declared.items() if number)
    return allowed


def print_plan(plan: Plan, terms: Terms, records: int) -> None:
    """What a round would do and cost, by the mechanism that its terms name or that was chosen."""
    print_facts(plan_facts(plan, terms, records))


def plan_facts(plan: Plan, terms: Terms, records: int) -> list[tuple[str, object]]:
    """Return the same as names and values. `records`: in the table."""

    def shown(error: float) -> str:
        if plan.counts_records:
            return error_in_words(error, records, typical_cells(terms.shares))
        return f"{error:.4g} of each statement's range"

    return [
        ("mechanism", f"{plan.mechanism}{', chosen by auto' if terms.mechanism == 'auto' else ''}"),
        ("costs the data", pair(plan.data_budget)),
        (
            "costs the analysts",
            "not counted: they are not protected" if plan.analyst_budget is None else pair(plan.analyst_budget),
        ),
        *(("counts on", each.all_in_words) for each in plan.charges),
        ("largest half-width", "none" if plan.max_half_width >= 1 else shown(plan.max_half_width)),
        ("expected mean error", shown(plan.expected_error)),
        ("uncertified at most", f"{plan.max_uncertified:,}"),
        ("takes about", f"{plan.seconds:.0f} s, {plan.memory_bytes / 2**20:,.0f} MB"),
        ("parameters", plan.parameters),
    ]


def next_step(detail: RoundDetail) -> str:
    """What an operator has to do for the round to go on; empty where nothing, or where it goes on by itself."""
    shown, progress = detail.round, detail.progress
    if shown.terms.close_time is not None and not progress.phase.startswith("failed"):
        return ""
    match shown.state:
        case RoundState.OPEN if _is_grant(shown):
            return f"waits for: equipoise operator grant end {shown.id}"
        case RoundState.OPEN if shown.terms.session is not None:
            return f"waits for: equipoise operator session close {shown.id}"
        case RoundState.OPEN:
            step = "seal"
        case RoundState.SEALED:
            step = "run"
        case RoundState.RUNNING if progress.complete:
            step = "release"
        case RoundState.RUNNING if progress.phase.startswith("failed"):
            step = "run"
        case _:
            return ""
    return f"waits for: equipoise operator round {step} {shown.id}"
