"""Tables that are answered afresh: their intervals are those of a table's noise, and each slot is tested once."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from harness.answers import half_widths

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs
from equipoise_server.mechanisms.epochs.question import Scale
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, LaplaceNoise
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.online.mechanism import Online, OnlineSession
from equipoise_server.mechanisms.online.parameters import OnlineParameters
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters, SynopsisCounts, repair

SCHEMA = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1"))))
COUNTS = np.array([50_000, 10_000, 20_000, 30_000, 40_000, 50_000])
RECORDS = int(COUNTS.sum())
PREDICATE, TABLE = attribute("a") == "0", Marginal(("a", "b"))
ASKED: list[tuple[Statement, int]] = [(TABLE, 2), (PREDICATE, 1)]  # and by how much its counts move


def test_a_table_that_a_session_answers_afresh_has_a_table_s_interval() -> None:
    setting = PublicParameters(
        records=RECORDS,
        universe_size=6,
        shares=(Share("ann", 4, 40),),
        unit="query",
        data_budget=Budget(1.0, 1e-9),
        analyst_budget=Budget(math.inf, 0.0),
        beta=0.05,
        options={"length": 4, "updates": 4, "threshold": 0},
    )
    online = Online()
    plan = online.plan(setting)
    session = online.start(setting, plan, DenseCounts(COUNTS), bytes(32))
    expected = OnlineParameters.from_json(plan.parameters).noise_half_widths
    assert expected[0] < expected[1]
    for slot, (statement, moved) in enumerate(ASKED):
        answers = session.answer(slot, compile_single(statement, SCHEMA))
        assert set(answers.methods.tolist()) == {AnswerMethod.GAUSSIAN}
        widths = np.unique(half_widths(answers) * 2.0**40)
        assert widths.tolist() == [expected[moved - 1]]


def test_a_table_that_is_repaired_has_a_table_s_interval() -> None:
    workload = compile_workload([PREDICATE, TABLE], SCHEMA)
    parameters = RepairParameters(
        threshold=-(1 << 60),  # everything is answered afresh
        test_epsilon=Fraction(1),
        noise=LaplaceNoise(Fraction(1, 2)),
        cut_offs={"ann": 2},
        certified_half_width=1,
        noise_half_widths=(1 << 30, 1 << 31),
    )
    synopsis = SynopsisCounts(np.zeros(7, dtype=np.int64), 100)
    answers = repair(parameters, "ann", workload, workload.counts(COUNTS), RECORDS, synopsis, bytes(32))
    assert (half_widths(answers) * 2.0**40).tolist() == [1 << 30] + 6 * [1 << 31]


def test_the_slot_that_ends_an_epoch_is_not_tested_again_in_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its noise is large, and one draw serves one test: of ten slots, the fourth ends one epoch and no more."""
    parameters = EpochParameters(
        scale=Scale(1000, 1),
        epochs=5,
        target=1,
        cap=10,
        ending_epsilon=Fraction(1),
        records=0,
        step=0,
        threshold=1 << 60,
        test_epsilon=Fraction(1),
        noise=GaussianNoise(Fraction(1)),
        guard=0,
        certified_half_width=1,
        noise_half_widths=(1, 1),
    )
    noise = np.where(np.arange(10) == 3, 1000, -1000)
    law = SimpleNamespace(draw=lambda count, stream: noise if count > 1 else np.zeros(1, dtype=np.int64))
    monkeypatch.setattr(EpochParameters, "count_noise", property(lambda _: law))
    for slots, epochs in ((3, 1), (4, 2), (10, 2)):
        session = Epochs(replace(parameters, records=1), 6, 10, bytes(32))
        session.pass_to(slots)
        assert session._epoch == epochs


@pytest.mark.parametrize(("widest", "told"), [(50, False), (100, True)])
def test_a_measured_table_of_which_one_cell_is_wide_is_asked_of_the_data(widest: int, told: bool) -> None:
    """As wide as a fresh answer may be is what every cell of a measured one may be."""
    asked = compile_single(TABLE, SCHEMA)
    answers = answers_within(np.full(6, 1 << 38), AnswerMethod.MEASURED, np.array([10, 100, 10, 10, 10, 10]))
    prior = SimpleNamespace(holds=lambda _: True, answers=lambda *_: answers)
    session = object.__new__(OnlineSession)
    session._known = prior, SimpleNamespace(widest_measured=lambda _: widest)  # type: ignore[assignment]
    given = session._measured_answers(linear(asked), np.zeros(6, dtype=np.int64), None)
    assert (given is not None) == told
