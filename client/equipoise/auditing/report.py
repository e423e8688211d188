"""What an audit found, as JSON and as a page for people who need not know the system.

Neither says what analysts may not know of one another, such as who asked anything: reports are shown around.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from equipoise.auditing.accounts import Account
from equipoise.auditing.questions import NOT_CHECKED
from equipoise.auditing.rounds import RecordedRound
from equipoise.auditing.steps import Step
from equipoise.auditing.verify import Audit, Outcome
from equipoise.model.times import from_microseconds
from equipoise.records.dataset_items import DataItem, DatasetItem
from equipoise.records.item_parts import SESSION
from equipoise.records.items import SealItem

VERSION = 3


def as_json(audit: Audit) -> dict[str, Any]:
    """Returns the report as an object that is ready for JSON, which `--json` prints."""
    checkpoint = audit.checkpoint
    return {
        "version": VERSION,
        "passed": audit.passed,
        "time": audit.archive.time,
        "checkpoint": None
        if checkpoint is None
        else {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root},
        "checks": [
            {"number": each.number, "question": each.question, "outcome": each.outcome, "detail": each.detail}
            for each in audit.checks
        ],
        "datasets": [
            {
                "dataset": step.one(DataItem).dataset,
                "version": step.one(DatasetItem).version,
                "entry": step.index,
                "people": step.one(DataItem).people,
                "account": step.one(DataItem).account,
                "state": state,
            }
            for step, state in _datasets(audit)
        ],
        "accounts": [_account(each) for each in audit.standing],
        "rounds": [_round(round_id, history) for round_id, history in _rounds(audit)],
        "remarks": audit.remarks,
        "not_checked": list(NOT_CHECKED),
    }


def as_markdown(audit: Audit) -> str:
    """Returns the report in Markdown."""
    failed = [each for each in audit.checks if each.outcome is Outcome.FAILED]
    verdict = (
        "**Everything that was checked is in order.**"
        if audit.passed
        else f"**Not in order.** The first difference: {failed[0].number}, {_cell(failed[0].detail)}."
    )
    checkpoint = audit.checkpoint
    log = (
        "No valid checkpoint of the log was found."
        if checkpoint is None
        else f"The log `{_cell(checkpoint.origin)}` had {checkpoint.size} entries; its root is "
        f"`{checkpoint.root.hex()}`. Keep this root: no later log can deny it."
    )
    parts = [
        "# Audit report",
        f"{verdict} Records as downloaded on {_time(audit.archive.time)}.",
        log,
        "## What was checked",
        _table(
            ("check", "question", "result"),
            (
                (each.number, each.question, each.outcome + (f": {each.detail}" if each.detail else ""))
                for each in audit.checks
            ),
        ),
        "## Datasets",
        "Whose people a dataset holds is what the custodian says. All versions of a dataset, and datasets of the "
        "same people, share one account, and what is spent for one of them counts for all.",
        _table(
            ("dataset", "version", "registered", "people", "account", "state"),
            (_dataset_row(step, state) for step, state in _datasets(audit)),
        ),
        "## Budgets",
        "Epsilon bounds what anybody can learn: about one person in the table (accounts `data/...`), or about one "
        "analyst's questions (accounts `analyst/...`). All is at the cap's delta; spent includes reserved. Where "
        "rounds add, what is counted stays within both limits, each for itself: that makes the cap hold.",
        _table(
            ("account", "spent", "of a cap of", "delta", "charges", "counted"),
            map(_account_row, audit.standing),
        ),
        "## Rounds",
        _table(
            (
                "round",
                "dataset",
                "version",
                "mechanism",
                "opened",
                "state",
                "shares",
                "analysts",
                "seed read",
                "seed destroyed",
            ),
            (_round_row(round_id, history) for round_id, history in _rounds(audit)),
        ),
        "## Remarks",
        _list(audit.remarks or ["None."]),
        "## What was not checked",
        _list([*_list_unmade_checks(audit), *NOT_CHECKED]),
    ]
    return "\n\n".join(parts) + "\n"


def _datasets(audit: Audit) -> Iterable[tuple[Step, str]]:
    """The registrations of all versions, each with how its dataset's life went on."""
    if audit.recorded is None:
        return []
    known = audit.recorded.datasets
    return [(step, known[step.one(DataItem).dataset].state) for step in audit.recorded.registered]


def _dataset_row(step: Step, state: str) -> Sequence[object]:
    data = step.one(DataItem)
    registered = f"entry {step.index} of the log"
    return data.dataset, step.one(DatasetItem).version, registered, data.people, f"`{data.account}`", state


def _rounds(audit: Audit) -> Iterable[tuple[str, RecordedRound]]:
    return () if audit.recorded is None else audit.recorded.rounds.items()


def _list_unmade_checks(audit: Audit) -> list[str]:
    return [
        f"{each.number}, {each.question} {each.detail}."
        for each in audit.checks
        if each.outcome is Outcome.NOT_CHECKED
    ]


def _account(account: Account) -> dict[str, Any]:
    return {
        "account": account.name,
        "composition": account.composition,
        "cap": account.cap,
        **asdict(account.counted),
        "committed_epsilon": account.committed_epsilon,
        "charges": [
            {"round": round_id, "state": charge.state, "mechanism": charge.mechanism, "cost": charge.cost}
            for round_id, charge in account.charges.items()
        ],
        "written_off": account.lost,
    }


def _account_row(account: Account) -> Sequence[object]:
    live = sum(charge.state != "released" for charge in account.charges.values())
    delta = f"{account.cap.delta:g}"
    return (
        f"`{account.name}`",
        f"{account.committed_epsilon:.6g}",
        f"{account.cap.epsilon:g}",
        delta,
        live,
        account.counted.in_words,
    )


def _round(round_id: str, history: RecordedRound) -> dict[str, Any]:
    nonce = None if history.sealed is None else history.sealed.one(SealItem).nonce
    return {
        "round": round_id,
        "dataset": history.terms.dataset,
        "dataset_version": history.terms.dataset_version,
        "mechanism": history.terms.mechanism,
        "state": history.state,
        "opened": from_microseconds(history.terms.open_time),
        "shares": len(history.analysts),
        "session": None if history.session is None else SESSION.encode(history.session),
        "protects_analysts": history.protects_analysts,
        "nonce": None if nonce is None else nonce.hex(),
        "seed_read": [{"auditor": each.auditor, "time": from_microseconds(each.time)} for each in history.reads],
        "seed_destroyed": None if history.destroyed is None else from_microseconds(history.destroyed.time),
    }


def _round_row(round_id: str, history: RecordedRound) -> Sequence[object]:
    return (
        f"`{round_id}`",
        history.terms.dataset,
        history.terms.dataset_version,
        history.terms.mechanism,
        _time(from_microseconds(history.terms.open_time)),
        history.state,
        len(history.analysts),
        _protection(history),
        ", ".join(f"{each.auditor} {_time(from_microseconds(each.time))}" for each in history.reads),
        "" if history.destroyed is None else _time(from_microseconds(history.destroyed.time)),
    )


def _protection(history: RecordedRound) -> str:
    if len(history.analysts) <= 1:
        return "there is one, and nobody to protect it from" if history.analysts else "there are none"
    return "protected" if history.protects_analysts else "not protected from one another"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_cell(line)}" for line in lines)


def _cell(value: object) -> str:
    """What comes from elsewhere neither ends a cell nor begins anything of Markdown's that spans lines."""
    return " ".join(str(value).replace("|", "\\|").replace("<", "&lt;").split())


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
