"""What cannot be measured, or answered or started from, is refused by its field before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.dangers import ANY_BUDGET, LARGE_CAPS
from harness.rounds_bench import CAP, SCHEMA, TERMS, Bench, new_bench
from harness.session_terms import ONLINE
from harness.standing_rounds import MEASURE, STANDING, measured

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.rounds.dataset_versions import update_dataset


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    bench = new_bench(tmp_path, store_url, distinct_seeds=True)
    yield bench
    bench.stop()


@pytest.mark.parametrize(
    ("family", "refusal"),
    [
        ([["colour", "size", "colour"]], r"options.family\[0\]: names the attribute 'colour' twice"),
        ([["colour"], ["flavour"]], r"options.family\[1\]: names 'flavour', which is no attribute of the dataset"),
        ([[]], r"options.family\[0\]: must be a list of attributes"),
    ],
)
def test_a_family_that_cannot_be_measured_costs_nothing(bench: Bench, family: object, refusal: str) -> None:
    before = bench.charged()
    for ask in (bench.rounds.opening.plan, bench.opened):
        with pytest.raises(InvalidArgument, match=f"^{refusal}"):
            ask(replace(MEASURE, options={"family": family}))
    assert bench.charged() == before


def test_a_family_that_is_too_large_costs_nothing(bench: Bench) -> None:
    wide = Schema((*SCHEMA.attributes, *(Attribute(f"x{i}", tuple(map(str, range(2000)))) for i in range(2))))
    table = (bench.directory / "data" / "shop.csv").read_text().splitlines()
    table = [f"{line},x0,x1" if place == 0 else f"{line},0,0" for place, line in enumerate(table)]
    (bench.directory / "data" / "wide.csv").write_text("\n".join(table) + "\n")
    bench.rounds.datasets.register("wide", "wide.csv", wide, CAP, CAP, "wide", people="new", accepted=LARGE_CAPS)
    before = bench.rounds.budgets.accounts("wide")
    for ask in (bench.rounds.opening.plan, bench.opened):
        with pytest.raises(InvalidArgument, match=r"^options.family: is too large: .*cells"):
            ask(replace(MEASURE, dataset="wide"))
    assert bench.rounds.budgets.accounts("wide") == before


@pytest.mark.full
def test_measurements_that_cannot_be_answered_from_are_refused_before_anything_is_charged(bench: Bench) -> None:
    opening = bench.rounds.opening
    with pytest.raises(InvalidArgument, match=r"^options.standing: version 1 of .shop. has no released measure"):
        opening.plan(STANDING)
    waiting = bench.opened(MEASURE)
    measurement_of_others = "names a measurement of 'shop'"
    with pytest.raises(
        InvalidArgument, match=r"^options.standing: names the measurement .*, which is not released yet"
    ):
        opening.plan(replace(STANDING, options={"standing": waiting}))
    with pytest.raises(InvalidArgument, match=r"^options.standing: names 'nowhere', and there is no such round"):
        opening.plan(replace(STANDING, options={"standing": "nowhere"}))
    with pytest.raises(InvalidArgument, match=r"^options.standing: must be the id"):
        opening.plan(replace(STANDING, options={"standing": 3}))
    with pytest.raises(InvalidArgument, match=r"^options.standings: unknown"):
        opening.plan(replace(STANDING, options={"standing": measured(bench), "standings": 3}))
    usual = bench.opened()
    with pytest.raises(InvalidArgument, match=r"^options.standing: names the round .*, which is no measurement"):
        opening.plan(replace(STANDING, options={"standing": usual}))
    register = bench.rounds.datasets.register
    register("newer", "shop.csv", SCHEMA, None, None, "newer", people="same-as:shop")
    with pytest.raises(InvalidArgument, match=rf"^options.standing: {measurement_of_others} \(an older or newer"):
        opening.plan(replace(STANDING, dataset="newer", options={"standing": waiting}))


@pytest.mark.full
def test_budgets_that_are_not_there_refuse_a_measurement(bench: Bench) -> None:
    for number in range(2):
        measured(bench, replace(MEASURE, data_budget=Budget(8.0 + number, 1e-4)))
    before = bench.charged()
    with pytest.raises(BudgetExhausted, match="data/shop"):
        bench.opened(replace(MEASURE, data_budget=Budget(19.0, 1e-4), accepted=ANY_BUDGET))
    assert bench.charged() == before
    with pytest.raises(InvalidArgument, match=r"^shares: must be empty"):
        bench.opened(replace(MEASURE, shares=TERMS.shares))
    with pytest.raises(InvalidArgument, match=r"^analyst_budget: must not be set"):
        bench.opened(replace(MEASURE, analyst_budget=TERMS.analyst_budget))


@pytest.mark.full
def test_a_prior_that_is_not_there_is_refused_before_anything_is_charged(bench: Bench) -> None:
    wanted = replace(TERMS, options={"prior": "standing"})
    for terms in (wanted, replace(ONLINE, options={"prior": "standing"})):
        with pytest.raises(
            InvalidArgument, match=r"^options.standing: version 1 of .shop. has no released measure"
        ):
            bench.rounds.opening.open(terms, "request")
    measurement = measured(bench)
    bench.rounds.datasets.register("newer", "shop.csv", SCHEMA, None, None, "newer", people="same-as:shop")
    before = bench.charged()
    named = {"prior": "standing", "standing": measurement}
    with pytest.raises(InvalidArgument, match=r"^options.standing: .*an older or newer table of the same people"):
        bench.rounds.opening.open(replace(TERMS, dataset="newer", options=named), "request")
    with pytest.raises(
        InvalidArgument, match=r"^options.standing: version 1 of 'newer' has no released measurement"
    ):
        bench.rounds.opening.open(replace(wanted, dataset="newer"), "request")
    with pytest.raises(InvalidArgument, match=r"^options.standing: belongs to prior standing"):
        bench.rounds.opening.open(replace(TERMS, options={**named, "prior": "own"}), "request")
    assert bench.charged() == before


@pytest.mark.full
def test_a_prior_of_other_people_or_of_an_older_version_is_refused_before_anything_is_charged(bench: Bench) -> None:
    named = {"prior": "standing", "standing": measured(bench)}
    table = (bench.directory / "data" / "shop.csv").read_text()
    (bench.directory / "data" / "others.csv").write_text(table + "green,s\n")
    bench.rounds.datasets.register(
        "others", "others.csv", SCHEMA, CAP, CAP, "others", people="new", accepted=LARGE_CAPS
    )
    before = bench.charged()
    for terms in (TERMS, ONLINE):
        with pytest.raises(
            InvalidArgument, match=r"^options.standing: names a measurement of 'shop' \(other people"
        ):
            bench.opened(replace(terms, dataset="others", options=named))
    (bench.directory / "data" / "newer.csv").write_text(table + "red,s\n")
    update_dataset(bench.rounds.datasets, "shop", "newer.csv", None, "update")
    for terms in (TERMS, ONLINE):
        with pytest.raises(InvalidArgument, match=r"^options.standing: names a measurement of version 1 of 'shop'"):
            bench.opened(replace(terms, options=named))
    assert bench.charged() == before
