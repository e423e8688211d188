"""Datasets that are updated, retired or deleted while a round is planned, and updates of tables of persons."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, RECORDS, SCHEMA, TERMS, Bench, new_bench, write_table
from harness.stores import sqlite_url

from equipoise.errors import InvalidArgument, WrongState
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.rounds import Share, Terms
from equipoise_server.mechanisms.interface import OnStep
from equipoise_server.mechanisms.planner import Comparison
from equipoise_server.rounds.dataset_endings import delete_dataset, retire_dataset
from equipoise_server.rounds.dataset_versions import update_dataset
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.terms.defaults import compare_plans

NOISE = replace(TERMS, mechanism="gaussian", options={})
# Tables with records of nothing have a category more of each attribute, so a marginal has more cells.
ORDERS = replace(NOISE, dataset="orders", shares=(Share("ann", 4, 24), Share("bob", 4, 24)))
PERSONS = Persons(PersonMode.EVENTS, 4)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = new_bench(tmp_path, sqlite_url(tmp_path), distinct_seeds=True)
    yield made
    made.stop()


def update(bench: Bench) -> None:
    write_table(bench.directory, RECORDS + 1)
    (bench.directory / "shop.csv").rename(bench.directory / "data" / "newer.csv")
    update_dataset(bench.rounds.datasets, "shop", "newer.csv", None, "update")


def retire(bench: Bench) -> None:
    retire_dataset(bench.rounds.operations, "shop", "retire")


def delete(bench: Bench) -> None:
    delete_dataset(bench.rounds.operations, "shop", "delete")


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("act", "problem"),
    [(update, "got its version 2 meanwhile"), (retire, "is retired"), (delete, "was deleted")],
)
def test_a_round_that_was_planned_for_what_is_not_there_any_more_is_not_opened(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, act: Callable[[Bench], None], problem: str
) -> None:
    def planned_too_late(terms: Terms, dataset: DatasetRecord, step: OnStep) -> Comparison:
        planned = compare_plans(terms, dataset, step)
        monkeypatch.undo()
        act(bench)
        return planned

    monkeypatch.setattr("equipoise_server.rounds.opening.compare_plans", planned_too_late)
    before = bench.rounds.budgets.journal()
    with pytest.raises(WrongState, match=problem):
        bench.rounds.opening.open(NOISE, "open")
    assert bench.rounds.budgets.journal() == before
    bench.rounds.schedule.keep()
    assert problems(audited(bench)) == []
    if act is update:
        assert bench.released(NOISE).dataset_version == 2


def write_orders(bench: Bench, name: str, customers: int, column: str = "who") -> None:
    """Orders of customers, of whom the first have many."""
    rows = [
        (f"customer {owner}", ("red", "green")[row % 2], "sml"[row % 3]) for row in range(9) for owner in range(40)
    ]
    rows += [(f"customer {owner}", "red", "xl") for owner in range(customers)]
    with (bench.directory / "data" / name).open("w", newline="") as file:
        csv.writer(file).writerows([(column, "colour", "size"), *rows])


@pytest.mark.nightly
def test_a_table_of_persons_is_updated_with_its_persons_as_they_were_registered(bench: Bench) -> None:
    datasets = bench.rounds.datasets
    write_orders(bench, "orders.csv", 300)
    datasets.register(
        "orders",
        "orders.csv",
        SCHEMA,
        CAP,
        CAP,
        "o",
        people="new",
        person="who",
        persons=PERSONS,
        accepted=LARGE_CAPS,
    )
    old = bench.sealed(ORDERS)
    write_orders(bench, "nameless.csv", 330, "customer")
    with pytest.raises(InvalidArgument, match="the table has no column named 'who'"):
        update_dataset(datasets, "orders", "nameless.csv", None, "nameless")
    write_orders(bench, "newer.csv", 330)
    version = update_dataset(datasets, "orders", "newer.csv", None, "newer")
    assert (version.version, version.persons, version.records) == (2, PERSONS, 4 * 330)
    assert version.schema.padded
    new = bench.sealed(ORDERS)
    for round_id, expected in ((old, 1), (new, 2)):
        bench.rounds.lifecycle.run(round_id, f"run {round_id}")
        assert bench.wait(round_id).complete
        assert bench.rounds.lifecycle.release(round_id, f"release {round_id}").dataset_version == expected
    bench.clock.move(60)
    bench.rounds.schedule.keep()
    assert problems(audited(bench)) == []
    with pytest.raises(InvalidArgument, match="holds what version 2 of 'orders' holds already"):
        update_dataset(datasets, "orders", "newer.csv", None, "again")
