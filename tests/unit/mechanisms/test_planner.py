"""The planner's choice: a function of public things, never worse by its own rule than any feasible plan."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from harness.choices import assert_none_is_better, assert_none_is_expected_to_err_less
from harness.instance import SEED, instance, silent

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.checking import ANSWERING_SUMS
from equipoise_server.mechanisms.choice import NEAR, Candidate, by_promise
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import Comparison, compare, without_choice
from equipoise_server.mechanisms.pooled import plan as pooled_plan
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.mechanisms.registry import MECHANISMS, mechanism

pytestmark = pytest.mark.slow

SIZES = (16, 7, 15, 5, 2, 2, 10)  # of a public census table
RECORDS = 48_842


def setting(analysts: int, statements: int, queries: int, **changes: object) -> PublicParameters:
    """A round of equal shares over that table."""
    usual = PublicParameters(
        records=RECORDS,
        universe_size=math.prod(SIZES),
        shares=tuple(Share(f"analyst-{number}", statements, queries) for number in range(analysts)),
        unit="query",
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=SIZES,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


ROUND = setting(4, 50, 1000)

WINNERS = (
    (setting(3, 10, 10, universe_size=24, attributes=(2, 3, 4)), set(MECHANISMS)),
    (setting(1000, 5, 7450, unit="analyst"), {"pooled", "equilibrium"}),
    (setting(100, 5, 7450), {"pooled", "equilibrium"}),
    (setting(10, 5, 7450), {"pooled", "equilibrium"}),
    (setting(30, 40_000, 40_000, universe_size=2**26, attributes=()), {"projection"}),
)


@pytest.mark.sparse(4)
@pytest.mark.thin(5)
@pytest.mark.parametrize(("case", "names"), WINNERS)
def test_the_choice_among_the_real_mechanisms(case: PublicParameters, names: set[str]) -> None:
    found = compare(case, MECHANISMS)
    assert [each.mechanism for each in found.candidates] == list(MECHANISMS)
    assert found.chosen is not None
    assert found.chosen.mechanism in names
    assert_none_is_expected_to_err_less(found.chosen, found.candidates)
    assert found.chosen.mechanism in why(found)
    promised = compare(case, MECHANISMS, rule=by_promise)
    assert promised.chosen is not None
    assert_none_is_better(promised.chosen, promised.candidates)
    assert mechanism("auto_by_promise").plan(case) == promised.plan
    for each in found.candidates:
        if each.plan is not None:
            assert each.plan == MECHANISMS[each.mechanism].plan(case)
            assert each.plan.mechanism == each.mechanism
    assert mechanism("auto").plan(case) == found.plan


@pytest.mark.nightly
def test_many_small_tables_are_measured_by_their_residuals() -> None:
    """All triples of 16 binary attributes: noise on each would measure single attributes 105 times."""
    triples, bits = 560, 16
    case = setting(1, triples, 8 * triples, records=21_574, universe_size=2**bits, attributes=(2,) * bits)
    found = compare(replace(case, data_budget=Budget(1.0, 1 / 21_574**2)), MECHANISMS)
    plans = {each.mechanism: each.plan for each in found.candidates if each.plan is not None}
    pooled = plans["pooled"]
    assert found.plan == pooled
    assert PooledParameters.from_json(pooled.parameters).residuals is not None
    assert pooled.analyst_cost == Cost()
    assert pooled.expected_error < 0.002
    assert pooled.max_half_width <= 0.35 * plans["gaussian"].max_half_width
    assert plans["projection"].expected_error > pooled.expected_error * (1 + NEAR)


def test_on_a_wide_table_triples_are_measured_rather_than_guessed_from_pairs() -> None:
    """64 triples of the 13 attributes of a table of 48,842 records, of which a prior measures pairs.

    The prior is expected to err less in the mean, but by less than such expectations are off, and nothing bounds
    what it errs by at most. On Adult that is twice as much.
    """
    sizes, records = (9, 16, 7, 15, 6, 5, 2, 42, 2, 10, 13, 6, 10), 48_842
    share = Share("ana", 64, 85_267, 128, ways=3)
    case = setting(1, 1, 1, records=records, universe_size=math.prod(sizes), attributes=sizes, shares=(share,))
    found = compare(replace(case, data_budget=Budget(1.0, 1 / records**2)), MECHANISMS)
    assert found.plan.mechanism == "projection"
    assert found.plan.max_half_width < 0.01
    assert "only the former gives every answer an interval" in why(found)


@pytest.mark.parametrize(("more", "taken"), [(0.99 * NEAR, True), (1.01 * NEAR, False)])
def test_residuals_that_err_nearly_as_little_are_measured_as_they_cost_the_analysts_nothing(
    more: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = setting(100, 5, 3000)
    residuals = mechanism("pooled").plan(replace(case, options={"residuals": 1})).expected_error
    monkeypatch.setattr(pooled_plan, "tables_expected_error", lambda *_: residuals / (1 + more))
    plan = mechanism("pooled").plan(case)
    assert (PooledParameters.from_json(plan.parameters).residuals is not None) is taken
    assert (plan.analyst_cost == Cost()) is taken


def test_few_large_tables_are_measured_one_by_one() -> None:
    plan = mechanism("pooled").plan(setting(100, 5, 3000))
    assert PooledParameters.from_json(plan.parameters).residuals is None
    forced = mechanism("pooled").plan(setting(100, 5, 3000, options={"residuals": 1}))
    assert forced.expected_error > plan.expected_error


def test_one_mechanism_alone_is_planned_and_not_called_a_choice() -> None:
    alone = without_choice(MECHANISMS["gaussian"], ROUND)
    assert alone.plan == MECHANISMS["gaussian"].plan(ROUND)
    assert why(alone) == ""
    with pytest.raises(InvalidArgument, match=r"^options\.luck: unknown"):
        without_choice(MECHANISMS["gaussian"], replace(ROUND, options={"luck": 1}))


@pytest.mark.full
def test_auto_runs_what_it_chose() -> None:
    case = instance(analysts=2, predicates=5)
    auto = mechanism("auto")
    made = auto.plan(case.setting)
    assert made.mechanism != "auto"
    outcomes = [
        each.run(
            case.setting, made, DenseCounts(case.histogram, case.setting.attributes), case.workloads, SEED, silent
        )
        for each in (auto, mechanism(made.mechanism))
    ]
    for name in case.workloads:
        first, second = (outcome.answers[name].values.tobytes() for outcome in outcomes)
        assert first == second


def test_a_forced_parameter_leaves_the_mechanisms_that_know_it() -> None:
    found = compare(replace(instance().setting, options={"play": "mixed"}), MECHANISMS)
    assert found.chosen is not None
    assert found.chosen.mechanism == "equilibrium"


def test_a_round_for_sums_is_given_a_mechanism_that_answers_them() -> None:
    usual = compare(ROUND, MECHANISMS)
    found = compare(replace(ROUND, options={"sums": True}), MECHANISMS)
    counting = {each.mechanism for each in found.candidates if each.refusal and "options.sums" in str(each.refusal)}
    assert counting == MECHANISMS.keys() - ANSWERING_SUMS
    priced = {each.mechanism: each.plan for each in found.candidates if each.mechanism != "pooled"}
    assert priced == {
        each.mechanism: None if each.mechanism in counting else each.plan
        for each in usual.candidates
        if each.mechanism != "pooled"
    }
    needless = compare(replace(ROUND, options={"sums": False}), MECHANISMS)
    assert [each.plan for each in needless.candidates] == [each.plan for each in usual.candidates]


def test_sums_are_priced_as_sums_where_cells_are_fitted() -> None:
    # Means of 41 bins by 16 and 12 groups: a sum adds up 42 cells of a table, which err far less each.
    setting = PublicParameters(
        records=336_776,
        universe_size=16 * 12 * 42,
        shares=(Share("a", 2, 2 * 16 * 12, 4, ways=3),),
        unit="query",
        data_budget=Budget(1.0, 1e-11),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=(16, 12, 42),
        ordered=(2,),
    )
    plans = [
        {each.mechanism: each.plan for each in compare(given, MECHANISMS).candidates}
        for given in (setting, replace(setting, options={"sums": True}))
    ]
    of_cells, of_sums = (told["pooled"] for told in plans)
    noise = plans[1]["gaussian"]
    assert of_cells
    assert of_sums
    assert noise
    # Measured on the flights of 2013: 4.4 minutes, where `gaussian` errs by 2.04 (docs/derived.md).
    assert of_cells.expected_error < noise.expected_error / 10
    assert noise.expected_error * 1.5 < of_sums.expected_error < noise.expected_error * 3
    by_tables = compare(replace(setting, options={"sums": True, "residuals": 0}), MECHANISMS)
    (told,) = [each.plan for each in by_tables.candidates if each.mechanism == "pooled"]
    assert told
    assert told.expected_error > noise.expected_error


@pytest.mark.parametrize(
    ("changes", "kind", "named"),
    [
        ({"options": {"sums": 1}}, InvalidArgument, "options.sums: must be true or false"),
        ({"unit": "dataset"}, InvalidArgument, "unit: "),
        (
            {"options": {"luck": 1}},
            InvalidArgument,
            "options.luck: unknown to every mechanism: .*rounds.*; pooled has .*ways.*; small_db has database_size",
        ),
        ({"options": {"data_rate": -1}}, InvalidArgument, "options.data_rate: must be"),
        ({"data_budget": Budget(1.0, 1e-300)}, BudgetExhausted, "data_budget: "),
    ],
)
def test_what_no_mechanism_can_do_is_refused_once(
    changes: dict[str, object], kind: type[Exception], named: str
) -> None:
    with pytest.raises(kind, match=f"^{named}"):
        mechanism("auto").plan(replace(ROUND, **changes))  # type: ignore[arg-type]


def test_different_refusals_are_told_together() -> None:
    refused = (
        Candidate("one", None, InvalidArgument("universe_size", "is too large")),
        Candidate("two", None, BudgetExhausted("data_budget: too little")),
        Candidate("three", None, InvalidArgument("options.luck", "unknown")),
    )
    with pytest.raises(InvalidArgument) as caught:
        _ = Comparison(ROUND, refused, None, by_promise).plan
    expected = "mechanism: none can serve this: one: universe_size: is too large; two: data_budget: too little"
    assert caught.value.message == expected


def test_expectations_are_stated_to_digits_that_every_machine_finds() -> None:
    """A replay compares plans exactly; the last digits of powers differ between machines."""
    for name, each in MECHANISMS.items():
        try:
            made = each.plan(setting(4, 50, 1000))
        except InvalidArgument:
            continue
        assert made.expected_error == float(f"{made.expected_error:.6g}"), name
        assert made.seconds == float(f"{made.seconds:.6g}"), name
