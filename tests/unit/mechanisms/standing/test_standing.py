"""`measurement` and `standing`: what is planned and refused, measured once, and answered from it at no cost."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from harness.answers import to_bytes
from numpy.typing import NDArray

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import STANDING_OPTION, MechanismPlan, Share
from equipoise.queries.predicates import AllOf, Among, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.reach import code_lengths, log_chance, own_code_lengths, reaches
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.registry import check_workload, mechanism
from equipoise_server.mechanisms.residuals.estimates import Estimates
from equipoise_server.mechanisms.standing.answering import measured_answers
from equipoise_server.mechanisms.standing.family import planned_noise
from equipoise_server.mechanisms.standing.measurement import MeasurementParameters, as_options

SCHEMA = Schema.from_json('{"a": 4, "b": 3, "c": 2, "one": 1, "d": 5}')
RECORDS, UNIVERSE = 20_000, 120
DATA = Budget(1.0, 1e-9)
SEED = b"\x08" * 32
a, b, c, d = (attribute(name) for name in "abcd")
INSIDE: list[Statement] = [
    Marginal(("d", "a")),
    a == "1",
    (a == "1") & Among("b", ("0", "2")),
    (b == "1") | (d == "3"),
    ~(d == "3"),
    Marginal(("d",), where=Among("b", ("0", "2"))),
    Marginal(("a",), where=(a == "1") | (d == "3")),
    attribute("one") == "0",
]
OUTSIDE: dict[str, Statement] = {
    "condition": (a == "0") & (b == "1") & (d == "2"),
    "marginal": Marginal(("a", "b", "c")),
    "marginal of some records": Marginal(("a", "b"), where=c == "1"),
}


def counts() -> NDArray[np.int64]:
    weights = np.arange(UNIVERSE) ** 2 * (np.arange(UNIVERSE) % 7 > 0)
    cells: NDArray[np.int64] = weights * RECORDS // weights.sum()
    cells[-1] += RECORDS - cells.sum()
    return cells


def nothing(step: str, done: int, total: int) -> None:
    pass


def measuring(options: Mapping[str, object] | None = None, budget: Budget = DATA) -> PublicParameters:
    noise = planned_noise(options or {}, SCHEMA, budget)
    nobody = Budget(math.inf, 0.0)
    return PublicParameters(RECORDS, UNIVERSE, (), "query", budget, nobody, 0.05, as_options(noise), SCHEMA.sizes)


@cache
def measured(seed: bytes = SEED) -> tuple[MechanismPlan, Outcome]:
    setting = measuring()
    plan = mechanism("measurement").plan(setting)
    return plan, mechanism("measurement").run(setting, plan, DenseCounts(counts(), SCHEMA.sizes), {}, seed, nothing)


def asking(statements: int = 8, queries: int = 34, beta: float = 0.05) -> PublicParameters:
    plan, outcome = measured()
    noise = MeasurementParameters.from_json(plan.parameters).noise
    named = ReleasedMeasurement("f" * 32, sha256(outcome.measured).digest(), noise)
    shares = (Share("AA", statements, queries), Share("BB", statements, queries))
    options = {STANDING_OPTION: named.as_option()}
    setting = PublicParameters(RECORDS, UNIVERSE, shares, "query", DATA, Budget(1.0, 1e-6), beta, options)
    return replace(setting, attributes=SCHEMA.sizes, measured=outcome.measured)


class Unreadable(DenseCounts):
    """A table that fails whoever reads it."""

    def __init__(self) -> None:
        super().__init__(counts(), SCHEMA.sizes)

    def __getattribute__(self, name: str) -> object:
        if name in ("count", "marginals", "occupied", "dense"):
            raise AssertionError("the table was read")
        return super().__getattribute__(name)


def test_a_measurement_costs_what_its_noise_does_and_nearly_all_of_its_budget() -> None:
    plan, outcome = measured()
    noise = MeasurementParameters.from_json(plan.parameters).noise
    assert plan.data_cost.rho == math.ceil(noise.rho() * 10**12)
    assert 0.995 < epsilon_for(plan.data_cost, DATA.delta) <= 1
    assert (plan.analyst_cost, outcome.answers, len(outcome.synopsis)) == (None, {}, 0)
    assert measured(bytes(32))[1].measured != outcome.measured


def test_a_round_from_a_measurement_costs_nothing_and_reads_no_table() -> None:
    setting, workload = asking(), compile_workload(INSIDE, SCHEMA)
    plan = mechanism("standing").plan(setting)
    assert (plan.data_cost, plan.analyst_cost) == (Cost(), Cost())
    assert (plan.max_uncertified, json.loads(plan.data_events)["events"]) == (0, [])
    outcome = mechanism("standing").run(setting, plan, Unreadable(), {"AA": workload}, SEED, nothing)
    answers, truths = outcome.answers["AA"], workload.counts(counts()) / RECORDS
    answers.check()
    assert set(answers.methods.tolist()) == {AnswerMethod.GAUSSIAN}
    assert not answers.misses(truths).any()
    assert (answers.highs - answers.lows).max() / 2 <= plan.max_half_width * 2**40
    assert answers.values[-1] == 2**40
    assert answers.standard_errors[-1] == 0
    told = compile_workload(INSIDE, SCHEMA).covered() % UNIVERSE > 0
    assert answers.standard_errors[told].all()
    # The synthetic table has what was measured, and another seed changes nothing.
    synthetic = workload.record_counts(outcome.synopsis.cells) / len(outcome.synopsis)
    assert np.abs(synthetic - truths).max() < 0.02
    again = mechanism("standing").run(setting, plan, Unreadable(), {"AA": workload}, bytes(32), nothing)
    assert to_bytes(again.answers["AA"]) == to_bytes(answers)
    assert np.array_equal(again.synopsis.cells, outcome.synopsis.cells)


def test_answers_of_all_rounds_agree_with_one_another() -> None:
    setting, plan = asking(), mechanism("standing").plan(asking())
    asked = {
        "AA": compile_workload([Marginal(("a", "d"))], SCHEMA),
        "BB": compile_workload([Marginal(("a",))], SCHEMA),
    }
    answers = mechanism("standing").run(setting, plan, Unreadable(), asked, SEED, nothing).answers
    sums = answers["AA"].values.reshape(4, 5).sum(axis=1)
    assert np.abs(sums - answers["BB"].values).max() <= 5
    assert abs(int(answers["BB"].values.sum()) - 2**40) <= 4


@pytest.mark.parametrize("statement", OUTSIDE.values(), ids=list(OUTSIDE))
def test_a_statement_outside_of_the_family_is_refused_by_its_name(statement: Statement) -> None:
    setting = asking()
    plan, workload = mechanism("standing").plan(setting), compile_workload([a == "1", statement], SCHEMA)
    with pytest.raises(InvalidArgument, match=r"^statements\[1\]: .*does not tell"):
        check_workload(plan, workload)
    with pytest.raises(InvalidArgument, match=r"^statements\[1\]"):
        mechanism("standing").run(setting, plan, Unreadable(), {"AA": workload}, SEED, nothing)
    check_workload(plan, compile_workload(INSIDE, SCHEMA))


def test_other_numbers_than_those_of_the_plan_are_not_answered_from() -> None:
    setting = asking()
    plan = mechanism("standing").plan(setting)
    changed = replace(setting, measured=measured(bytes(32))[1].measured)
    with pytest.raises(ValueError, match="not those of the measurement"):
        mechanism("standing").run(changed, plan, Unreadable(), {}, SEED, nothing)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"family": "everything"}, "options.family: must be pairs or triples"),
        ({"family": []}, "options.family: must be pairs or triples"),
        ({"family": [3]}, "options.family: must be pairs or triples"),
        ({"family": ["ab"]}, r"options.family\[0\]: must be a list"),
        ({"family": [["a"], []]}, r"options.family\[1\]: must be a list"),
        ({"family": [["a", "b"], ["b", "z"]]}, r"options.family\[1\]: names 'z'"),
        ({"family": [["a", "b", "a"]]}, r"options.family\[0\]: names the attribute 'a' twice"),
        ({"family": [["one"]]}, "options.family: has no attribute with two"),
        ({"familiy": "pairs"}, "options.familiy: unknown"),
    ],
)
def test_families_that_cannot_be_measured_are_refused_by_the_field(
    options: dict[str, object], refusal: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"^{refusal}"):
        measuring(options)


def test_families_that_are_too_large_are_refused() -> None:
    wide = Schema.from_json(json.dumps({f"x{number}": 2000 for number in range(3)}))
    with pytest.raises(InvalidArgument, match=r"^options.family: is too large: .*cells"):
        planned_noise({"family": "pairs"}, wide, DATA)
    many = Schema.from_json(json.dumps({f"x{number}": 2 for number in range(50)}))
    with pytest.raises(InvalidArgument, match=r"^options.family: is too large: "):
        planned_noise({"family": "triples"}, many, DATA)


def test_budgets_and_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BudgetExhausted, match=r"^data_budget"):
        measuring(budget=Budget(1e-9, 1e-15))
    setting = measuring()
    with pytest.raises(BudgetExhausted, match=r"^data_budget"):
        mechanism("measurement").plan(replace(setting, data_budget=Budget(0.9, 1e-9)))
    with pytest.raises(InvalidArgument, match=r"^shares: must be empty"):
        mechanism("measurement").plan(replace(setting, shares=asking().shares))
    with pytest.raises(InvalidArgument, match=r"^options.noise: is for other attributes"):
        mechanism("measurement").plan(replace(setting, attributes=(4, 3, 2, 5)))
    with pytest.raises(InvalidArgument, match=r"^options.standing: must name"):
        mechanism("standing").plan(replace(asking(), options={}))
    with pytest.raises(InvalidArgument, match=r"^options.standing: does not name"):
        mechanism("standing").plan(replace(asking(), options={STANDING_OPTION: "f" * 32}))
    with pytest.raises(InvalidArgument, match=r"^options.standing: names a measurement of other attributes"):
        mechanism("standing").plan(replace(asking(), attributes=(4, 3, 2, 5)))


def test_attributes_with_an_order_are_measured_by_levels() -> None:
    edges = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    schema = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", bin_labels(edges), edges)))
    noise = planned_noise({}, schema, DATA)
    assert noise.ordered == schema.ordered == (1,)
    assert len(noise.parameters) == 1 + 3 + 3  # 5 bins have 3 levels


def test_code_words_of_all_statements_share_one_at_most() -> None:
    """Kraft's inequality: all boxes, and all cells, of a tiny family."""
    schema = Schema.from_json('{"a": 3, "b": 2}')
    family = ResidualFamily.closed(schema.sizes, [(0, 1)])
    choices = [
        [
            Among(name, tuple(map(str, kept)))
            for number in range(1, size)
            for kept in itertools.combinations(range(size), number)
        ]
        for name, size in (("a", 3), ("b", 2))
    ]
    boxes: list[Statement] = [*choices[0], *choices[1], *map(AllOf, itertools.product(*choices))]
    cells: list[Statement] = [Marginal(("a", "b")), Marginal(("a",)), Marginal(("b",))]
    workload = compile_workload([*boxes, *cells], schema)
    lengths = code_lengths(workload, family)
    assert (2.0**-lengths).sum() <= 1
    single, pair = lengths[: len(choices[0])], lengths[8 : len(boxes)]
    assert single.max() < pair.max()


def test_own_code_words_of_all_tables_share_one_at_most() -> None:
    """The same where no family is given, as in grants: a word says which attributes its table is over."""
    schema = Schema(tuple(Attribute(f"x{number}", ("0", "1")) for number in range(40)))
    tables = [(name,) for name in schema.names] + list(itertools.combinations(schema.names[:6], 2))
    lengths = [own_code_lengths(compile_workload([Marginal(axes)], schema)) for axes in tables]
    assert sum(float((2.0**-each).sum()) for each in lengths) <= 1


def test_negations_are_as_simple_as_what_they_negate_and_alternatives_are_not() -> None:
    family = ResidualFamily.closed(SCHEMA.sizes, [(0, 1), (0, 4), (1, 4)])
    asked: list[Statement] = [(a == "1") & (b == "2"), ~((a == "1") & (b == "2")), (a == "1") | (b == "2")]
    simple, negated, either = code_lengths(compile_workload(asked, SCHEMA), family).tolist()
    assert simple == negated
    assert either >= simple


def test_a_code_word_is_as_long_as_what_it_says() -> None:
    """Added up by hand from `residuals.reach`: kind, number of boxes, their coefficients, sets and categories."""
    schema = Schema.from_json('{"a": 40, "b": 40}')
    family = ResidualFamily.closed(schema.sizes, [(0, 1)])
    one, other = ((attribute("a") == value) & (attribute("b") == value) for value in ("3", "5"))
    asked: list[Statement] = [attribute("a") == "3", one, one | other, Among("a", ("3", "7")), Marginal(("a",))]
    lengths = code_lengths(compile_workload(asked, schema), family)
    kind, of_three_sets = 1, 2
    category = 1 + (40 * 41 // 2).bit_length()  # a run of one, which is shorter to say than a choice of one
    coefficient = (2 * 256).bit_length()  # from -256 to 256
    assert lengths[0] == kind + 1 + of_three_sets + category
    assert lengths[1] == kind + 1 + of_three_sets + 2 * category
    assert lengths[2] == kind + 2 + 2 * (coefficient + of_three_sets + 2 * category)
    assert lengths[3] == kind + 1 + of_three_sets + 1 + (41 * math.comb(40, 2)).bit_length()
    assert set(lengths[4:].tolist()) == {2 + of_three_sets + (40).bit_length()}
    some: list[Statement] = [
        Marginal(("a",), where=attribute("b") == "3"),
        Marginal(("a",), where=(attribute("b") == "3") & Among("a", ("3", "5"))),
        Marginal(("a",), where=(attribute("b") == "3") | (attribute("a") == "5")),
    ]
    each = code_lengths(compile_workload(some, schema), family).reshape(3, 40)
    assert set(each[:2].ravel().tolist()) == {lengths[1]}  # as the condition that says the same of each cell
    # All of a row, less what is outside of column 3 and row 5.
    rest = 1 + (41 * math.comb(40, 39)).bit_length()
    assert set(each[2].tolist()) == {kind + 2 + 2 * (coefficient + of_three_sets + category) + rest}


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_either_side_of_an_interval_has_half_of_its_part_of_beta(beta: float) -> None:
    """By Chernoff's bound: `exp(-r^2 / 2)` on each side, of a statement with so long a code word."""
    bits = np.arange(60)
    for each, reach in zip(bits.tolist(), reaches(log_chance(beta), bits).tolist(), strict=True):
        assert beta * 2.0**-each * (1 - 1e-5) <= 2 * math.exp(-(reach**2) / 2) <= beta * 2.0**-each


@pytest.mark.parametrize("records", [3, 7 * 10**5, 10**9 + 7])
@pytest.mark.parametrize("deviation", [0.0, 1 / 3])
def test_an_interval_covers_the_rounding_of_everything_in_it(records: int, deviation: float) -> None:
    """A truth as far off as the noise may be, and the slack of the sums beyond it, on either side."""
    reach, slack = np.full(50, 7.1), np.full(50, 1e-6)
    counts = np.arange(50, dtype=np.float64) * (records / 101)
    told = measured_answers(
        Estimates(np.asarray(counts, np.float64), np.full(50, deviation**2), slack), records, reach
    )
    for count, low, high in zip(counts.tolist(), told.lows.tolist(), told.highs.tolist(), strict=True):
        off = Fraction(7.1) * Fraction(deviation) + Fraction(1e-6)
        for truth in (Fraction(count) - off, Fraction(count) + off):
            assert low <= max(Fraction(0), min(truth / records, Fraction(1))) * 2**40 <= high
