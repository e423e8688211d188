"""What holds for what every mechanism delivers: in intervals, replayable, and nobody's business but one's own."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import half_widths
from harness.mechanism_cases import (
    ASKED,
    CASES,
    NAMES,
    OPTIONS,
    SEED,
    TABLE,
    UNITS,
    answered,
    case_of,
    delivered,
    plan_for,
    run,
    setting_for,
    spread,
)

from equipoise.accounting import Cost
from equipoise.model.results import AnswerMethod
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.predicates import Among, attribute
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.registry import MECHANISMS

every_mechanism = pytest.mark.parametrize("name", NAMES)
every_unit = pytest.mark.parametrize("unit", UNITS)
every_case = pytest.mark.parametrize("case", CASES)


@pytest.mark.thin(4)
@pytest.mark.slow
@every_mechanism
@every_unit
@every_case
def test_truths_lie_in_their_intervals_and_these_are_as_promised(name: str, unit: str, case: str) -> None:
    outcome, plan, given = run(name, case, unit), plan_for(name, case, unit), CASES[case]
    assert outcome.answers.keys() == given.workloads.keys()
    uncertified = 0
    for analyst, answers in outcome.answers.items():
        workload = given.workloads[analyst]
        assert answers.values.shape == (workload.query_count,)
        answers.check()
        possible = np.clip(answers.values, 0, 1 << GRID_BITS)
        certified, unbiased = answers.certified, np.isin(answers.methods, UNBIASED)
        assert ((answers.values == possible) | unbiased).all()
        assert ((answers.lows <= possible) & (possible <= answers.highs))[certified].all()
        assert half_widths(answers).max(initial=0) <= plan.max_half_width
        assert not answers.misses(workload.counts(given.histogram) / given.setting.records).any()
        uncertified += int(np.count_nonzero(~certified))
    assert uncertified <= plan.max_uncertified


UNBIASED = (AnswerMethod.LAPLACE, AnswerMethod.GAUSSIAN, AnswerMethod.HISTOGRAM)
SOME = case_of(
    TABLE,
    spread(2000, 12),
    {
        "ana": [Marginal(("a", "b"), where=attribute("c") == "1"), attribute("c") == "1"],
        "ben": [Marginal(("b",), where=Among("a", ("0",)) | (attribute("c") == "0"))],
        "cyd": [Marginal(("a",), where=~Among("a", ("0", "1", "2")))],
    },
)


@every_mechanism
@every_unit
def test_marginals_of_some_records_are_answered_like_all_else(name: str, unit: str) -> None:
    setting = replace(SOME.setting, unit=unit, options=OPTIONS.get(name, {}))
    plan = MECHANISMS[name].plan(setting)
    outcome = MECHANISMS[name].run(
        setting, plan, DenseCounts(SOME.histogram, setting.attributes), SOME.workloads, SEED, lambda *_: None
    )
    for analyst, answers in outcome.answers.items():
        truth = SOME.workloads[analyst].counts(SOME.histogram) / setting.records
        assert answers.values.shape == truth.shape
        assert not answers.misses(truth).any()


@pytest.mark.sparse(4)
@pytest.mark.thin(4)
@pytest.mark.slow
@every_mechanism
@every_unit
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name: str, unit: str) -> None:
    first = delivered(run(name, "a table", unit))
    assert first == delivered(run(name, "a table", unit))
    # A draw from few outcomes may well be the same twice.
    few = {delivered(run(name, "spare shares", unit, seed=number.to_bytes(32))) for number in range(4)}
    assert len(few) > 1


@every_mechanism
@every_unit
def test_the_order_of_submission_is_nobody_s_business(name: str, unit: str) -> None:
    backwards = dict(reversed(list(CASES["a table"].workloads.items())))
    assert delivered(run(name, "a table", unit)) == delivered(run(name, "a table", unit, backwards))


@pytest.mark.thin(2)
@pytest.mark.slow
@every_mechanism
@every_unit
def test_without_a_cost_for_analysts_nobody_s_answers_depend_on_what_others_ask(name: str, unit: str) -> None:
    plan, workloads = plan_for(name, "spare shares", unit), CASES["spare shares"].workloads
    outcome = run(name, "spare shares", unit)
    asks_otherwise = dict(workloads) | {"ben": compile_workload([Marginal(("a",))], TABLE)}
    stays_away = {analyst: own for analyst, own in workloads.items() if analyst != "ben"}
    others = [run(name, "spare shares", unit, workloads) for workloads in (asks_otherwise, stays_away)]
    same = [
        other.synopsis.cells.tobytes() == outcome.synopsis.cells.tobytes()
        and all(answered(other, analyst) == answered(outcome, analyst) for analyst in ("ana", "cyd"))
        for other in others
    ]
    # Who is charged for the analysts shares something among them: if nothing showed, nothing need be charged.
    assert all(same) if plan.analyst_cost == Cost() else not all(same)


@every_mechanism
@every_unit
def test_whoever_stays_away_is_not_answered_and_whoever_asks_nothing_gets_nothing(name: str, unit: str) -> None:
    assert run(name, "a table", unit, {}).answers == {}
    empty = dict.fromkeys(ASKED, compile_workload([], TABLE))
    outcome = run(name, "a table", unit, empty)
    assert outcome.answers.keys() == empty.keys()
    assert all(answers.values.size == 0 for answers in outcome.answers.values())


@every_mechanism
@every_unit
def test_equal_questions_of_two_analysts_get_noise_of_their_own_or_shared_answers(name: str, unit: str) -> None:
    """Noise used twice between analysts shows one of them what the other asks; a shared synopsis does not."""
    same = dict.fromkeys(("ana", "ben"), compile_workload([attribute("a") == "1", attribute("a") == "2"], TABLE))
    outcome = run(name, "a table", unit, same)
    fresh = [AnswerMethod.LAPLACE, AnswerMethod.GAUSSIAN, AnswerMethod.MULTIPLICATIVE_WEIGHTS]
    methods = {own.methods.tobytes() for own in outcome.answers.values()}
    if len(methods) == 1 and np.isin(outcome.answers["ana"].methods, fresh).all():
        assert answered(outcome, "ana") != answered(outcome, "ben")


@every_mechanism
@every_unit
def test_a_run_changes_nothing_that_it_is_given_and_tells_how_far_it_is(name: str, unit: str) -> None:
    given, told = CASES["a table"], list[tuple[str, int, int]]()
    histogram = given.histogram.copy()
    histogram.setflags(write=False)
    MECHANISMS[name].run(
        setting_for(name, "a table", unit),
        plan_for(name, "a table", unit),
        DenseCounts(histogram, setting_for(name, "a table", unit).attributes),
        given.workloads,
        SEED,
        lambda *step: told.append(step),
    )
    assert told
    assert all(phase and 0 <= done <= total >= 1 for phase, done, total in told)


@every_mechanism
@every_unit
def test_what_was_not_planned_for_is_refused(name: str, unit: str) -> None:
    given = CASES["a table"]
    setting, plan = setting_for(name, "a table", unit), plan_for(name, "a table", unit)
    larger = concatenate([given.workloads["cyd"]] * 2)
    dearer = compile_workload([Marginal(("b",))], TABLE)  # one statement of two queries that moves by 2
    roomy = replace(
        setting, shares=tuple(replace(s, queries=40) if s.analyst == "cyd" else s for s in setting.shares)
    )
    narrow = replace(setting, shares=tuple(replace(share, ways=1) for share in setting.shares))
    for changed, histogram, workloads, problem in (
        (narrow, given.histogram, given.workloads, "share"),
        (setting, given.histogram + 1, given.workloads, "table"),
        (setting, given.histogram[:-1], given.workloads, "table"),
        (setting, given.histogram, {**given.workloads, "cyd": larger}, "share"),
        (roomy, given.histogram, {**given.workloads, "cyd": dearer}, "share"),
        (setting, given.histogram, {**given.workloads, "dan": larger}, "share"),
    ):
        with pytest.raises(ValueError, match=problem):
            MECHANISMS[name].run(changed, plan, DenseCounts(histogram), workloads, SEED, lambda *_: None)


@every_mechanism
def test_the_formal_guarantees_are_written_down(name: str) -> None:
    kind = type(MECHANISMS[name])
    written = f"{kind.__doc__} {inspect.getmodule(kind).__doc__}"
    assert "Formal guarantees" in written
    assert "zCDP" in written or "rho" in written or "-DP" in written
    assert "1 - beta" in written
