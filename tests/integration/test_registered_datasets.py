"""Datasets of rounds: registered once, in the data directory, with budgets of their own, and unchanged since."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, RECORDS, SCHEMA, TERMS, Bench, write_table
from harness.session_terms import ONLINE

from equipoise.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
)
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState, Share
from equipoise_server.rounds.dataset_endings import retire_dataset
from equipoise_server.rounds.dataset_versions import update_dataset

DATA = "data/shop"


def test_only_registered_analysts_and_datasets(bench: Bench) -> None:
    stranger = replace(TERMS, shares=(*TERMS.shares, Share("eve", 1, 1)))
    with pytest.raises(InvalidArgument, match=r"shares\[2\].analyst: 'eve' is not a registered analyst"):
        bench.rounds.opening.plan(stranger)
    with pytest.raises(NotFound, match="there is no such dataset"):
        bench.rounds.opening.plan(replace(TERMS, dataset="elsewhere"))
    with pytest.raises(InvalidArgument, match="unit"):
        bench.rounds.opening.plan(replace(TERMS, unit="table"))


@pytest.mark.thin(2)
@pytest.mark.parametrize("source", ["", "../equipoise.db", "/etc/passwd", "missing.csv", "."])
def test_sources_stay_inside_the_data_directory(bench: Bench, source: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^source: "):
        bench.rounds.datasets.register("other", source, SCHEMA, CAP, CAP, "other", accepted=LARGE_CAPS)


KNOWN = "people: must be 'same-as:shop', as this is the table of the dataset 'shop' already"


@pytest.mark.full
def test_a_table_gets_new_budgets_only_where_that_is_said(bench: Bench) -> None:
    register, data = bench.rounds.datasets.register, bench.directory / "data"
    (data / "copy.csv").write_bytes((data / "shop.csv").read_bytes())
    (data / "link.csv").symlink_to(data / "shop.csv")
    header, *rows = (data / "shop.csv").read_text().splitlines()
    (data / "turned.csv.gz").write_bytes(gzip.compress("\n".join([header, *reversed(rows)]).encode()))
    write_table(data / "..", RECORDS + 1)
    (data / "../shop.csv").rename(data / "longer.csv")
    retire_dataset(bench.rounds.operations, "shop", "retire")
    before = bench.rounds.budgets.journal()
    for source in ("shop.csv", "copy.csv", "link.csv", "turned.csv.gz"):
        for answer in ("", "new"):
            with pytest.raises(InvalidArgument, match=KNOWN):
                register("again", source, SCHEMA, CAP, CAP, "again", people=answer, accepted=LARGE_CAPS)
    with pytest.raises(InvalidArgument, match="new_budgets: must not be set"):
        register(
            "again", "longer.csv", SCHEMA, CAP, CAP, "again", people="new", new_budgets=True, accepted=LARGE_CAPS
        )
    assert bench.rounds.budgets.journal() == before
    # Rows are recognised by their digest, also where the registered file is gone.
    (data / "copy.csv").rename(data / "moved.csv")
    (data / "link.csv").unlink()
    (data / "shop.csv").unlink()
    for source in ("moved.csv", "turned.csv.gz"):
        with pytest.raises(InvalidArgument, match=KNOWN):
            register("again", source, SCHEMA, CAP, CAP, "again", people="new", accepted=LARGE_CAPS)
    assert (
        register("longer", "longer.csv", SCHEMA, CAP, CAP, "longer", people="new", accepted=LARGE_CAPS).records
        == RECORDS + 1
    )
    for name, source in (("again", "moved.csv"), ("once more", "turned.csv.gz")):
        anew = register(
            name.replace(" ", "-"),
            source,
            SCHEMA,
            CAP,
            CAP,
            name,
            people="new",
            new_budgets=True,
            accepted=LARGE_CAPS,
        )
        again = register(
            anew.name, source, SCHEMA, CAP, CAP, name, people="new", new_budgets=True, accepted=LARGE_CAPS
        )
        assert again == anew
    with pytest.raises(AlreadyExists):
        register("again", "moved.csv", SCHEMA, CAP, CAP, "again", accepted=LARGE_CAPS)
    opened = [json.loads(entry.events).get("beside") for entry in bench.rounds.budgets.journal()[0]]
    assert opened == [None, None, ["data/shop"], ["data/again", "data/shop"]]
    # What is journaled besides changes nothing of how the accounts are recomputed.
    bench.restart()


def test_datasets_are_registered_once_with_sensible_caps(bench: Bench) -> None:
    with pytest.raises(AlreadyExists):
        bench.rounds.datasets.register("shop", "shop.csv", SCHEMA, CAP, CAP, "other", accepted=LARGE_CAPS)
    with pytest.raises(InvalidArgument, match=r"analyst_cap\.delta"):
        bench.rounds.datasets.register(
            "other", "shop.csv", SCHEMA, CAP, Budget(1.0, 0.0), "other", accepted=LARGE_CAPS
        )
    with pytest.raises(InvalidArgument, match="name"):
        bench.rounds.datasets.register("a/b", "shop.csv", SCHEMA, CAP, CAP, "other", accepted=LARGE_CAPS)
    standings, token = bench.rounds.dataset_views.page()
    assert ([each.dataset.name for each in standings], token) == (["shop"], "")


def test_what_needs_no_table_is_refused_before_it_is_read(bench: Bench) -> None:
    """A table that cannot be read shows it: whoever has read it says so."""
    register = bench.rounds.datasets.register
    (bench.directory / "data" / "empty.csv").touch()
    with pytest.raises(InvalidArgument, match="table: has no header line"):
        register("other", "empty.csv", SCHEMA, CAP, CAP, "read", people="new", accepted=LARGE_CAPS)
    with pytest.raises(AlreadyExists, match="a dataset named 'shop' is already registered"):
        register("Shop", "empty.csv", SCHEMA, CAP, CAP, "taken", people="new", accepted=LARGE_CAPS)
    with pytest.raises(InvalidArgument, match="people: there is no dataset 'nowhere'"):
        register("other", "empty.csv", SCHEMA, None, None, "nobody", people="same-as:nowhere")


@pytest.mark.full
def test_a_table_that_changed_is_noticed_before_anything_is_charged(bench: Bench) -> None:
    table = bench.directory / "data" / "shop.csv"
    round_id, whole = bench.sealed(), table.read_bytes()
    rows = table.read_text().splitlines()
    changed = [*rows[:-1], "red,s" if rows[-1] != "red,s" else "red,m"]
    for run, left in enumerate((rows[:-1], changed)):
        table.write_text("\n".join(left) + "\n")
        with pytest.raises(InvalidArgument) as refused:
            bench.rounds.lifecycle.run(round_id, f"run {run}")
        assert refused.value.message == (
            "table: the table of version 1 of the dataset 'shop' has changed since it was registered: the bytes of "
            "its files are others. Put it back as it was, or register what it holds now as another version: "
            "equipoise operator dataset update shop"
        )
        assert bench.state(round_id) is RoundState.SEALED
    with pytest.raises(InvalidArgument, match="has changed since it was registered"):
        bench.sessions.open(ONLINE, "open")
    bench.rounds.lifecycle.abort(round_id, "the table has changed", "abort")
    assert all(spent == committed == 0 for spent, committed in bench.charged().values())
    later = bench.sealed()
    table.write_bytes(whole)
    bench.rounds.lifecycle.run(later, "run again")
    assert bench.wait(later).complete


def test_a_table_that_changed_after_its_charge_is_not_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it had changed between the look at it and the worker's reading.
    monkeypatch.setattr(bench.rounds.datasets.__class__, "check_unchanged", lambda *_: None)
    round_id = bench.sealed()
    write_table(bench.directory / "data", RECORDS - 1)
    bench.rounds.lifecycle.run(round_id, "run")
    progress = bench.wait(round_id)
    assert not progress.complete
    assert progress.phase == "failed: the table has 399 records, but had 400 when it was registered"
    assert bench.state(round_id) is RoundState.RUNNING
    write_table(bench.directory / "data")
    table = bench.directory / "data" / "shop.csv"
    rows = table.read_text().splitlines()
    table.write_text("\n".join([*rows[:-1], "red,s" if rows[-1] != "red,s" else "red,m"]) + "\n")
    bench.rounds.lifecycle.run(round_id, "run the changed one")
    told = "failed: the table's records are not those that were registered"
    assert bench.wait(round_id).phase == told
    write_table(bench.directory / "data")
    bench.rounds.lifecycle.run(round_id, "run again")
    assert bench.wait(round_id).complete


@pytest.mark.full
def test_a_file_written_anew_is_another_version_even_with_the_same_rows(bench: Bench) -> None:
    table = bench.directory / "data" / "shop.csv"
    header, *rows = table.read_text().splitlines()
    table.write_text("\n".join([header, *reversed(rows)]) + "\n")
    round_id = bench.sealed()
    with pytest.raises(InvalidArgument, match="the bytes of its files are others"):
        bench.rounds.lifecycle.run(round_id, "run")
    assert update_dataset(bench.rounds.datasets, "shop", "", None, "update").version == 2
    with pytest.raises(InvalidArgument, match="holds what version 2 of 'shop' holds already"):
        update_dataset(bench.rounds.datasets, "shop", "", None, "update again")
    anew = bench.sealed()
    bench.rounds.lifecycle.run(anew, "run anew")
    assert bench.wait(anew).complete


@pytest.mark.parametrize("left", [None, "colour\nred\n", "colour,size,size\nred,s,s\n", ""])
def test_a_file_that_is_gone_or_lacks_a_column_leaves_the_round_sealed_and_nothing_spent(
    bench: Bench, left: str | None
) -> None:
    round_id = bench.sealed()
    table = bench.directory / "data" / "shop.csv"
    table.unlink()
    if left is not None:
        table.write_text(left)
    with pytest.raises(InvalidArgument, match=r"source: there is no such file|named 'size'|has no header line"):
        bench.rounds.lifecycle.run(round_id, "run")
    assert bench.state(round_id) is RoundState.SEALED
    bench.rounds.lifecycle.abort(round_id, "the table is gone", "abort")
    assert all(spent == committed == 0 for spent, committed in bench.charged().values())
