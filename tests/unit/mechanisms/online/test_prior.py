"""`online` from a prior: what is measured, charged and told, and what a skewed table leaves for later answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT, ZcdpEvent, charge_of, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import AllOf, Among, AnyOf
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledStatement, compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.expected_error import noisy_answers_error, stated
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online.parameters import OnlineParameters
from equipoise_server.mechanisms.online.prior_plan import MAX_USEFUL_WIDTH, PriorOnlineParameters
from equipoise_server.mechanisms.prior.forecast import expected_of_session

SCHEMA = Schema(
    tuple(Attribute(name, tuple("0123"[:size])) for name, size in zip("abcd", (4, 3, 4, 2), strict=True))
)
RECORDS = 200_000
ONLINE = Online()
SEED = bytes(range(32))
MEASURED, HYPOTHESIS, GAUSSIAN, UNCERTIFIED = 11, 9, 3, 5
PAIR, TRIPLE = compile_single(Marginal(("a", "c")), SCHEMA), compile_single(Marginal(("a", "b", "c")), SCHEMA)


def usual() -> NDArray[np.int64]:
    """A table whose pairs of attributes tell nearly all."""
    choose = np.random.default_rng(3)
    one, other = choose.dirichlet(np.ones(12)), choose.dirichlet(np.ones(8))
    return choose.multinomial(RECORDS, np.multiply.outer(one, other).reshape(-1)).astype(np.int64)


def skewed() -> NDArray[np.int64]:
    """A table whose pairs tell little: of every three attributes one follows from the others."""
    counts = np.zeros(SCHEMA.sizes, dtype=np.int64)
    for a, b, d in np.ndindex(4, 3, 2):
        counts[a, b, (a + b + 2 * d) % 4, d] = 1
    return (counts * (RECORDS // int(counts.sum()))).reshape(-1)


def setting(length: int, records: int = RECORDS, **options: object) -> PublicParameters:
    return PublicParameters(
        records=records,
        universe_size=SCHEMA.universe_size,
        shares=(Share("a", length, 48 * length),),
        unit="query",
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(math.inf, 0.0),
        beta=0.05,
        options={"length": length, **options},
        attributes=SCHEMA.sizes,
    )


def parameters_of(plan: MechanismPlan) -> PriorOnlineParameters:
    parameters = PriorOnlineParameters.from_json(plan.parameters)
    assert parameters.to_json() == plan.parameters
    return parameters


def stream(count: int) -> list[CompiledStatement]:
    """Conjunctions over two to four attributes, unions, and tables of up to three."""
    choose, statements = np.random.default_rng(count), list[Statement]()
    for place in range(count):
        names = sorted(choose.choice(list("abcd"), choose.integers(1, 5), replace=False).tolist())
        parts = tuple(Among(name, ("0", "1")[: choose.integers(1, 3)]) for name in names)
        kinds = (Marginal(tuple(names[:3])), AllOf(parts), AnyOf(parts))
        statements.append(kinds[place % 3])
    return [compile_single(each, SCHEMA) for each in statements]


def played(public: PublicParameters, table: NDArray[np.int64], asked: list[CompiledStatement]) -> list[Answers]:
    session = ONLINE.start(public, ONLINE.plan(public), DenseCounts(table, SCHEMA.sizes), SEED)
    return [session.answer(slot, statement) for slot, statement in enumerate(asked)]


@pytest.mark.slow
def test_the_measurement_is_charged_beside_all_stages() -> None:
    public = setting(5_000)
    plan = ONLINE.plan(public)
    parameters, events = parameters_of(plan), events_from_json(plan.data_events)
    assert charge_of(events) == plan.data_cost
    prior = events[0]
    assert isinstance(prior, ZcdpEvent)
    assert prior == parameters.prior.events()[0]
    stages = sum(stage.test_epsilon**2 / 2 + stage.noise.rho(1) for stage in parameters.stages)
    assert plan.data_cost.rho == math.ceil((prior.rho + stages) * RHO_UNIT)
    assert prior.rho >= plan.data_cost.rho / RHO_UNIT * 0.4


@pytest.mark.slow
def test_a_prior_is_the_planner_s_choice_where_it_errs_less() -> None:
    many = setting(5_000)
    free, own, none = (ONLINE.plan(replace(many, options={**many.options, **option})) for option in ({}, *OPTIONS))
    assert free == own
    assert own.expected_error < none.expected_error
    assert ONLINE.plan(replace(many, attributes=())) == none
    with pytest.raises(InvalidArgument, match="sizes of all attributes"):
        ONLINE.plan(replace(many, attributes=(), options={**many.options, "prior": "own"}))
    with pytest.raises(InvalidArgument, match="own, standing or none"):
        ONLINE.plan(setting(10, prior="pairs"))
    with pytest.raises(InvalidArgument, match=r"^options.standing: must name a measurement"):
        ONLINE.plan(setting(10, prior="standing"))
    with pytest.raises(BudgetExhausted):
        ONLINE.plan(replace(setting(10, prior="own"), data_budget=Budget(1e-6, 1e-12)))


@pytest.mark.slow
def test_few_statements_are_answered_afresh_and_many_from_a_prior() -> None:
    few, many = setting(2), setting(5_000)
    assert ONLINE.plan(few) == ONLINE.plan(replace(few, options={**few.options, "prior": "none"}))
    own = ONLINE.plan(many)
    prior = parameters_of(own).prior
    assert own.expected_error == pytest.approx(expected_of_session(prior, many), rel=0.02)
    # Where every statement may be answered afresh, nothing less is expected than its noise.
    noise = OnlineParameters.from_json(ONLINE.plan(few).parameters).noise
    assert ONLINE.plan(few).expected_error == stated(noisy_answers_error(noise.law(2), RECORDS))


OPTIONS: tuple[dict[str, object], ...] = ({"prior": "own"}, {"prior": "none"})


class NotRead(DenseCounts):
    """A table of which only marginals can be asked, as the measurement does."""

    def count(self, *_: Any) -> Any:
        raise AssertionError("the table was read")


@pytest.mark.slow
def test_what_the_measurement_tells_costs_no_update_and_does_not_read_the_table() -> None:
    public = setting(5_000)
    session = ONLINE.start(public, ONLINE.plan(public), NotRead(usual(), SCHEMA.sizes), SEED)
    for slot in range(50):
        answers = session.answer(slot, PAIR)
        assert set(answers.methods.tolist()) == {MEASURED}
        assert not answers.misses(linear(PAIR).counts(usual()) / RECORDS).any()
        assert (answers.standard_errors > 0).all()
    with pytest.raises(AssertionError, match="was read"):
        session.answer(50, TRIPLE)


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("table", [usual, skewed])
def test_every_truth_lies_in_its_interval(table: Any) -> None:
    asked, public = stream(300), replace(setting(300, prior="own"), beta=1e-6)
    plan, answers = ONLINE.plan(public), Answers.join(played(public, table(), asked))
    truth = np.concatenate([linear(each).counts(table()) for each in asked]) / int(table().sum())
    assert not answers.misses(truth).any()
    assert half_widths(answers).max() <= plan.max_half_width
    assert table is skewed or answers.certified.all()


@pytest.mark.full
def test_a_skewed_table_does_not_use_up_all_updates_and_each_makes_tests_coarser() -> None:
    asked = [statement for _ in range(40) for statement in stream(30)]
    public = replace(setting(len(asked), prior="own"), records=int(skewed().sum()))
    parameters, answers = parameters_of(ONLINE.plan(public)), played(public, skewed(), asked)
    methods = [int(each.methods[0]) for each in answers]
    assert 1 <= methods.count(GAUSSIAN) < len(parameters.stages)
    assert UNCERTIFIED not in methods
    widths = [stage.certified_half_width for stage in parameters.stages]
    assert widths == sorted(widths)
    assert widths[-1] <= MAX_USEFUL_WIDTH * 2**40
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(2), rel=0.01)
    # As many updates with equal tests, as without a prior, are used up by the same statements.
    alike = {"prior": "none", "updates": len(widths), "threshold": widths[0] / 2**40}
    before = played(replace(public, options={**public.options, **alike}), skewed(), asked)
    assert UNCERTIFIED in {int(each.methods[0]) for each in before}


def test_after_the_last_update_the_measurement_still_tells_what_it_can() -> None:
    asked = [*stream(40), PAIR, TRIPLE]
    public = replace(setting(len(asked), prior="own", updates=1, threshold=0), records=int(skewed().sum()))
    answers = played(public, skewed(), asked)
    assert [int(each.methods[0]) for each in answers].count(GAUSSIAN) == 1
    assert int(answers[-2].methods[0]) == MEASURED
    assert int(answers[-1].methods[0]) == UNCERTIFIED


@pytest.mark.full
@pytest.mark.slow
def test_a_session_that_is_started_again_measures_the_same() -> None:
    asked = stream(60)
    public = replace(setting(60, prior="own"), records=int(skewed().sum()))
    plan, table = ONLINE.plan(public), DenseCounts(skewed(), SCHEMA.sizes)
    whole = played(public, skewed(), asked)
    assert AnswerMethod.GAUSSIAN in {int(each.methods[0]) for each in whole}
    for stop in (0, 1, 37):
        session = ONLINE.start(public, plan, table, SEED)
        stored = [session.answer(slot, each) for slot, each in enumerate(asked[:stop])]
        session.answer(stop, TRIPLE)  # computed, and lost in the crash
        session = ONLINE.start(public, plan, table, SEED)
        again = [session.answer(slot, each) for slot, each in enumerate(asked)]
        assert to_bytes(Answers.join(stored)) == to_bytes(Answers.join(whole[:stop]))
        assert to_bytes(Answers.join(again)) == to_bytes(Answers.join(whole))
