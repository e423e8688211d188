"""Sessions are played in the order of their slots, and nothing is played that was not planned for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from harness.answers import some_answers

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import CountDistinct, Marginal
from equipoise.queries.workload_compiler import CompiledStatement, compile_single, compile_statistic
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import check_asked, linear, play, session_length
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS, mechanism, session_mechanism

SCHEMA = Schema((Attribute("a", ("x", "y", "z")),))
PREDICATE, TABLE = compile_single(Among("a", ("x",)), SCHEMA), compile_single(Marginal(("a",)), SCHEMA)
HISTOGRAM = np.array([5, 3, 2], dtype=np.int64)
SETTING = PublicParameters(
    records=10,
    universe_size=3,
    shares=(Share("alice", 2, 4), Share("bob", 2, 2)),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=Budget(math.inf, 0.0),
    beta=0.05,
    options={"length": 5},
)
PLAN = MechanismPlan("places", "{}", Cost(), None, 1.0, 0, 0.0, 0, 1.0)


@dataclass
class SlotsSeen:
    """Answers each statement with its true counts, and remembers its slot: what is tested here is the order."""

    data: Counts
    slots: list[int] = field(default_factory=list)

    def used_up_at(self, slot: int) -> bool:  # noqa: ARG002
        return False

    def answer(self, slot: int, statement: CompiledStatement, encoded: bytes = b"", rho: int = 0) -> Answers:  # noqa: ARG002
        self.slots.append(slot)
        return some_answers(self.data.count(linear(statement)), AnswerMethod.SYNOPSIS, slot)

    def finish(self) -> Synopsis:
        return Synopsis.of_cells(np.array(self.slots, dtype=np.int64), (100,))


@dataclass(frozen=True)
class Places:
    """A session mechanism without noise, for predicates and small tables."""

    slotted: bool
    name: str = "places"
    priced: bool = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        session_length(setting, self.slotted)
        return PLAN

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:
        if statement.query_count > 3:
            raise InvalidArgument("statement", f"is too large for {plan.mechanism}")

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> SlotsSeen:
        assert (setting, plan, seed) == (SETTING, PLAN, bytes(32))
        return SlotsSeen(data)


def asked(slots: list[int], *statements: CompiledStatement) -> SessionWorkload:
    return SessionWorkload(np.array(slots, dtype=np.int64), statements)


def test_statements_are_played_by_slot_and_answered_by_analyst() -> None:
    everything = {"bob": asked([0, 3], PREDICATE, PREDICATE), "alice": asked([1, 2], TABLE, PREDICATE)}
    steps: list[tuple[str, int, int]] = []
    outcome = play(
        Places(False),
        SETTING,
        PLAN,
        DenseCounts(HISTOGRAM),
        everything,
        bytes(32),
        lambda *step: steps.append(step),
    )
    assert outcome.synopsis.cells.tolist() == [0, 1, 2, 3]
    assert outcome.answers["alice"].values.tolist() == [5, 3, 2, 5]
    assert outcome.answers["alice"].highs.tolist() == [6, 4, 3, 7]
    assert outcome.answers["bob"].highs.tolist() == [5, 8]
    assert steps[-1] == ("answer", 4, 4)


def test_a_session_in_which_nobody_asked_has_no_answers() -> None:
    outcome = play(
        Places(False), SETTING, PLAN, DenseCounts(HISTOGRAM), {"bob": asked([])}, bytes(32), lambda *_: None
    )
    assert len(outcome.answers["bob"].values) == len(outcome.synopsis) == 0


@pytest.mark.parametrize(
    ("slotted", "everything", "problem"),
    [
        (False, {"bob": asked([0], PREDICATE), "alice": asked([0], PREDICATE)}, "a slot"),
        (False, {"bob": asked([5], PREDICATE)}, "a slot"),
        (False, {"bob": asked([-1], PREDICATE)}, "a slot"),
        (False, {"bob": asked([1, 0], PREDICATE, PREDICATE)}, "share"),
        (False, {"bob": asked([1, 2], PREDICATE)}, "share"),
        (False, {"bob": asked([1, 2, 3], PREDICATE, PREDICATE, PREDICATE)}, "share"),
        (False, {"bob": asked([1], TABLE)}, "share"),
        (False, {"carol": asked([1], PREDICATE)}, "share"),
        (True, {"bob": asked([2], PREDICATE)}, "another analyst"),
        (True, {"bob": asked([11], PREDICATE)}, "a slot"),
    ],
)
def test_what_was_not_planned_for_is_not_played(
    slotted: bool, everything: dict[str, SessionWorkload], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        check_asked(Places(slotted), SETTING, PLAN, everything)


def test_slots_of_the_clock_are_the_shares_own() -> None:
    everything = {"bob": asked([1, 9], PREDICATE, PREDICATE), "alice": asked([0, 8], TABLE, PREDICATE)}
    check_asked(Places(True), SETTING, PLAN, everything)


def test_a_statement_is_checked_before_it_is_played() -> None:
    large = compile_single(Marginal(("b",)), Schema((Attribute("b", ("0", "1", "2", "3")),)))
    with pytest.raises(InvalidArgument, match="too large") as caught:
        check_asked(Places(False), SETTING, PLAN, {"alice": asked([1], large)})
    assert caught.value.field == "statement"


def test_a_statistic_is_no_linear_query() -> None:
    with pytest.raises(InvalidArgument, match="only sessions of low_sensitivity") as caught:
        linear(compile_statistic(CountDistinct(("a",)), SCHEMA, "statement"))
    assert caught.value.field == "statement"
    assert linear(TABLE) is TABLE


def test_other_data_are_not_played_on() -> None:
    with pytest.raises(ValueError, match="table"):
        play(Places(False), SETTING, PLAN, DenseCounts(HISTOGRAM + 1), {}, bytes(32), lambda *_: None)


def test_the_length_is_what_the_shares_can_use() -> None:
    assert session_length(SETTING, slotted=False) == 4
    assert session_length(SETTING, slotted=True) == 5


@pytest.mark.parametrize(
    ("change", "at"),
    [
        (lambda: replace(SETTING, options={}), "session.length"),
        (lambda: replace(SETTING, options={"length": 0}), "session.length"),
        (lambda: replace(SETTING, options={"length": True}), "session.length"),
        (lambda: replace(SETTING, options={"length": 2.5}), "session.length"),
        (lambda: replace(SETTING, shares=(Share("bob", 2, 2, sensitivity=1),)), "shares[0].sensitivity"),
        (lambda: replace(SETTING, shares=(Share("bob", 2, 2, support=1),)), "shares[0].support"),
        (lambda: replace(SETTING, analyst_budget=Budget(math.nan, 0.5)), "analyst_budget"),
        (lambda: replace(SETTING, analyst_budget=Budget(-math.inf, 0.5)), "analyst_budget"),
    ],
)
def test_what_no_session_can_be_is_named(change: Callable[[], PublicParameters], at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        session_length(change(), slotted=False)
    assert caught.value.field == at


def test_mechanisms_of_rounds_and_of_sessions_are_not_confused() -> None:
    for name in (*MECHANISMS, "auto"):
        with pytest.raises(InvalidArgument, match="answers rounds, not sessions"):
            session_mechanism(name)
    for name, each in SESSION_MECHANISMS.items():
        assert each.name == name
        assert session_mechanism(name) is each
        with pytest.raises(InvalidArgument, match="answers sessions, not rounds"):
            mechanism(name)
    with pytest.raises(InvalidArgument, match="unknown"):
        session_mechanism("offline")
