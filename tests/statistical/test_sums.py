"""Sums with independent noise, enumerated: a record shows no more than is charged, however sums are rounded.

The intervals of a standing measurement, of a fit to residuals and of pooled tables hold for sums, too: in so many
rounds a test raises a false alarm with probability `ALARM` at most, by the exact binomial law.

The enumerated universe has two categories of a group and three values, whose weights are 0, a half and 1. One
analyst asks for the sum in each group, another for the sum of all. Every table of two records is compared with
every neighbour.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import misses_shortened
from harness.exact_game import Law
from harness.wide_tables import SCHEMA as WIDE
from harness.wide_tables import SIZES, small_supports, wide_table
from numpy.typing import NDArray
from scipy.stats import binom
from statistical import tempting_statements as standing
from statistical.exact_noise import keeps_to, noise_law
from statistical.exact_pipeline import Pair

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.axis_weights import WHOLE, AxisWeights
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.reach import log_chance
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN, LAPLACE, IndependentNoise
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.standing.answering import answers_of

SCHEMA = Schema((Attribute("group", ("p", "q")), Attribute("value", ("0", "1", "2"))))
RECORDS = 2
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=6,
    shares=(Share("a", 1, 2, 2), Share("b", 1, 1, 1)),
    unit="query",
    data_budget=Budget(5.0, 0.01),
    analyst_budget=Budget(1.0, 0.01),
    beta=0.1,
    options={},
    attributes=SCHEMA.sizes,
)
ASKED = {
    "a": compile_workload([Sum("value", ("group",))], SCHEMA),
    "b": compile_workload([Sum("value")], SCHEMA),
}
ALARM, BETA, ROUNDS = 1e-9, 0.2, 40
both = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=lambda each: each.name)


def laws(mechanism: IndependentNoise) -> dict[tuple[int, ...], Law]:
    """What both analysts see of every table, by its records."""
    plan, found = mechanism.plan(SETTING), dict[tuple[int, ...], Law]()
    known: dict[bytes, Law] = {}
    for records in itertools.combinations_with_replacement(range(6), RECORDS):
        histogram: NDArray[np.int64] = np.bincount(records, minlength=6).astype(np.int64)
        # Tables with the same counts have the same law: the noise does not depend on them.
        counts = b"".join(own.counts(histogram).tobytes() for own in ASKED.values())
        if counts not in known:
            known[counts] = noise_law(mechanism, SETTING, plan, histogram, ASKED, ("a", "b"), RECORDS)
        found[records] = known[counts]
    return found


def a_record_shows_no_more_than_is_charged(mechanism: IndependentNoise) -> bool:
    seen, cost = laws(mechanism), mechanism.plan(SETTING).data_cost
    neighbours = [
        (one, other)
        for one, other in itertools.combinations(seen, 2)
        if len(set(one) & set(other)) >= RECORDS - 1 and seen[one] is not seen[other]
    ]
    assert neighbours
    return all(keeps_to(Pair.of(seen[one], seen[other]), cost) for one, other in neighbours)


@pytest.mark.thin(2)
@both
def test_a_record_shows_no_more_than_is_charged(mechanism: IndependentNoise) -> None:
    assert a_record_shows_no_more_than_is_charged(mechanism)


@pytest.mark.nightly
@both
def test_a_weight_beyond_the_whole_shows_more_than_is_charged(
    mechanism: IndependentNoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that counts three times, as if it were not divided by the range: the charge no longer covers it."""
    (table,) = ASKED["b"].restricted
    heavy = replace(ASKED["b"], restricted=(replace(table, weights=AxisWeights(1, (0, WHOLE, 3 * WHOLE))),))
    monkeypatch.setitem(ASKED, "b", heavy)
    assert not a_record_shows_no_more_than_is_charged(mechanism)


def test_a_standing_measurement_s_intervals_hold_for_sums() -> None:
    """All at once, at a beta of a half: also those of the cells whose noise is largest."""
    workload = compile_workload([Sum("a", ("b",)), Sum("b", ("a",), high=9), Sum("a")], standing.SCHEMA)
    truths, log, broken = workload.counts(standing.counts()) / standing.RECORDS, log_chance(0.5), 0
    for number in range(ROUNDS):
        answers = answers_of(workload, standing.measured(number), log)
        broken += bool(answers.misses(truths).any())
    assert broken <= binom.isf(ALARM, ROUNDS, 0.5)


@pytest.mark.parametrize("name", ["projection", pytest.param("pooled", marks=pytest.mark.nightly)])
def test_intervals_hold_for_sums_where_possible_records_cannot_be_listed(name: str) -> None:
    """And they are no wider than they must be: cut to a tenth they fail."""
    records, asked = 4_000, {"a": compile_workload([Sum("x1", ("x2",)), Sum("x5", where=None, low=1)], WIDE)}
    setting = PublicParameters(
        records=records,
        universe_size=int(np.prod(np.array(SIZES, dtype=object))),
        shares=(Share("a", 2, 5, 3),),
        unit="query",
        data_budget=Budget(1.0, 1e-6),
        analyst_budget=Budget(1.0, 1e-6),
        beta=BETA,
        options={"ways": 2} if name == "pooled" else {},
        attributes=SIZES,
    )
    table, broken, cut = wide_table(records), 0, 0
    truths = table.count(asked["a"]) / records
    with small_supports(500):
        plan = MECHANISMS[name].plan(setting)
        for number in range(ROUNDS):
            outcome = MECHANISMS[name].run(setting, plan, table, asked, number.to_bytes(32), lambda *_: None)
            assert outcome.answers["a"].certified.all()
            broken += bool(outcome.answers["a"].misses(truths).any())
            cut += bool(misses_shortened(outcome.answers["a"], truths, 0.1).any())
    assert broken <= binom.isf(ALARM, ROUNDS, BETA) < cut
