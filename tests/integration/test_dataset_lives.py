"""The life of a dataset: versions on one account, retirement, deletion, and what stays verifiable after each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, KEY, RECORDS, SCHEMA, TERMS, Bench, new_bench, write_table

from equipoise.accounting import Cost
from equipoise.errors import AlreadyExists, InvalidArgument, NotFound, WrongState
from equipoise.model.datasets import DatasetState
from equipoise.model.rounds import MEASUREMENT, STANDING, Share
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.admin.checks import check_content
from equipoise_server.rounds.dataset_endings import delete_dataset, retire_dataset
from equipoise_server.rounds.dataset_versions import update_dataset
from equipoise_server.rounds.records import DatasetRecord

NOISE = replace(TERMS, mechanism="gaussian", options={})
MEASURE = replace(NOISE, mechanism=MEASUREMENT, shares=(), analyst_budget=None, options={"family": "pairs"})
WIDER = Schema((Attribute("colour", ("red", "green", "blue")), SCHEMA.attributes[1]))


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    made = new_bench(tmp_path, store_url, distinct_seeds=True)
    yield made
    made.stop()


def newer(bench: Bench, schema: Schema | None = None, request_id: str = "update") -> DatasetRecord:
    """Write a table with one record more, and register it as another version."""
    write_table(bench.directory, RECORDS + 1)
    (bench.directory / "shop.csv").rename(bench.directory / "data" / "newer.csv")
    return update_dataset(bench.rounds.datasets, "shop", "newer.csv", schema, request_id)


def delete(bench: Bench, request_id: str = "delete") -> DatasetRecord:
    return delete_dataset(bench.rounds.operations, "shop", request_id)


def check(bench: Bench) -> None:
    """What `equipoise-server check` and the auditor's commands check."""
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        check_content(connection, bench.signer, KEY)
    assert problems(audited(bench)) == []


@pytest.mark.full
def test_versions_share_the_account_and_each_round_is_computed_on_its_own(bench: Bench) -> None:
    roomy = replace(NOISE, shares=(Share("ann", 4, 30), Share("bob", 4, 30)))
    due = [bench.due(bench.rounds.opening.plan(roomy))]
    old = bench.sealed(roomy)
    version = newer(bench, WIDER)
    assert (version.version, version.account, version.records) == (2, "shop", RECORDS + 1)
    assert newer(bench, WIDER) == version
    due.append(bench.due(bench.rounds.opening.plan(roomy)))
    new = bench.sealed(roomy)
    for round_id, expected in ((old, 1), (new, 2)):
        bench.rounds.lifecycle.run(round_id, f"run {round_id}")
        assert bench.wait(round_id).complete
        assert bench.rounds.lifecycle.release(round_id, f"release {round_id}").dataset_version == expected
    bench.clock.move(60)
    assert {part.name for part in bench.rounds.budgets.accounts("shop")[0] if part.name.startswith("data")} == {
        "data/shop"
    }
    assert bench.on_data().spent == sum(due, Cost())
    views = bench.rounds.analyst_views
    assert [views.dataset("ann", "shop", number).schema for number in (1, 2, 0)] == [SCHEMA, WIDER, WIDER]
    with pytest.raises(NotFound, match="there is no such dataset"):
        views.dataset("ann", "shop", 3)
    check(bench)
    bench.restart()


def test_an_update_that_changes_nothing_or_holds_others_is_refused(bench: Bench) -> None:
    datasets = bench.rounds.datasets
    before = bench.rounds.budgets.journal()
    with pytest.raises(InvalidArgument, match=r"^source: holds what version 1 of 'shop' holds already"):
        update_dataset(datasets, "shop", "", None, "same")
    with pytest.raises(NotFound):
        update_dataset(datasets, "other", "shop.csv", None, "none")
    with pytest.raises(InvalidArgument, match=r"^source: "):
        update_dataset(datasets, "shop", "../shop.csv", None, "outside")
    assert bench.rounds.budgets.journal() == before
    write_table(bench.directory, RECORDS + 5)
    (bench.directory / "shop.csv").rename(bench.directory / "data" / "others.csv")
    datasets.register("others", "others.csv", SCHEMA, CAP, CAP, "others", people="new", accepted=LARGE_CAPS)
    with pytest.raises(InvalidArgument, match=r"^source: is the table of the dataset 'others' already"):
        update_dataset(datasets, "shop", "others.csv", None, "others'")
    assert datasets.get("shop").version == 1


def test_an_older_version_s_table_is_recognised(bench: Bench) -> None:
    """Wherever it lies now, and whatever has become of the file that was registered."""
    newer(bench)
    (bench.directory / "data" / "shop.csv").rename(bench.directory / "data" / "moved.csv")
    with pytest.raises(InvalidArgument, match="people: must be 'same-as:shop'"):
        bench.rounds.datasets.register(
            "moved", "moved.csv", SCHEMA, CAP, CAP, "moved", people="new", accepted=LARGE_CAPS
        )


def test_a_measurement_of_an_older_version_is_refused_before_any_charge(bench: Bench) -> None:
    measured = bench.rounds.opening.open(MEASURE, "measure").id
    for step in ("seal", "run"):
        getattr(bench.rounds.lifecycle, step)(measured, f"{step} it")
    assert bench.wait(measured).complete
    bench.rounds.lifecycle.release(measured, "release it")
    answering = replace(NOISE, mechanism=STANDING)
    with pytest.raises(InvalidArgument, match=rf"the measurement {measured} of .* is released only at 20.* UTC$"):
        bench.opened(answering)
    bench.clock.move(60)
    newer(bench)
    charged = bench.charged()
    with pytest.raises(InvalidArgument, match="version 2 of 'shop' has no released measurement"):
        bench.opened(answering)
    with pytest.raises(InvalidArgument, match="names a measurement of version 1 of 'shop'"):
        bench.opened(replace(answering, options={"standing": measured}))
    assert bench.charged() == charged
    delete(bench)
    assert bench.rounds.dataset_views.charges("shop")[0][0].kind == "measurement"
    check(bench)


@pytest.mark.thin(4)
@pytest.mark.both_stores
def test_a_retired_dataset_takes_nothing_new_and_stays_verifiable(bench: Bench) -> None:
    released = bench.released(NOISE)
    retired = retire_dataset(bench.rounds.operations, "shop", "retire")
    assert retired.state is DatasetState.RETIRED
    for refused in (lambda: bench.opened(NOISE), lambda: bench.opened(MEASURE), lambda: newer(bench)):
        with pytest.raises(WrongState, match="the dataset is retired; it takes no new rounds, sessions"):
            refused()
    assert bench.rounds.analyst_views.results("ann", released.id, 0, 1)
    check(bench)


@pytest.mark.full
def test_a_deleted_dataset_is_forgotten_and_its_budget_is_not(bench: Bench) -> None:
    released = bench.released(NOISE)
    unfinished = bench.sealed(NOISE)
    with pytest.raises(WrongState, match=f"the round {unfinished} is about it, and its results are not out"):
        delete(bench)
    bench.rounds.lifecycle.abort(unfinished, "not wanted", "abort")
    spent = bench.charged()
    deleted = delete(bench)
    assert deleted.state is DatasetState.DELETED
    assert delete(bench) == deleted
    for refused in (lambda: delete(bench, "again"), lambda: bench.opened(NOISE), lambda: newer(bench)):
        with pytest.raises(WrongState, match="delete"):
            refused()
    with pytest.raises(WrongState, match="no longer kept"):
        bench.rounds.analyst_views.results("ann", released.id, 0, 1)
    with pytest.raises(WrongState, match="seed was destroyed"):
        bench.rounds.seeds.read(released.id, "auditor")
    with pytest.raises(AlreadyExists, match="is deleted; its name is not given again"):
        bench.rounds.datasets.register(
            "shop", "shop.csv", SCHEMA, CAP, CAP, "anew", people="new", accepted=LARGE_CAPS
        )
    with pytest.raises(InvalidArgument, match="people: must be 'same-as:shop'"):
        bench.rounds.datasets.register(
            "anew", "shop.csv", SCHEMA, CAP, CAP, "anew", people="new", accepted=LARGE_CAPS
        )
    again = bench.rounds.datasets.register("anew", "shop.csv", SCHEMA, None, None, "anew", people="same-as:shop")
    assert (again.account, bench.charged()) == ("shop", spent)
    check(bench)
    bench.restart()


@pytest.mark.full
def test_operators_see_what_each_round_took(bench: Bench) -> None:
    bench.released(NOISE)
    newer(bench)
    opened = bench.opened(NOISE)
    views = bench.rounds.dataset_views
    (standing,), token = views.page()
    assert (standing.dataset.version, standing.state, standing.source_kind, token) == (2, "active", "CSV", "")
    assert standing.data == views.history("shop").standing.data
    assert [each.name for each in standing.analysts] == ["analyst/shop/query/ann"]
    assert [(each.version, each.records) for each in views.history("shop").versions] == [
        (1, RECORDS),
        (2, RECORDS + 1),
    ]
    first, token = views.charges("shop", 1)
    last, end = views.charges("shop", 1, token)
    took = [(each.round_id == opened, each.dataset_version, each.charge) for each in (*first, *last)]
    assert (took, end) == ([(True, 2, "not reserved yet"), (False, 1, "spent")], "")
    assert last[0].data.divergence == pytest.approx(standing.data.divergence)
