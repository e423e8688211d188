"""`online`: what it plans, that it is played again to the byte, and that it leaves the table alone when it must."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from numpy.typing import NDArray

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import linear, play
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online.parameters import OnlineParameters, most_updates
from equipoise_server.mechanisms.online.plan import MAX_UPDATES
from equipoise_server.mechanisms.registry import mechanism

SCHEMA = Schema(tuple(Attribute(name, tuple("0123"[:size])) for name, size in zip("abc", (4, 3, 2), strict=True)))
RECORDS = 200_000
ONLINE = Online()
HYPOTHESIS, GAUSSIAN, UNCERTIFIED = 9, 3, 5
SEED = bytes(range(32))


def skewed() -> NDArray[np.int64]:
    choose = np.random.default_rng(3)
    return choose.multinomial(RECORDS, choose.dirichlet(np.full(SCHEMA.universe_size, 0.5))).astype(np.int64)


def asked(count: int, first_slot: int = 0, step: int = 1) -> SessionWorkload:
    """Conjunctions and tables, some of them again and again."""
    choose = np.random.default_rng(count)
    statements: list[Statement] = []
    for place in range(count):
        if place % 3 == 0:
            statements.append(Marginal(tuple(choose.choice(["a", "b", "c"], 2, replace=False).tolist())))
        else:
            some = tuple(map(str, choose.choice(4, 2, replace=False)))
            statements.append(AllOf((Among("a", some), Among("b", (str(choose.integers(3)),)))))
    slots = np.arange(first_slot, first_slot + step * count, step)
    return SessionWorkload(slots, tuple(compile_single(each, SCHEMA) for each in statements))


def setting(*everything: SessionWorkload, **options: object) -> PublicParameters:
    shares = tuple(
        Share(f"analyst-{place}", len(each.statements), each.query_count) for place, each in enumerate(everything)
    )
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=shares,
        unit="query",
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(math.inf, 0.0),
        beta=0.05,
        options={"length": sum(len(each.statements) for each in everything), **options},
    )


def nothing(*_: object) -> None:
    """Progress that nobody looks at."""


def truth(each: SessionWorkload) -> NDArray[np.float64]:
    return np.concatenate([linear(statement).counts(skewed()) for statement in each.statements]) / RECORDS


TWO = (asked(60, 0, 2), asked(60, 1, 2))


@pytest.mark.full
def test_a_session_is_played_again_to_the_byte_from_wherever_it_stopped() -> None:
    public = setting(*TWO, updates=12, threshold=0.02)
    plan = ONLINE.plan(public)
    outcome = play(
        ONLINE,
        public,
        plan,
        DenseCounts(skewed()),
        {f"analyst-{i}": each for i, each in enumerate(TWO)},
        SEED,
        nothing,
    )
    methods = np.concatenate([outcome.answers[f"analyst-{i}"].methods for i in range(2)])
    assert {HYPOTHESIS, GAUSSIAN} <= set(methods.tolist())
    order = [(int(slot), each, place) for each in TWO for place, slot in enumerate(each.slots)]
    order.sort(key=lambda item: item[0])
    for stop in (0, 1, 37, len(order)):
        # One answer at a time; at `stop` the process ends, having computed one answer more than it stored.
        session = ONLINE.start(public, plan, DenseCounts(skewed()), SEED)
        stored = [session.answer(slot, each.statements[place]) for slot, each, place in order[:stop]]
        if stop < len(order):
            session.answer(order[stop][0], compile_single(Marginal(("a", "b", "c")), SCHEMA))
        session = ONLINE.start(public, plan, DenseCounts(skewed()), SEED)
        for slot, each, place in order[:stop]:
            session.answer(slot, each.statements[place])
        stored += [session.answer(slot, each.statements[place]) for slot, each, place in order[stop:]]
        for analyst, each in enumerate(TWO):
            own = Answers.join([answer for answer, item in zip(stored, order, strict=True) if item[1] is each])
            released = outcome.answers[f"analyst-{analyst}"]
            assert to_bytes(own) == to_bytes(released)
    assert len(outcome.synopsis) == 0


@pytest.mark.thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"updates": 12, "threshold": 0.02}, {"updates": 3, "answers": "laplace"}])
def test_every_truth_lies_in_its_interval(options: dict[str, object]) -> None:
    """In 15 sessions, each of which may fail with probability 10^-6."""
    each = asked(30)
    public = replace(setting(each, **options), beta=1e-6)
    plan = ONLINE.plan(public)
    for run in range(5):
        session = ONLINE.start(public, plan, DenseCounts(skewed()), run.to_bytes(32))
        answers = Answers.join([session.answer(slot, statement) for slot, statement in enumerate(each.statements)])
        sure = answers.certified
        assert sure.any()
        assert (answers.methods[~sure] == UNCERTIFIED).all()
        assert not answers.misses(truth(each)).any()
        assert half_widths(answers).max() <= plan.max_half_width


class Guarded(DenseCounts):
    """A table of which nothing can be asked any more once it is `closed`."""

    closed = False

    def __getattribute__(self, name: str) -> Any:
        if type(self).closed:
            raise AssertionError("the table was read")
        return super().__getattribute__(name)


def test_after_the_last_update_the_table_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = asked(60)
    public = setting(everything, updates=2, threshold=0)
    plan = ONLINE.plan(public)
    session = ONLINE.start(public, plan, Guarded(skewed()), SEED)
    answers = []
    for slot, statement in enumerate(everything.statements):
        if session.used_up_at(slot):
            monkeypatch.setattr(Guarded, "closed", True)
        answers.append(session.answer(slot, statement))
    methods = [int(answer.methods[0]) for answer in answers]
    assert methods.count(GAUSSIAN) == 2
    last = max(place for place, method in enumerate(methods) if method == GAUSSIAN)
    assert set(methods[last + 1 :]) == {UNCERTIFIED}
    assert not answers[-1].certified.any()
    assert plan.max_uncertified == everything.query_count - 2


def test_a_proven_number_of_updates_is_not_exceeded() -> None:
    """With a threshold that proves it, updates end before they are used up, whatever is asked."""
    everything = asked(120)
    public = replace(setting(everything, threshold=0.4, updates=40), records=RECORDS)
    plan = ONLINE.plan(public)
    parameters = OnlineParameters.from_json(plan.parameters)
    assert parameters.proven
    assert plan.max_uncertified == 0
    # One record cell holds everything: as far from uniform as data can be.
    histogram = np.zeros(SCHEMA.universe_size, np.int64)
    histogram[0] = RECORDS
    session = ONLINE.start(public, plan, DenseCounts(histogram), SEED)
    methods = [int(session.answer(slot, each).methods[0]) for slot, each in enumerate(everything.statements)]
    assert 0 < methods.count(GAUSSIAN) <= 40
    assert UNCERTIFIED not in methods


def test_the_number_of_updates_follows_from_the_divergence() -> None:
    public = setting(asked(120))
    scale = RECORDS << 16
    # 2 d^2 = 0.02 for a distance of 0.1: log(24) / 0.02 = 158.9.
    assert most_updates(public, 10**6, int(0.1 * scale), 0) == 158
    assert most_updates(public, 100, int(0.1 * scale), 0) == 100
    assert most_updates(public, 10**6, int(0.3 * scale), int(0.1 * 2**40)) in (158, 159)
    assert most_updates(public, 10**6, int(0.2 * scale), int(0.1 * 2**40)) == 10**6


def parameters_of(plan: MechanismPlan) -> OnlineParameters:
    parameters = OnlineParameters.from_json(plan.parameters)
    assert parameters.to_json() == plan.parameters
    return parameters


def test_a_short_session_may_answer_every_statement_afresh() -> None:
    plan = ONLINE.plan(setting(asked(30)))
    assert parameters_of(plan).updates == 30
    assert (plan.max_uncertified, plan.analyst_cost) == (0, None)


def test_a_long_session_promises_twice_what_noise_for_every_statement_would() -> None:
    many = replace(setting(), shares=(Share("a", 20_000, 20_000),), options={"length": 20_000})
    plan = ONLINE.plan(many)
    alone = gaussian(many)
    parameters = parameters_of(plan)
    assert parameters.threshold > 0
    assert 8 <= parameters.updates < MAX_UPDATES
    assert alone < plan.max_half_width <= 2.001 * alone


def test_with_very_many_statements_it_promises_less_error_than_noise() -> None:
    many = replace(setting(), shares=(Share("a", 10**7, 10**7),), options={"length": 10**7})
    assert ONLINE.plan(many).max_half_width < gaussian(many) / 4


def test_a_forced_threshold_gets_updates_whose_tests_are_quieter() -> None:
    many = replace(setting(), shares=(Share("a", 20_000, 20_000),), options={"length": 20_000, "threshold": 0.05})
    parameters = parameters_of(ONLINE.plan(many))
    assert parameters.threshold == (RECORDS << 16) // 20
    assert (
        parameters.threshold / 2
        < parameters.certified_half_width * (RECORDS << 16) / 2**40
        <= 2.001 * parameters.threshold
    )
    assert parameters.updates > 1


def gaussian(public: PublicParameters) -> float:
    """What the mechanism `gaussian` promises for the same statements, all of which may be marginals."""
    return mechanism("gaussian").plan(replace(public, options={})).max_half_width


def test_the_only_analyst_may_have_a_budget_which_costs_nothing() -> None:
    plan = ONLINE.plan(replace(setting(asked(10)), analyst_budget=Budget(1.0, 1e-6)))
    assert plan.analyst_cost == Cost()


def test_several_analysts_are_not_promised_protection() -> None:
    with pytest.raises(InvalidArgument, match="protects no analyst") as caught:
        ONLINE.plan(replace(setting(*TWO), analyst_budget=Budget(1.0, 1e-6)))
    assert caught.value.field == "analyst_budget"


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"updates": 0}, "options.updates"),
        ({"updates": 1.5}, "options.updates"),
        ({"updates": MAX_UPDATES + 1}, "options.updates"),
        ({"updates": True}, "options.updates"),
        ({"threshold": -0.1}, "options.threshold"),
        ({"threshold": math.nan}, "options.threshold"),
        ({"answers": "rounded"}, "options.answers"),
        ({"rounds": 3}, "options.rounds"),
        ({"length": 0}, "session.length"),
    ],
)
def test_options_that_mean_nothing_are_named(options: dict[str, object], at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        ONLINE.plan(setting(asked(10), **options))
    assert caught.value.field == at


def test_too_little_budget_is_said() -> None:
    with pytest.raises(BudgetExhausted, match="data_budget"):
        ONLINE.plan(replace(setting(asked(10)), data_budget=Budget(1e-7, 1e-12)))


def test_a_statement_is_one_statement() -> None:
    public = setting(asked(10))
    plan = ONLINE.plan(public)
    with pytest.raises(InvalidArgument) as caught:
        ONLINE.check_statement(plan, compile_workload([Marginal(("a",)), Marginal(("b",))], SCHEMA))
    assert caught.value.field == "statement"


def test_a_marginal_of_some_records_is_answered_with_its_intervals() -> None:
    statement = compile_single(Marginal(("a",), where=Among("b", ("0",))), SCHEMA)
    public, histogram = setting(asked(10)), skewed()
    answers = ONLINE.start(public, ONLINE.plan(public), DenseCounts(histogram), SEED).answer(3, statement)
    truth = statement.counts(histogram) / public.records
    assert answers.certified.all()
    assert not answers.misses(truth).any()


def test_slots_ascend() -> None:
    public = setting(asked(10))
    session = ONLINE.start(public, ONLINE.plan(public), DenseCounts(skewed()), SEED)
    statement = compile_single(Marginal(("a",)), SCHEMA)
    session.answer(3, statement)
    with pytest.raises(ValueError, match="ascend"):
        session.answer(3, statement)
