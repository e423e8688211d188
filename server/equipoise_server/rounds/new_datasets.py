"""A dataset that is to be registered: what the operator says of it, and the caps of its accounts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.dangers import check_accepted, check_named_once, dangers_of_caps
from equipoise.model.datasets import read_people
from equipoise.model.persons import EACH_ROW, Persons
from equipoise.queries.schema import Schema
from equipoise.records.codec import optional
from equipoise.records.public_facts import ACCEPTED, BUDGET, PERSONS
from equipoise_server.datasets.persons.table import check_persons
from equipoise_server.ledger.caps import Cap, at_order, checked_cap
from equipoise_server.rounds.store.rounds import canonical
from equipoise_server.storage.idempotency import Request, make_request


@dataclass(frozen=True)
class AccountingMethod:
    """The Renyi orders at which a dataset's accounts count the rounds' costs; 0: the default order of the cap."""

    data_order: float = 0.0
    analyst_order: float = 0.0

    def __post_init__(self) -> None:
        for name, order in (("data_order", self.data_order), ("analyst_order", self.analyst_order)):
            if not math.isfinite(order):
                raise InvalidArgument(name, "must be finite")


USUAL_ORDERS = AccountingMethod()
_CAP = optional(BUDGET)


@dataclass(frozen=True)
class NewDataset:
    """A dataset to be registered. `source` is relative to the data directory.

    `person`: the column with its persons' ids, empty where each row is a person; `persons`: what their records are.
    `people`: whose people it holds (`rounds.people`). The caps are None where they are those of another dataset,
    whose account has its caps already. `new_budgets`: the operator knows that another dataset has the same table,
    or that a lost dataset may have had it, and that the table's records get new budgets. `accepted`: the dangers of
    the caps that the operator knows and wants.
    """

    name: str
    source: str
    schema: Schema
    data_cap: Budget | None
    analyst_cap: Budget | None
    accounting: AccountingMethod = USUAL_ORDERS
    new_budgets: bool = False
    people: str = ""
    person: str = ""
    persons: Persons = EACH_ROW
    accepted: tuple[Danger, ...] = ()

    def __post_init__(self) -> None:
        check_persons(self.schema, self.person, self.persons)
        check_named_once(self.accepted, "accepted")

    def check_dangers(self, records: int) -> None:
        """Raise `InvalidArgument` where the caps have a danger that is not accepted; `records`: in the table."""
        if self.data_cap is not None and self.analyst_cap is not None:
            people = records // self.persons.records
            check_accepted(dangers_of_caps(self.data_cap, self.analyst_cap, people), self.accepted)

    def request(self, caller: str, request_id: str) -> Request:
        """Return the request to register the dataset, whose content is every field of it."""
        content = {
            "name": self.name,
            "source": self.source,
            "schema": self.schema.to_json(),
            "data_cap": _CAP.encode(self.data_cap),
            "analyst_cap": _CAP.encode(self.analyst_cap),
            "data_order": self.accounting.data_order,
            "analyst_order": self.accounting.analyst_order,
            "new_budgets": self.new_budgets,
            "people": self.people,
            "person": self.person,
            "persons": PERSONS.encode(self.persons),
            "accepted": ACCEPTED.encode(self.accepted),
        }
        return make_request(caller, request_id, "register_dataset", canonical(content))


def new_caps(new: NewDataset) -> tuple[Cap, Cap] | None:
    """Return the caps of a new data account and of its analysts' accounts; None where the people have an account.

    Raises `InvalidArgument` where a cap is missing, or given to people who have an account.
    """
    named = read_people(new.people) if new.people else None
    caps = []
    for whose, budget, order in (
        ("data", new.data_cap, new.accounting.data_order),
        ("analyst", new.analyst_cap, new.accounting.analyst_order),
    ):
        if named is not None:
            for field, given in ((f"{whose}_cap", budget is not None), (f"{whose}_order", order != 0)):
                if given:
                    raise InvalidArgument(field, f"must not be set: the account of {named!r} has its own already")
        elif budget is None:
            raise InvalidArgument(f"{whose}_cap", "must be set, as new people get a new account")
        else:
            cap = checked_cap(f"{whose}_cap", budget.epsilon, budget.delta)
            caps.append(at_order(f"{whose}_order", cap, order))
    return None if named is not None else (caps[0], caps[1])
