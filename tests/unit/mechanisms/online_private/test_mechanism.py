"""`online_private`: the same session however it is played, what it certifies, what it learns, what it refuses."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from numpy.typing import NDArray

from equipoise.accounting import PureDpEvent, ThresholdTests, charge_of, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.fixed_point import GRID_BITS
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import CompiledStatement, compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.epochs import BLOCK, EpochParameters, Epochs, pulls
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import HYPOTHESIS, play
from equipoise_server.mechanisms.online_private.mechanism import LinearSession, OnlinePrivate
from equipoise_server.mechanisms.repair.statement_repair import UNCERTIFIED

GAUSSIAN = 3
SCHEMA = Schema(tuple(Attribute(name, ("0", "1", "2", "3")) for name in "ab"))
TABLES = [compile_single(Marginal(axes), SCHEMA) for axes in (("a",), ("b",), ("a", "b"))]
PREDICATES = [
    compile_single(Among(name, categories), SCHEMA) for name in "ab" for categories in (("0",), ("1", "2"))
]
STATEMENTS: list[CompiledStatement] = [*TABLES, *PREDICATES]
RECORDS = 100_000
SKEWED = np.array([25045, 16703, 8375, 0, 8269, 8305, 0, 8376, 0, 8277, 0, 8196, 0, 8355, 0, 99], dtype=np.int64)
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=16,
    shares=(Share("alice", 60, 960), Share("bob", 60, 960)),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    options={"length": 80},
)
# Two analysts who protect nothing from each other learn fast.
UNPROTECTED = replace(SETTING, analyst_budget=Budget(math.inf, 0.0))
LONG = (Share("alice", 200, 200),)
LEARNING = {"length": 80, "epochs": 6, "target": 10, "beyond": 5, "records": 4096, "rate": 1.0, "threshold": 0.02}
MECHANISM = OnlinePrivate()


def seed(number: int) -> bytes:
    return number.to_bytes(32, "big")


def asked(turns: range) -> dict[str, SessionWorkload]:
    """Both analysts ask in each of the turns."""
    found = {}
    for place, analyst in enumerate(("alice", "bob")):
        slots = np.array([2 * turn + place for turn in turns], dtype=np.int64)
        found[analyst] = SessionWorkload(
            slots, tuple(STATEMENTS[(3 * slot + place) % len(STATEMENTS)] for slot in slots.tolist())
        )
    return found


def started(setting: PublicParameters, number: int = 1) -> tuple[MechanismPlan, LinearSession]:
    plan = MECHANISM.plan(setting)
    return plan, MECHANISM.start(setting, plan, DenseCounts(SKEWED), seed(number))


def answered(
    session: LinearSession, everything: dict[str, SessionWorkload], first: int = 0
) -> list[tuple[int, Answers]]:
    """All answers from a slot on, with their slots."""
    pairs = sorted(
        (slot, statement)
        for each in everything.values()
        for slot, statement in zip(each.slots.tolist(), range(len(each.slots)), strict=True)
        if slot >= first
    )
    of_slot = {
        slot: statement
        for each in everything.values()
        for slot, statement in zip(each.slots.tolist(), each.statements, strict=True)
    }
    return [(slot, session.answer(slot, of_slot[slot])) for slot, _ in pairs]


def same(one: Answers, other: Answers) -> bool:
    return to_bytes(one) == to_bytes(other)


@pytest.mark.slow
def test_a_session_is_the_same_however_often_it_is_interrupted() -> None:
    setting, everything = replace(UNPROTECTED, options=LEARNING), asked(range(0, 50, 2))
    plan, session = started(setting)
    whole = answered(session, everything)
    assert session.epochs._epoch > 2  # several hypotheses are compared
    synopsis = session.finish()
    outcome = play(MECHANISM, setting, plan, DenseCounts(SKEWED), everything, seed(1), lambda *_: None)
    assert np.array_equal(outcome.synopsis.cells, synopsis.cells)
    assert len(synopsis) == LEARNING["records"]
    for place, analyst in enumerate(("alice", "bob")):
        told = np.concatenate([answers.values for slot, answers in whole if slot % 2 == place])
        assert np.array_equal(told, outcome.answers[analyst].values)
    # What was asked before an interruption is played again, and then what comes after it.
    _, again = started(setting)
    replayed = answered(again, everything)[:30]
    assert all(slot == other and same(one, two) for (slot, one), (other, two) in zip(replayed, whole, strict=False))
    _, other = started(setting, number=2)
    assert not all(same(one, two) for (_, one), (_, two) in zip(answered(other, everything), whole, strict=True))


def test_empty_slots_pass_alike_one_by_one_and_all_at_once() -> None:
    options = LEARNING | {"length": 4 * BLOCK, "target": 2, "ending_epsilon": 1.0, "records": 16}
    plan = MECHANISM.plan(replace(UNPROTECTED, options=options))
    parameters = EpochParameters.from_json(plan.parameters)
    at_once, one_by_one = (Epochs(parameters, 16, 8 * BLOCK, seed(4)) for _ in range(2))
    for slot in range(8 * BLOCK):
        one_by_one.pass_to(slot + 1)
        if slot % 517 == 0:
            at_once.pass_to(slot + 1)
            assert (at_once._epoch, at_once._next) == (one_by_one._epoch, one_by_one._next)
            assert np.array_equal(at_once._multiset, one_by_one._multiset)
    assert one_by_one.used_up  # noise alone has ended every epoch


@pytest.mark.slow
def test_where_a_session_ends_does_not_show_who_asked_before() -> None:
    """Statements that are served well change nothing of another's view, also where the session then stops."""
    options = LEARNING | {
        "length": 30,
        "epochs": 2,
        "target": 1,
        "ending_epsilon": 0.3,
        "records": 16,
        "threshold": 0.9,
    }
    setting = replace(UNPROTECTED, options=options)
    ends = set()
    for number in range(20):
        views = []
        for asks in (False, True):
            _, session = started(setting, number)
            view: list[tuple[bool, list[int]]] = []
            for turn in range(30):
                if asks and not session.used_up_at(2 * turn):
                    session.answer(2 * turn, PREDICATES[0])
                stopped = session.used_up_at(2 * turn + 1)
                methods = [] if stopped else session.answer(2 * turn + 1, PREDICATES[1]).methods.tolist()
                view.append((stopped, methods))
            views.append(view)
        assert views[0] == views[1]
        ends.add(sum(not stopped for stopped, _ in views[0]))
    assert len(ends) > 3


@pytest.mark.full
@pytest.mark.slow
def test_every_truth_lies_in_its_interval() -> None:
    """In 15 sessions, each of which may fail with probability 10^-6."""
    setting, everything = replace(SETTING, records=2_000, beta=1e-6), asked(range(25))
    data = np.round(SKEWED / 50).astype(np.int64)
    data[0] += 2_000 - data.sum()
    plan = MECHANISM.plan(setting)
    methods: set[int] = set()
    for number in range(15):
        outcome = play(MECHANISM, setting, plan, DenseCounts(data), everything, seed(number), lambda *_: None)
        for analyst, answers in outcome.answers.items():
            truth = np.concatenate([each.counts(data) for each in everything[analyst].statements])  # type: ignore[union-attr]
            assert answers.certified.all()
            assert not answers.misses(truth / 2_000).any()
            assert half_widths(answers).max() <= plan.max_half_width
            methods |= set(answers.methods.tolist())
    assert methods == {GAUSSIAN, HYPOTHESIS}


def hypothesis_error(rate: float) -> float:
    """The mean error of what is answered from a hypothesis after two thirds of a session, or without a bound."""
    setting = replace(UNPROTECTED, options=LEARNING | {"rate": rate, "length": 60})
    _, session = started(setting)
    answers = answered(session, asked(range(60)))[80:]
    kept = [(slot, each) for slot, each in answers if each.methods[0] != GAUSSIAN]
    everything = {slot: STATEMENTS[(3 * slot + slot % 2) % len(STATEMENTS)] for slot, _ in kept}
    errors = [
        np.abs(each.values / 2**GRID_BITS - everything[slot].counts(SKEWED) / RECORDS).max()  # type: ignore[union-attr]
        for slot, each in kept
    ]
    return float(np.mean(errors))


@pytest.mark.slow
def test_what_was_learnt_serves_later_statements_and_a_dead_game_does_not() -> None:
    assert hypothesis_error(0.5) < 0.07
    assert hypothesis_error(0.0) > 0.12


class Untouchable:
    """A question whose truth must not be asked for."""

    l1_sensitivity = 1

    def truth(self) -> NDArray[np.int64]:
        raise AssertionError("the data were touched")

    def multiset_answers(self, multiset: NDArray[np.int64]) -> NDArray[np.int64]:
        return multiset[:1]

    def prior_answers(self, expected: NDArray[np.int64]) -> None:
        pass

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG002
        raise AssertionError("something was learnt")


def test_after_the_last_epoch_nothing_is_drawn_from_the_data() -> None:
    setting = replace(UNPROTECTED, options=LEARNING | {"epochs": 2, "target": 3, "beyond": 2, "threshold": 0.0})
    plan, session = started(setting)
    methods = [int(answers.methods[0]) for _, answers in answered(session, asked(range(30)))]
    parameters = EpochParameters.from_json(plan.parameters)
    assert 1 <= methods.count(GAUSSIAN) <= parameters.epochs * parameters.cap
    first = methods.index(UNCERTIFIED)
    assert set(methods[first:]) == {UNCERTIFIED}
    assert session.used_up_at(100)
    answers = session.epochs.answer(100, Untouchable())
    assert answers.methods[0] == UNCERTIFIED


def test_no_epoch_has_more_places_than_its_cap() -> None:
    options = LEARNING | {"epochs": 3, "target": 4, "beyond": 1, "threshold": 0.0, "ending_epsilon": 1e-3}
    plan, session = started(replace(UNPROTECTED, options=options))
    parameters = replace(EpochParameters.from_json(plan.parameters), target=10**6, cap=5)
    session = LinearSession(DenseCounts(SKEWED), RECORDS, (16,), Epochs(parameters, 16, 160, seed(1)))
    methods = [int(answers.methods[0]) for _, answers in answered(session, asked(range(30)))]
    assert methods[:15] == [GAUSSIAN] * 15
    assert set(methods[15:]) == {UNCERTIFIED}


def test_slots_are_answered_once_and_in_order() -> None:
    _, session = started(SETTING)
    session.answer(3, TABLES[0])
    for slot in (3, 2, 160):
        with pytest.raises(ValueError, match="slot"):
            session.answer(slot, TABLES[0])


def test_the_usual_plan_certifies_everything_within_both_budgets() -> None:
    plan = MECHANISM.plan(SETTING)
    parameters = EpochParameters.from_json(plan.parameters)
    assert json.loads(parameters.to_json()) == json.loads(plan.parameters)
    assert plan.max_uncertified == 0
    assert 0.005 < plan.max_half_width < 0.05
    assert charge_of(events_from_json(plan.data_events)) == plan.data_cost
    assert charge_of(events_from_json(plan.analyst_events)) == plan.analyst_cost
    assert any(isinstance(part, PureDpEvent) for part in events_from_json(plan.data_events))
    assert MECHANISM.plan(UNPROTECTED).analyst_cost is None


def test_fewer_places_are_charged_for_tests_against_a_public_threshold() -> None:
    shares = (Share("alice", 2_000, 8_000), Share("bob", 2_000, 8_000))
    options = {"length": 4_000, "epochs": 4, "target": 120}
    plan = MECHANISM.plan(replace(SETTING, shares=shares, options=options))
    parameters = EpochParameters.from_json(plan.parameters)
    (tests,) = [part for part in events_from_json(plan.data_events) if isinstance(part, ThresholdTests)]
    assert tests.positives == parameters.epochs * parameters.cap
    assert 12_000 < plan.max_uncertified < 16_000
    every = MECHANISM.plan(replace(SETTING, shares=shares, options={"length": 4_000}))
    assert every.max_uncertified == 0
    assert EpochParameters.from_json(every.parameters).test_epsilon < parameters.test_epsilon


@pytest.mark.parametrize(
    ("changed", "at"),
    [
        ({"unit": "analyst"}, "unit"),
        ({"options": {}}, "session.length"),
        ({"options": {"length": 2**24}}, "session.length"),
        ({"options": {"length": 80, "epoch": 3}}, "options.epoch"),
        ({"options": {"length": 80, "epochs": 0}}, "options.epochs"),
        ({"options": {"length": 80, "epochs": 2.5}}, "options.epochs"),
        ({"options": {"length": 80, "records": True}}, "options.records"),
        ({"options": {"length": 80, "threshold": math.nan}}, "options.threshold"),
        ({"options": {"length": 80, "ending_epsilon": 0.0}}, "options.ending_epsilon"),
        ({"universe_size": 2**30}, "universe_size"),
        ({"options": {"length": 200, "epochs": 500, "target": 1, "rate": 64.0}, "shares": LONG}, "options.rate"),
    ],
)
def test_what_cannot_be_planned_is_named(changed: dict[str, object], at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        MECHANISM.plan(replace(SETTING, **changed))  # type: ignore[arg-type]
    assert caught.value.field == at


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        ({"test_epsilon": 0.5}, "data_budget"),
        ({"variance": 1.0}, "data_budget"),
        ({"ending_epsilon": 2.0}, "analyst_budget"),
        ({"epochs": 4, "target": 100, "records": 4096, "rate": 1.0}, "analyst_budget"),
        ({"epochs": 4, "target": 100, "beyond": 1}, "analyst_budget"),
    ],
)
def test_forced_parameters_beyond_a_budget_are_refused(options: dict[str, object], budget: str) -> None:
    with pytest.raises(BudgetExhausted, match=budget):
        MECHANISM.plan(replace(SETTING, options={"length": 80} | options))


def test_what_is_learnt_from_lies_on_one_side_beyond_the_guard() -> None:
    assert pulls(np.array([5, -9, 1, 7]), 2).tolist() == [1, 0, 0, 1]
    assert pulls(np.array([3, -9, 1, 4]), 2).tolist() == [0, -1, 0, 0]
    assert pulls(np.array([1, -2, 0]), 2).tolist() == [0, -1, 0]
    assert pulls(np.array([0]), 2).tolist() == [0]
