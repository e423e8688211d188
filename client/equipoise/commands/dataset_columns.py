"""What the commands show of datasets and their accounts: each column once, with title and format."""

from __future__ import annotations

import json

from equipoise.accounting import in_rho
from equipoise.commands.columns import pair, shown_time
from equipoise.commands.printing import Columns
from equipoise.model.accounts import Account, AccountCharge, Budget, JournalEntry, counted_digits
from equipoise.model.datasets import DatasetCharge, DatasetStanding, DatasetVersion
from equipoise.model.own_world import GrantRequest, MeasuredTable, OwnDataset, SpentStatement
from equipoise.queries.statements_file import statement_to_json


def _took(charge: AccountCharge) -> str:
    """What a round counts on an account, in the account's own way, and alone as a pair of its cap."""
    alone = pair(charge.budget)
    if charge.order is None:
        return alone
    return f"{alone}; divergence {counted_digits(charge.divergence)}, delta {counted_digits(charge.delta)}"


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


# Lists, a row for each.
DATASETS: Columns[DatasetStanding] = {
    "dataset": lambda each: each.dataset.name,
    "version": lambda each: each.dataset.version,
    "state": lambda each: each.state,
    "source": lambda each: each.source_kind,
    "records": lambda each: f"{each.dataset.records:,}",
    "a person": lambda each: each.dataset.persons.in_short(),
    "universe": lambda each: f"{each.dataset.schema.universe_size:,}",
    "account": lambda each: each.dataset.account,
    "people have left": lambda each: each.data.left_in_words,
    "spent": lambda each: pair(each.data.spent),
    "analysts have left": lambda each: "; ".join(
        f"{account.name.split('/')[-2]}: {account.left_in_words}" for account in each.analysts
    ),
}
VERSIONS: Columns[DatasetVersion] = {
    "version": lambda each: each.version,
    "registered": lambda each: shown_time(each.create_time),
    "source": lambda each: each.source_kind,
    "records": lambda each: f"{each.records:,}",
    "attributes": lambda each: ", ".join(each.attributes),
}
CHARGES: Columns[DatasetCharge] = {
    "round": lambda each: each.round_id,
    "kind": lambda each: each.kind,
    "dataset": lambda each: each.dataset,
    "version": lambda each: each.dataset_version,
    "mechanism": lambda each: each.mechanism,
    "state": lambda each: each.state,
    "charge": lambda each: each.charge,
    "people": lambda each: _took(each.data),
    "each analyst": lambda each: "nothing" if each.analyst is None else _took(each.analyst),
}
ACCOUNTS: Columns[Account] = {
    "account": lambda each: each.name,
    "spent": lambda each: pair(each.spent),
    "committed": lambda each: pair(each.committed),
    "cap": lambda each: pair(each.cap),
    "counted": lambda each: each.in_words,
    "left": lambda each: each.left_in_words,
}
# "charged for" names what the amount was computed from.
JOURNAL: Columns[JournalEntry] = {
    "no.": lambda entry: entry.sequence,
    "time (UTC)": lambda entry: f"{entry.time:%Y-%m-%d %H:%M:%S}",
    "action": lambda entry: entry.action,
    "account": lambda entry: entry.account,
    "round": lambda entry: entry.round_id,
    "rho": lambda entry: f"{entry.cost.rho / 1e12:.6g}",
    "epsilon": lambda entry: f"{entry.cost.epsilon / 1e12:.6g}",
    "delta": lambda entry: f"{entry.cost.delta / 1e18:.3g}",
    "divergence": lambda entry: f"{entry.cost.divergence / 1e12:.6g}",
    "charged for": _charged_for,
    "digest": lambda entry: entry.digest.hex()[:12],
}

# An analyst's own world.
OWN_DATASETS: Columns[OwnDataset] = {
    "dataset": lambda own: own.dataset.name,
    "version": lambda own: own.dataset.version,
    "state": lambda own: own.dataset.state,
    "records": lambda own: f"{own.dataset.records:,}",
    "attributes": lambda own: len(own.dataset.schema.attributes),
    "open rounds": lambda own: len(own.open_rounds),
    "open sessions": lambda own: len(own.open_sessions),
    "open grants": lambda own: len(own.open_grants),
    "measured tables": lambda own: len(own.measured),
}
MEASURED: Columns[MeasuredTable] = {
    "measured table": lambda each: ", ".join(each.attributes),
    "standard error of a cell, in records": lambda each: f"{each.standard_error:.4g}",
}
SPENT: Columns[SpentStatement] = {
    "statement": lambda each: each.sequence,
    "wanted for rho": lambda each: in_rho(each.rho),
    "cost rho": lambda each: in_rho(each.cost),
    "what": lambda each: statement_to_json(each.statement),
}
OWN_REQUESTS: Columns[GrantRequest] = {
    "request": lambda asked: asked.number,
    "dataset": lambda asked: asked.dataset,
    "epsilon": lambda asked: f"{asked.epsilon:g}" if asked.epsilon else "any",
    "asked": lambda asked: shown_time(asked.create_time),
    "state": lambda asked: asked.state,
    "grant": lambda asked: asked.grant_id,
    "reason": lambda asked: asked.reason,
    "answer": lambda asked: asked.answer,
}
GRANT_REQUESTS: Columns[GrantRequest] = {"analyst": lambda asked: asked.analyst, **OWN_REQUESTS}
