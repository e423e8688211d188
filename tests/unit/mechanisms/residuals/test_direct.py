"""Answers that a measurement tells directly: values, deviations, and half-widths for whoever asks whatever."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.predicates import AllOf, Among, AnyOf, Not
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.product_terms import product_terms
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.direct import UniformReach, answerable, direct_answers
from equipoise_server.mechanisms.residuals.measurement import Measured, measure

SCHEMA = Schema(
    tuple(Attribute(name, tuple("012345"[:size])) for name, size in zip("abcd", (6, 3, 1, 2), strict=True))
)
PAIRS = list(itertools.combinations(range(4), 2))
CHANCE = Fraction(1, 20)
RHO = 0.01
STATEMENTS: dict[str, Statement] = {
    "a marginal": Marginal(("b", "a")),
    "of one attribute": Marginal(("d",)),
    "with an axis of one category": Marginal(("c", "d")),
    "a cell": AllOf((Among("a", ("1",)), Among("b", ("2",)))),
    "a range": AllOf((Among("a", ("1", "2", "3")), Among("b", ("0",)))),
    "a box": AllOf((Among("a", ("0", "2", "5")), Among("d", ("0",)))),
    "one or the other": AnyOf((Among("a", ("0", "2")), Among("b", ("1",)))),
    "neither": Not(AnyOf((Among("a", ("0", "2")), Among("b", ("1",))))),
    "a marginal of some records": Marginal(("a",), where=Among("b", ("0", "2"))),
    "of its own attribute": Marginal(("a",), where=AllOf((Among("a", ("0", "1")), Among("d", ("1",))))),
}


def single(statement: Statement) -> CompiledWorkload:
    return compile_workload([statement], SCHEMA)


def table() -> NDArray[np.int64]:
    choose = np.random.default_rng(1)
    return choose.multinomial(10_000, choose.dirichlet(np.full(SCHEMA.universe_size, 0.5))).astype(np.int64)


def family(ordered: tuple[int, ...] = ()) -> ResidualFamily:
    return ResidualFamily.closed(SCHEMA.sizes, PAIRS, ordered)


def measured(run: int, ordered: tuple[int, ...] = ()) -> Measured:
    noise = least_summed(family(ordered), RHO).noise
    return measure(DenseCounts(table(), SCHEMA.sizes), noise, run.to_bytes(32, "big"), "test")


@pytest.mark.nightly
@pytest.mark.parametrize("ordered", [(), (0,)], ids=["in no order", "by levels"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_errors_have_no_more_than_the_stated_deviation_and_no_bias(name: str, ordered: tuple[int, ...]) -> None:
    """Of 300 runs; a false alarm of any case is rarer than 1e-6 (normal tails, 7 deviations)."""
    statement, reach, runs = single(STATEMENTS[name]), UniformReach(family(ordered), Fraction(1, 10**9)), 300
    told = [direct_answers(measured(run, ordered), reach, statement) for run in range(runs)]
    truth = statement.counts(table())
    errors = np.array([each.counts for each in told]) - truth
    deviation = told[0].deviation
    assert (np.abs(errors.mean(axis=0)) <= 7 * deviation / math.sqrt(runs) + 1e-6).all()
    spread = errors.std(axis=0)
    assert (spread <= deviation * (1 + 7 / math.sqrt(2 * runs)) + 1e-6).all()
    exact = max(sum(terms.queries.tolist().count(0) for terms in product_terms(statement)), 1) == 1
    if exact:  # of one box the deviation is known, and not only bounded
        assert (spread >= deviation * (1 - 7 / math.sqrt(2 * runs)) - 1e-6).all()
    assert all((np.abs(error) <= each.reach).all() for error, each in zip(errors, told, strict=True))


def test_what_takes_more_words_to_say_has_wider_half_widths() -> None:
    noise, reach = measured(1), UniformReach(family(), CHANCE)
    cell, some, box = (
        direct_answers(noise, reach, single(STATEMENTS[name])) for name in ("a cell", "a range", "a box")
    )
    multipliers = [float(each.reach[0] / each.deviation[0]) for each in (cell, some, box)]
    assert multipliers == sorted(multipliers)
    assert multipliers[0] < multipliers[2]
    assert multipliers[0] == pytest.approx(reach.cells(), rel=1e-6)


@pytest.mark.slow
def test_whoever_chooses_the_statement_with_the_largest_error_finds_it_in_its_interval() -> None:
    """The worst of all predicates about two attributes, chosen by an all-knowing analyst.

    Half-widths that hold for a statement fixed in advance fail in half of all runs: the mutant that this is for.
    """
    boxes = [
        AllOf((Among("a", first), Among("b", second))) for first in subsets("012345") for second in subsets("012")
    ]
    asked = compile_workload(boxes, SCHEMA)
    reach, truth, fixed = UniformReach(family(), CHANCE), asked.counts(table()), 0
    for run in range(20):
        told = direct_answers(measured(run), reach, asked)
        errors = np.abs(told.counts - truth)
        assert (errors <= told.reach).all()
        alone = math.sqrt(2 * math.log(2 / float(CHANCE))) * told.deviation
        fixed += bool((errors > alone).any())
    assert fixed >= 10


def test_a_sum_takes_more_words_than_a_box_unless_it_is_one() -> None:
    """Weights that are none but 0 and 1 choose records, as a box does."""
    noise, reach = measured(1), UniformReach(family(), CHANCE)
    first = Among("b", ("0",))
    asked = [
        single(each)
        for each in (
            STATEMENTS["a cell"],
            AllOf((Among("a", ("0", "2", "5")), first)),
            Sum("a", where=first),
            Sum("d", ("b",)),
            Sum("a", low=4),
        )
    ]
    told = [direct_answers(noise, reach, each) for each in asked]
    cell, box, by_weight, second, highest = (
        float(((each.reach - own.weighted) / each.deviation)[0]) for each, own in zip(told, asked, strict=True)
    )
    assert box * 1.05 < by_weight  # about the same two attributes
    assert second == pytest.approx(cell, rel=1e-3)
    assert highest == pytest.approx(cell, rel=1e-3)


def test_whoever_chooses_the_sum_with_the_largest_error_finds_it_in_its_interval() -> None:
    """Of every attribute, between any two ends, for all others' cells and boxes; also what rounding takes."""
    sums = [
        Sum(one, by, where, low, high)
        for one, other, size in (("a", "b", 6), ("b", "a", 3))
        for low, high in itertools.combinations(range(size), 2)
        for by, where in (((), None), ((other,), None), ((), Among(other, ("0", "2"))))
    ]
    asked, reach = compile_workload(sums, SCHEMA), UniformReach(family(), CHANCE)
    truth, beyond = asked.counts(table()), 0
    for run in range(3):
        told = direct_answers(measured(run), reach, asked)
        errors = np.abs(told.counts - truth)
        assert (errors <= told.reach).all()
        beyond += bool((errors > 2 * told.deviation + 1).any())
    assert beyond >= 1


def subsets(categories: str) -> list[tuple[str, ...]]:
    sizes = range(1, len(categories))
    return [each for size in sizes for each in itertools.combinations(categories, size)]


def test_only_statements_of_the_family_are_told() -> None:
    assert all(answerable(family(), single(each)) for each in STATEMENTS.values())
    assert not answerable(family(), single(Marginal(("a", "b", "d"))))
    assert not answerable(family(), single(Marginal(("a", "b"), where=Among("d", ("0",)))))


def test_everybody_is_counted_exactly() -> None:
    everybody = single(AnyOf((Among("a", ("0",)), Not(Among("a", ("0",))))))
    told = direct_answers(measured(3), UniformReach(family(), CHANCE), everybody)
    assert told.counts[0] == pytest.approx(10_000, abs=told.reach[0])
