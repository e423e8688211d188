"""What the log says of every dataset: its versions, its retirement and its deletion, in the only order possible."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from equipoise.auditing.steps import Step
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.datasets import read_people, same_people_as
from equipoise.model.persons import PersonMode
from equipoise.records.dataset_items import DataItem, DatasetItem, DeletionItem, RetirementItem


@dataclass
class RecordedDataset:
    """The registrations of a dataset's versions, the first of which has opened it, and how its life went on."""

    versions: list[Step]
    retired: Step | None = None
    deleted: Step | None = None

    @property
    def account(self) -> str:
        """The account that its rounds are charged to."""
        return self.versions[0].one(DataItem).account

    @property
    def ended(self) -> Step | None:
        """What took it out of use first; None while it takes rounds and versions."""
        return self.retired or self.deleted

    @property
    def state(self) -> str:
        """How its life has gone on, with the entries of the log."""
        ends = (("retired", self.retired), ("deleted", self.deleted))
        return ", ".join(f"{how} in entry {step.index}" for how, step in ends if step is not None) or "active"


Datasets = dict[str, RecordedDataset]  # by name


def register(datasets: Datasets, step: Step) -> None:
    """Take the registration of a version of a dataset.

    The first version of new people gets an account under the dataset's name. The same people, and so every later
    version, have the account that they had. A name that was used is not used again. Raises `VerificationFailed`.
    """
    data, public = step.one(DataItem), step.one(DatasetItem)
    name = data.dataset
    known = datasets.get(name)
    _check_persons(step, public, data)
    if public.dataset != name or public.version != (1 if known is None else len(known.versions) + 1):
        raise VerificationFailed(f"{step}: the dataset {name!a} is registered twice, or under two names")
    if known is not None:
        _require_use(step, name, known)
        if (data.people, data.account) != (same_people_as(name), known.account):
            raise VerificationFailed(
                f"{step}: a version of {name!a} must have its people and its account {known.account!a}, but has "
                f"{data.people!a} and {data.account!a}"
            )
        first = known.versions[0]
        if (public.persons, data.person) != (first.one(DatasetItem).persons, first.one(DataItem).person):
            raise VerificationFailed(f"{step}: a version of {name!a} has other persons than {first}")
        if data.analyst_cap is not None or data.analyst_order is not None:
            raise VerificationFailed(f"{step}: a version of {name!a} gives its analysts another cap")
        known.versions.append(step)
        return
    try:
        named = read_people(data.people)
    except InvalidArgument:
        raise VerificationFailed(f"{step}: does not say whose people {name!a} holds") from None
    if named is not None and named not in datasets:
        raise VerificationFailed(f"{step}: {name!a} holds the people of {named!a}, which is not registered before")
    account = name if named is None else datasets[named].account
    if data.account != account:
        whose = "new people" if named is None else f"the people of {named!a}"
        raise VerificationFailed(
            f"{step}: {name!a} holds {whose}, but has the account {data.account!a} and not {account!a}"
        )
    datasets[name] = RecordedDataset([step])


def retire(datasets: Datasets, step: Step) -> None:
    """Take the retirement of a dataset. Raises `VerificationFailed`."""
    dataset_in_use(datasets, step, step.one(RetirementItem).dataset).retired = step


def delete(datasets: Datasets, step: Step, with_rounds: Collection[str]) -> None:
    """Take the deletion of a dataset. `with_rounds`: the datasets with a round that has not ended.

    Raises `VerificationFailed`.
    """
    name = step.one(DeletionItem).dataset
    known = _registered(datasets, step, name)
    if known.deleted is not None:
        raise VerificationFailed(f"{step}: the dataset {name!a} is deleted twice")
    if name in with_rounds:
        raise VerificationFailed(f"{step}: the dataset {name!a} is deleted while a round on it has not ended")
    known.deleted = step


def dataset_in_use(datasets: Datasets, step: Step, name: str) -> RecordedDataset:
    """Return a dataset that takes rounds when a step comes. Raises `VerificationFailed`."""
    known = _registered(datasets, step, name)
    _require_use(step, name, known)
    return known


def _check_persons(step: Step, public: DatasetItem, data: DataItem) -> None:
    name, persons = data.dataset, public.persons
    if (data.person is None) != (persons.mode is PersonMode.ROWS):
        raise VerificationFailed(f"{step}: {name!a} must say both who is a person and by which column, or neither")
    if public.records % persons.records:
        raise VerificationFailed(f"{step}: {name!a} does not have {persons.records:,} records a person")


def _registered(datasets: Datasets, step: Step, name: str) -> RecordedDataset:
    known = datasets.get(name)
    if known is None:
        raise VerificationFailed(f"{step}: the dataset {name!a} is not registered before")
    return known


def _require_use(step: Step, name: str, known: RecordedDataset) -> None:
    if known.ended is not None:
        how = "retired" if known.retired is not None else "deleted"
        raise VerificationFailed(f"{step}: comes after the dataset {name!a} was {how}, by {known.ended}")
