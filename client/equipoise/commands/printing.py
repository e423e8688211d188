"""How the commands print: one JSON object, or tables and progress for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from equipoise.model.accounts import Budget, JournalEntry
from equipoise.model.rounds import Plan, Round, RoundDetail, RoundState, SessionTerms, Share
from equipoise.queries.schema import Schema

out = Console(emoji=False)
err = Console(stderr=True, emoji=False)

_WIDEST = 1_000  # columns
_BEGIN_NUMBERS = set("0123456789-(")


def print_json(value: object) -> None:
    """One JSON object on one line. Not through rich, which would wrap it at the terminal's width."""
    text = json.dumps(plain(value), ensure_ascii=False)
    if any("\ud800" <= each <= "\udfff" for each in text):
        text = json.dumps(plain(value))  # half of a surrogate pair cannot be printed
    print(text, flush=True)


def plain(value: object) -> object:
    """`value` as what JSON can say: times in ISO 8601, bytes in hexadecimal, infinite and NaN as null."""
    match value:
        case Schema():
            return json.loads(value.to_json())
        case datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Path():
            return str(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _ if is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        case _:
            return value


def print_foreign(text: str) -> None:
    """One line that may hold what nobody vouches for: it can neither move the cursor nor begin another line."""
    print_line("".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text))


def print_line(text: str) -> None:
    """One line of plain text: what comes from elsewhere is not read as markup, nor wrapped."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table of plain texts; numbers are to the right. As wide as it needs to be, so that nothing is cut off."""
    texts = [[str(cell) for cell in row] for row in rows]
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for number, column in enumerate(columns):
        numeric = all(row[number][:1] in _BEGIN_NUMBERS for row in texts)
        shown.add_column(column, justify="right" if numeric else "left", no_wrap=True)
    for row in texts:
        shown.add_row(*map(Text, row))
    natural = Measurement.get(out, out.options.update(width=_WIDEST), shown).maximum
    Console(width=max(natural, out.width), emoji=False).print(shown)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    for name, value in facts:
        print_line(f"  {name:<22} {value}")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 query, 2,000 queries."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def pair(budget: Budget) -> str:
    """An (epsilon, delta) pair as people write it."""
    return f"({budget.epsilon:.4g}, {budget.delta:.3g})"


def print_round(shown: Round, share: Share | None = None) -> None:
    """What everybody may see of a round; `share`: the reader's own, an analyst's."""
    terms = shown.terms
    facts: list[tuple[str, object]] = [
        ("round" if terms.session is None else "session", shown.id),
        ("state", shown.state),
        ("dataset", terms.dataset),
        ("mechanism", shown.mechanism),
        ("unit of protection", terms.unit),
        ("data budget", pair(terms.data_budget)),
        ("analyst budget", "none" if terms.analyst_budget is None else pair(terms.analyst_budget)),
        ("bounds hold with", f"{1 - terms.beta:.4g}"),
        ("opened", f"{shown.open_time:%Y-%m-%d %H:%M:%S} UTC"),
    ]
    if terms.session is not None:
        facts += _session(terms.session, terms.analyst_budget)
    if share is not None:
        allowed = f"{counted(share.statements, 'statement')}, {counted(share.queries, 'query')}"
        if share.sensitivity:
            allowed += f", sensitivity {share.sensitivity:,}"
        if share.support:
            allowed += f", support {share.support:,}"
        facts.append(("your share", allowed))
        if terms.session is not None:
            facts.append(("answered so far", counted(shown.answered, "statement")))
    if terms.close_time is not None:
        facts.append(("closes by itself", f"{terms.close_time:%Y-%m-%d %H:%M:%S} UTC"))
    if terms.release_grid_seconds:
        facts.append(("results open every", counted(terms.release_grid_seconds, "second")))
    if shown.release_time is not None:
        facts.append(("results open", f"{shown.release_time:%Y-%m-%d %H:%M:%S} UTC"))
    if shown.abort_reason:
        facts.append(("aborted because", shown.abort_reason))
    print_facts(facts)


def _session(terms: SessionTerms, analyst_budget: Budget | None) -> list[tuple[str, object]]:
    """What makes a round a session."""
    turns = f"{counted(terms.length, 'turn')} of {counted(terms.turn_seconds, 'second')}"
    length = turns if terms.turn_seconds else f"{counted(terms.length, 'statement')}, answered at once"
    after = "refusals" if terms.ending == "stop" else "answers without a bound"
    facts: list[tuple[str, object]] = [("session of", length), ("after its updates", after)]
    if analyst_budget is None:
        facts.append(("unprotected", "from answers one can tell what the other analysts ask"))
    return facts


def print_plan(plan: Plan, requested: str) -> None:
    """What a round would do and cost, by the mechanism that was `requested` or chosen."""
    error = "none" if plan.error_bound >= 1 else f"{plan.error_bound:.4g} of the records"
    print_facts(
        [
            ("mechanism", f"{plan.mechanism}{', chosen by auto' if requested == 'auto' else ''}"),
            ("costs the data", pair(plan.data_budget)),
            (
                "costs the analysts",
                "not counted: they are not protected" if plan.analyst_budget is None else pair(plan.analyst_budget),
            ),
            *(("counts on", each.all_in_words) for each in plan.charges),
            ("promised error", error),
            ("uncertified at most", f"{plan.max_uncertified:,}"),
            ("takes about", f"{plan.seconds:.0f} s, {plan.memory_bytes / 2**20:,.0f} MB"),
            ("parameters", plan.parameters),
        ]
    )


def print_journal(entries: Iterable[JournalEntry]) -> None:
    """A line for each entry; `charged for` names what the amount was computed from."""
    print_table(
        (
            "no.",
            "time (UTC)",
            "action",
            "account",
            "round",
            "rho",
            "epsilon",
            "delta",
            "divergence",
            "charged for",
            "digest",
        ),
        (
            (
                each.sequence,
                f"{each.time:%Y-%m-%d %H:%M:%S}",
                each.action,
                each.account,
                each.round_id,
                f"{each.cost.rho / 1e12:.6g}",
                f"{each.cost.epsilon / 1e12:.6g}",
                f"{each.cost.delta / 1e18:.3g}",
                f"{each.cost.divergence / 1e12:.6g}",
                _charged_for(each),
                each.digest.hex()[:12],
            )
            for each in entries
        ),
    )


def _charged_for(entry: JournalEntry) -> str:
    """The mechanism and its events, or the cap that was set."""
    events = json.loads(entry.events)
    if "cap" in events:
        counted = f", counted at Renyi order {events['order']:g}" if "order" in events else ""
        return "cap " + pair(Budget(events["cap"]["epsilon"], events["cap"]["delta"])) + counted
    if "mechanism" in events:
        parts = ", ".join(each.get("name", each["event"]) for each in events["events"])
        return f"{events['mechanism']}: {parts or 'nothing'}"
    return str(events.get("finding", ""))


def next_step(detail: RoundDetail) -> str:
    """What an operator has to do for the round to go on; empty where nothing, or where it goes on by itself."""
    shown, progress = detail.round, detail.progress
    if shown.terms.close_time is not None and not progress.phase.startswith("failed"):
        return ""
    match shown.state:
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


class ShownProgress:
    """A progress bar on standard error, gone when it is done: use as a context, call with done and total."""

    def __init__(self, unit: str) -> None:
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self._bar = Progress(*columns, TimeElapsedColumn(), console=err, transient=True)
        self._task = self._bar.add_task(unit, total=None)

    def __enter__(self) -> ShownProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Shows how far it is."""
        self._bar.update(self._task, completed=done, total=total)


class RunProgress:
    """A progress bar on standard error that follows a run: use as a context, call with every change."""

    def __init__(self) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=err,
        )
        self._task = self._bar.add_task("waiting", total=None, left="")
        self._last_step = ""

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, detail: RoundDetail) -> None:
        """Shows what `detail` says."""
        progress = detail.progress
        self._bar.update(
            self._task,
            description=progress.phase or detail.round.state.value,
            completed=progress.done,
            total=progress.total or None,
            left=f"{progress.seconds_left:.0f} s left" if progress.seconds_left else "",
        )

    def say(self, step: str) -> None:
        """Prints what the round waits for above the bar, once, and whole: it is a command to copy."""
        if step not in ("", self._last_step):
            self._bar.console.print(step, soft_wrap=True, markup=False, highlight=False)
        self._last_step = step
