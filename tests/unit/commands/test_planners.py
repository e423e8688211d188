"""What operators see of the planner: an option that needs something to choose, and a table of the candidates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equipoise.commands.planners import ChooseBy, explained, print_candidates
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.plan_choices import Forecast, PlanCandidate
from equipoise.model.rounds import AUTO, AUTO_BY_PROMISE

SERVES = PlanCandidate(
    mechanism="gaussian",
    refusal="",
    beyond_limits="would take 9,999 s, more than 3,600 s",
    forecast=Forecast(
        expected_error=0.00123,
        max_half_width=0.25,
        max_uncertified=5,
        data_budget=Budget(0.75, 1e-9),
        analyst_budget=None,
        seconds=float("inf"),
        memory_bytes=2**30,
    ),
)
CANNOT = PlanCandidate(mechanism="pooled", refusal="unit: must be query", beyond_limits="", forecast=None)


def test_the_promise_is_gone_by_only_where_there_is_something_to_choose() -> None:
    assert ChooseBy.PROMISE.mechanism(AUTO) == AUTO_BY_PROMISE
    assert ChooseBy.EXPECTED.mechanism("gaussian") == "gaussian"
    with pytest.raises(InvalidArgument, match=r"^--choose-by: needs --mechanism auto; gaussian leaves nothing"):
        ChooseBy.PROMISE.mechanism("gaussian")


def test_every_candidate_is_shown_or_said_to_be_unable(capsys: pytest.CaptureFixture[str]) -> None:
    print_candidates((SERVES, CANNOT), "gaussian", 100)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "gaussian" in line]
    assert " ".join(row.split()) == "> gaussian 0.00123 0.25 5.00% 0.75 - 2,778 h or more 1.0 GiB"
    told = list(explained((SERVES, CANNOT)))
    assert ("eps_D", "what the round costs the people in the table") in told
    assert ("cannot", "pooled: unit: must be query") in told
    assert ("beyond", "gaussian: would take 9,999 s, more than 3,600 s") in told


@pytest.mark.parametrize("largest", [0.00004, 0.004965, 0.12345, 1.0])
def test_no_expected_error_is_shown_above_the_largest_half_width(
    largest: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert SERVES.forecast is not None
    for expected in (largest, 0.999 * largest, 0.1 * largest):
        forecast = replace(SERVES.forecast, expected_error=expected, max_half_width=largest)
        print_candidates([replace(SERVES, forecast=forecast)], "gaussian", 100)
        (row,) = [line for line in capsys.readouterr().out.splitlines() if "gaussian" in line]
        shown = [float(cell) for cell in row.split()[2:4]]
        assert 0 < shown[0] <= shown[1]
