"""`equipoise-server plan`: numbers in, a comparison and a choice out; a refusal is one line naming its option."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost
from equipoise.model.accounts import counted_digits
from equipoise_lab.planning.request import MAX_ANALYSTS, PlanRequest
from equipoise_server.cli import main
from equipoise_server.ledger.caps import Cap, at_order, fits, limits
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

USUAL = {"--records": "5000", "--universe": "6x4x3", "--queries": "60", "--analysts": "3"}


def run(capsys: pytest.CaptureFixture[str], *more: str, **changes: str | None) -> tuple[int, str, str]:
    """Exit code, output, errors of the command with some of its usual options changed or, by None, left out."""
    options = USUAL | {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    given = [part for name, value in options.items() if value is not None for part in (name, value)]
    with pytest.raises(SystemExit) as ended:
        main(["plan", *given, *more])
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.out, shown.err


def planned(capsys: pytest.CaptureFixture[str], **changes: str | None) -> Any:
    """The JSON object of a run that succeeds."""
    code, out, err = run(capsys, "--json", **changes)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


def request(**changes: str | None) -> PlanRequest:
    """The same request without a command line."""
    options: dict[str, Any] = {name.removeprefix("--"): value for name, value in USUAL.items()} | changes
    usual = PlanRequest(records="", universe="", queries="")
    return replace(usual, **options)


@pytest.mark.slow
def test_json_holds_every_mechanism_and_the_choice_that_auto_makes(capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, statements="30")
    assert (found["records"], found["universe_size"], found["attributes"]) == (5000, 72, [6, 4, 3])
    assert (found["analysts"], found["statements"], found["queries"]) == (3, 30, 60)
    assert found["sensitivity"] == 60
    assert found["data_budget"] == {"epsilon": 1.0, "delta": 1 / 5000**2}
    assert [each["mechanism"] for each in found["mechanisms"]] == list(MECHANISMS)
    for each in found["mechanisms"]:
        assert each["feasible"] == (each["why_not"] is None)
        if each["feasible"]:
            assert each["beyond_limits"] is None
            assert 0 < each["max_half_width"] <= each["alpha"] <= 1
            assert 0 <= each["max_uncertified"] <= 60
            assert each["seconds"] > 0
            assert each["memory_bytes"] > 2**20
            assert each["data_cost"]["epsilon"] <= 1
            assert each["analyst_cost"]["epsilon"] <= 1
            assert each["parameters"]
    plan = compare(request(statements="30").setting(), MECHANISMS).plan
    (chosen,) = [each for each in found["mechanisms"] if each["mechanism"] == found["choice"]]
    assert found["choice"] == plan.mechanism
    assert chosen["parameters"] == json.loads(plan.parameters)
    assert chosen["max_half_width"] == plan.max_half_width


def test_people_read_a_table_with_the_choice_marked(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, universe="72", eps_analyst="inf")
    # No server opens a round that leaves its analysts unprotected.
    assert code == 1
    assert "accepted     no: --eps-analyst: must be finite for a round, which protects its analysts" in out
    for part in (
        "expected",
        "because",
        "equilibrium",
        "multiplicative_weights",
        "not protected",
        "cannot",
        "pooled: --universe: ",
        "> ",
    ):
        assert part in out
    assert "60 queries in 60 statements by 3 analysts, about 5,000 records of 72 possible ones" in out


def test_numbers_are_dealt_out_or_given_one_by_one() -> None:
    def shares(**changes: str | None) -> list[tuple[int, int, int]]:
        dealt = request(**changes).shares(72)
        assert [share.analyst for share in dealt] == [f"analyst-{number}" for number in (1, 2, 3)]
        return [(share.statements, share.queries, share.sensitivity) for share in dealt]

    assert shares(queries="8", statements="5") == [(2, 3, 0), (2, 3, 0), (1, 2, 0)]
    assert shares(queries="5,6,7", analysts=None) == [(5, 5, 0), (6, 6, 0), (7, 7, 0)]
    assert shares(queries="10^2,6,7", statements="3", sensitivity="2") == [(1, 100, 2), (1, 6, 2), (1, 7, 2)]
    assert shares(statements="2,3,4", sensitivity="4,3,8") == [(2, 20, 4), (3, 20, 3), (4, 20, 8)]


def test_a_declared_sensitivity_lowers_the_noise() -> None:
    plans = [MECHANISMS["gaussian"].plan(request(sensitivity=each).setting()) for each in (None, "20")]
    assert plans[1].max_half_width < 0.8 * plans[0].max_half_width


def test_one_mechanism_alone_is_planned_where_it_is_forced(capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, mechanism="laplace")
    assert found["choice"] == "laplace"
    assert len(found["mechanisms"]) == 1


def test_none_that_can_is_told_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--json", mechanism="histogram", universe="2^30")
    (only,) = json.loads(out.splitlines()[-1])["mechanisms"]
    assert code == 1
    assert "about 2^30 possible records; histogram needs a list of all of them" in only["why_not"]
    code, out, _ = run(capsys, mechanism="histogram", universe="2^30")
    assert code == 1
    assert "no mechanism can serve" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"eps_analyst": "inf"}, "--eps-analyst: must be finite for a round, which protects its analysts"),
        (
            {"eps_analyst": "inf", "mechanism": "online_private", "eps_data": "4"},
            "--eps-analyst: must be finite for a session by turns, which protects its analysts",
        ),
        (
            {"universe": "x".join(["2"] * 257), "mechanism": "laplace"},
            "--universe: has 257 attributes, and a table has at most 256",
        ),
        (
            {"universe": "65537x2", "mechanism": "laplace"},
            "--universe: an attribute has at most 65,536 categories",
        ),
        ({"data_cap": "0.9/1e-6"}, "data: no budget left for this round: it exceeds the limit of divergence."),
        (
            {"analyst_cap": "0.9/1e-6", "mechanism": "equilibrium", "set": "prior=none"},
            "each analyst: no budget for this round: only the worst round counts",
        ),
    ],
)
def test_a_plan_that_no_server_accepts_is_shown_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], changes: dict[str, str], named: str
) -> None:
    """The comparison is whole, with its choice; what no server or no empty account would take is said besides."""
    code, out, err = run(capsys, "--json", **changes)
    assert code == 1
    assert not err.strip()
    found = json.loads(out.splitlines()[-1])
    assert found["choice"]
    assert found["refusal"].startswith(named)
    code, out, _ = run(capsys, **changes)
    assert code == 1
    assert f"accepted     no: {named}" in out


def test_a_plan_shows_what_it_counts_of_both_limits_and_how_often_it_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """So many rounds fit on an empty account, by the ledger's own rule, and not one more."""
    given = {"mechanism": "gaussian", "data_cap": "3/1e-6", "analyst_cap": "2/1e-6/20", "unit": "analyst"}
    found = planned(capsys, **given)
    data, analyst = found["accounts"]
    assert found["refusal"] is None
    cap = at_order("cap", Cap(3.0, 1e-6))
    limit = limits(cap)
    assert (data["order"], analyst["order"]) == (cap.order, 20)
    assert (data["max_divergence"], data["max_delta"]) == (limit.divergence / RHO_UNIT, 5e-7)
    each = Cost(divergence=round(data["divergence"] * RHO_UNIT), delta=round(data["delta"] * DELTA_UNIT))
    often = data["rounds"]
    assert often > 1
    for times, fitting in ((often, True), (often + 1, False)):
        assert fits(Cost(divergence=times * each.divergence, delta=times * each.delta), cap, limit) is fitting
    assert (analyst["divergence"], analyst["rounds"]) == (0, None)
    code, out, _ = run(capsys, **given)
    assert code == 0
    assert f"counts on    data: divergence {counted_digits(data['divergence'])} of " in out
    assert f"such rounds that fit: {often}" in out
    assert "accepted     yes" in out


@pytest.mark.full
def test_the_largest_sizes_are_planned(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"universe": "10^99", "queries": "10^9", "analysts": str(MAX_ANALYSTS), "records": "10^6"}
    code, out, _ = run(capsys, "--json", **sizes)
    found = json.loads(out.splitlines()[-1])
    assert code == 0
    assert found["universe_size"] == 10**99
    assert found["queries"] == 10**9
    assert found["choice"] is not None
    for each in found["mechanisms"]:
        assert each["beyond_limits"] or each["why_not"]


@pytest.mark.slow
def test_a_declared_support_lowers_what_histogram_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert [share.support for share in request(support="9,1,36").shares(72)] == [9, 1, 36]
    plans = [MECHANISMS["histogram"].plan(request(support=each).setting()) for each in (None, "36", "9", "9,9,4")]
    assert plans[1] == plans[0]
    assert plans[2].max_half_width < 0.8 * plans[0].max_half_width
    assert plans[3] == replace(plans[2], expected_error=plans[3].expected_error)
    assert [planned(capsys, support=each)["support"] for each in (None, "9")] == [36, 9]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"records": "many"}, "--records: must be a whole number"),
        ({"records": "-5"}, "--records: must be a whole number"),
        ({"records": "0"}, "--records: must be at least 1"),
        ({"records": "10^13"}, "--records: must lie between"),
        ({"universe": "6x4x"}, "--universe: must be a whole number"),
        ({"universe": "6x0"}, "--universe: must be at least 1"),
        ({"queries": "1.5"}, "--queries: must be a whole number"),
        ({"queries": "2"}, "--queries: must be at least 1 for each of 3 analysts"),
        ({"queries": "5,0,5"}, "--queries: must be at least 1 for each of 3 analysts"),
        ({"queries": "20,40"}, "--queries: has 2 numbers for 3 analysts"),
        (
            {"queries": "10^13"},
            "--analysts, --queries, --statements, --sensitivity, --support: shares[0].statements",
        ),
        ({"analysts": "0"}, "--analysts: must lie between 1 and"),
        ({"analysts": str(MAX_ANALYSTS + 1), "queries": "10^9"}, "--analysts: must lie between 1 and"),
        ({"statements": "61"}, "--statements: analyst 1 would have 21 statements but 20 queries"),
        ({"statements": "5,5,5,5"}, "--statements: has 4 numbers for 3 analysts"),
        ({"statements": "5,5,21"}, "--statements: analyst 3 would have 21 statements"),
        ({"sensitivity": "41"}, "--sensitivity: of analyst 1 must lie between 1 and 40"),
        ({"sensitivity": "0"}, "--sensitivity: of analyst 1 must lie between 1 and 40"),
        ({"sensitivity": "40,40,99"}, "--sensitivity: of analyst 3 must lie between 1 and 40"),
        ({"sensitivity": "40,40"}, "--sensitivity: has 2 numbers for 3 analysts"),
        ({"support": "0"}, "--support: must lie between 1 and the universe's 72 records"),
        ({"support": "1,1,73"}, "--support: must lie between 1 and the universe's 72 records"),
        ({"support": "1,1"}, "--support: has 2 numbers for 3 analysts"),
        ({"unit": "dataset"}, "--unit: must be"),
        ({"eps_data": "0"}, "--eps-data: must"),
        ({"eps_data": "nan"}, "--eps-data: must"),
        ({"eps_data": "51"}, "--eps-data, --delta-data: must have"),
        ({"delta_data": "0"}, "--delta-data: must lie between 0 and 1"),
        ({"delta_data": "1e-18"}, "--eps-data, --delta-data: must have a larger delta"),
        ({"eps_analyst": "-1"}, "--eps-analyst: must"),
        ({"delta_analyst": "nan"}, "--delta-analyst: must lie between 0 and 1"),
        ({"beta": "1"}, "--beta: must"),
        ({"beta": "nan"}, "--beta: must"),
        ({"mechanism": "oracle"}, "--mechanism: unknown"),
        ({"data_cap": "3"}, "--data-cap: must be EPSILON/DELTA[/ORDER], such as 3/1e-11, not '3'"),
        ({"data_cap": "nan/1e-6"}, "--data-cap: must be EPSILON/DELTA[/ORDER]"),
        ({"data_cap": "3/2"}, "--data-cap.delta: must be above 0 and below 1"),
        ({"data_cap": "3/1e-11/2"}, "--data-cap: converting at order 2 takes all of the cap; the usual order"),
        ({"analyst_cap": "3/1e-6/9"}, "--analyst-cap: has an order, but only the worst round counts"),
    ],
)
def test_refusals_are_one_line_that_names_the_option(
    capsys: pytest.CaptureFixture[str], changes: dict[str, str], named: str
) -> None:
    code, out, err = run(capsys, **changes)
    assert code == 1
    assert out == ""
    (line,) = [line for line in err.splitlines() if line.strip()]
    assert line.startswith(f"error: {named}")


@pytest.mark.slow
def test_sessions_are_planned_for_their_length(capsys: pytest.CaptureFixture[str]) -> None:
    """By turns a share can ask once in each; at once statements count in all, and nobody is protected."""
    by_turns = planned(capsys, statements="30", mechanism="online_private", length="40", eps_data="4")
    assert by_turns["choice"] == "online_private"
    assert by_turns["analyst_budget"] == {"epsilon": 1.0, "delta": 1e-6}
    longer = planned(capsys, statements="30", mechanism="online_private", length="400000", eps_data="4")
    assert longer["mechanisms"][0]["seconds"] > by_turns["mechanisms"][0]["seconds"]
    at_once = planned(capsys, statements="30", mechanism="online", eps_data="4")
    assert (at_once["choice"], at_once["analyst_budget"]) == ("online", None)
    for problem, changes in (
        ("--length: is of sessions", {"length": "40"}),
        ("--length: must be a whole number", {"length": "0", "mechanism": "online"}),
    ):
        code, out, err = run(capsys, **changes)
        assert code == 1
        assert problem in out + err
