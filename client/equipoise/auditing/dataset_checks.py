"""The part of check A8 about datasets: whose account each is charged to, its caps, and which dangers they have."""

from __future__ import annotations

import json
from collections.abc import Sequence

from equipoise.auditing.accounts import SUM, Accounts, Moment
from equipoise.auditing.rounds import Recorded
from equipoise.auditing.steps import Step, newest_head
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import Budget, JournalEntry
from equipoise.model.dangers import dangers_of_caps, dangers_of_new_cap, not_accepted
from equipoise.model.datasets import NEW_PEOPLE
from equipoise.records.dataset_items import DataItem, DatasetItem
from equipoise.records.public_facts import ACCEPTED

_DATA = "data/"


def check_data_accounts(journal: Sequence[JournalEntry], steps: Sequence[Step], recorded: Recorded) -> None:
    """Check that each dataset of new people, and nothing else, has opened a data account, under its own name.

    Args:
        journal: the budget journal, which may be newer than the log.
        steps: of the log.
        recorded: what they say of datasets.

    Raises:
        VerificationFailed: an account is missing when its dataset is registered, or was opened for none.
    """
    opened = {
        entry.account.removeprefix(_DATA): entry.sequence
        for entry in journal
        if entry.action == "open-account" and entry.account.startswith(_DATA)
    }
    for step in recorded.registered:
        data, name = step.one(DataItem), step.one(DataItem).dataset
        if opened.get(data.account, len(journal) + 1) > data.journal.sequence:
            raise VerificationFailed(
                f"{step}: {name!a} is charged to the account {data.account!a}, which the budget journal has not "
                "opened before"
            )
    # A registration is recorded in the transaction that opens its account, and enters the log in its turn.
    newest = newest_head(steps)
    for account, sequence in opened.items():
        known = recorded.datasets.get(account)
        if sequence <= newest and (known is None or known.account != account):
            raise VerificationFailed(
                f"entry {sequence} of the budget journal opens {_DATA}{account}, though no dataset of new people "
                "is registered under this name"
            )


def check_analyst_accounts(journal: Sequence[JournalEntry], steps: Sequence[Step], recorded: Recorded) -> None:
    """Check that each analyst's account was opened with the cap and the order that its dataset's registration says.

    Args:
        journal: the budget journal, which may be newer than the log.
        steps: of the log.
        recorded: what they say of datasets.

    Raises:
        VerificationFailed: naming the entry that opens an account for no dataset, or otherwise than registered.
    """
    newest = newest_head(steps)
    for moment in Accounts().moments(journal):
        entry, opened = moment.entry, moment.account
        kind, _, rest = opened.name.partition("/")
        if entry.action != "open-account" or kind != "analyst":
            continue
        said = f"entry {entry.sequence} of the budget journal opens {opened.name}"
        known = recorded.datasets.get(rest.split("/")[0])
        if known is None:
            if entry.sequence <= newest:
                raise VerificationFailed(f"{said}, though no such dataset is registered")
            continue
        step = known.versions[0]
        cap, order = step.one(DataItem).analyst_cap, step.one(DataItem).analyst_order
        if cap is None or opened.cap != cap:
            raise VerificationFailed(
                f"{said} with the cap {_in_words(opened.cap)}, but {step} says {_in_words(cap)}"
            )
        if opened.composition == SUM and opened.order != order:
            raise VerificationFailed(f"{said} at the order {opened.order}, but {step} says {order}")


def _in_words(cap: Budget | None) -> str:
    return "none" if cap is None else f"epsilon {cap.epsilon:g} at delta {cap.delta:g}"


def check_caps_accepted(journal: Sequence[JournalEntry], recorded: Recorded) -> list[str]:
    """Check that the dangers of all caps that accounts were opened with, or got later, were accepted.

    Args:
        journal: the budget journal, whose data accounts have the caps of data.
        recorded: the datasets on record, with the caps of their analysts and what was accepted.

    Returns:
        Remarks on those that were.

    Raises:
        VerificationFailed: a danger was not accepted.
    """
    caps: dict[str, Budget] = {}
    remarks, changed = [], []
    for moment in Accounts().moments([each for each in journal if each.action in ("open-account", "set-cap")]):
        caps.setdefault(moment.account.name, moment.account.cap)
        if moment.entry.action == "set-cap":
            changed += _changed_cap(moment, recorded)
    for step in recorded.registered:
        data, public = step.one(DataItem), step.one(DatasetItem)
        if data.analyst_cap is None:
            continue
        people = public.records // public.persons.records
        dangers = dangers_of_caps(caps[_DATA + data.account], data.analyst_cap, people)
        if unnamed := not_accepted(dangers, data.accepted):
            raise VerificationFailed(
                f"{step}: nobody has accepted dangers of its caps: {'; '.join(unnamed.values())}"
            )
        remarks += [
            f"{step}: {data.dataset} was registered with the danger {each}: {said}"
            for each, said in dangers.items()
        ]
    return remarks + changed


def _changed_cap(moment: Moment, recorded: Recorded) -> list[str]:
    """The same of a cap that was changed, by the largest table that was registered on its account before."""
    entry, kind = moment.entry, f"entry {moment.entry.sequence} of the budget journal"
    accepted = ACCEPTED.decode(json.loads(entry.events).get("accepted"), f"{kind}: accepted")
    tables = [step.one(DatasetItem) for step in recorded.registered if _was_on(step.one(DataItem), entry)]
    people = max((each.records // each.persons.records for each in tables), default=0)
    of_data = entry.account.startswith(_DATA)
    dangers = dangers_of_new_cap(moment.account.cap, people if of_data else None)
    if unnamed := not_accepted(dangers, accepted):
        raise VerificationFailed(f"{kind}: nobody has accepted dangers of its cap: {'; '.join(unnamed.values())}")
    return [f"{kind}: {entry.account} got a cap with the danger {each}: {said}" for each, said in dangers.items()]


def _was_on(data: DataItem, entry: JournalEntry) -> bool:
    return entry.account == _DATA + data.account and data.journal.sequence < entry.sequence


def counted_twice(journal: Sequence[JournalEntry], recorded: Recorded) -> list[str]:
    """Remarks on people who may lose the budgets of several accounts."""
    holding: dict[bytes, dict[str, str]] = {}
    for data in (step.one(DataItem) for step in recorded.registered):
        holding.setdefault(data.digest, {})[data.dataset] = data.account
    remarks = [
        f"{', '.join(accounts)} hold the same data: what people in them may lose is the sum"
        for accounts in holding.values()
        if len(set(accounts.values())) > 1
    ]
    remarks += _claims(recorded)
    for entry in journal:
        events = json.loads(entry.events) if entry.action == "open-account" else None
        if isinstance(events, dict) and events.get("beside"):
            others = ", ".join(map(str, events["beside"]))
            remarks.append(
                f"entry {entry.sequence}: {entry.account} was opened beside {others}, maybe for the same people"
            )
    return remarks


def _claims(recorded: Recorded) -> list[str]:
    """Remarks on datasets with accounts of their own, as the custodian says that they hold other people."""
    first = [step for step in recorded.registered if step.one(DataItem).people == NEW_PEOPLE]
    return [
        f"{step}: the custodian says that nobody in {step.one(DataItem).dataset} is in a dataset registered "
        "before; what people who are in both may lose is the sum"
        for step in first[1:]
    ]
