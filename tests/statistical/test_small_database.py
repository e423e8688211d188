"""`small_db`, enumerated: the law of the drawn database against a naive reference and the charge; and faults."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from harness.exact_game import Law, masks_workload, table_workload
from harness.exponential_law import exponential_law
from numpy.typing import NDArray
from statistical.exact_noise import TINY, keeps_to, use_of
from statistical.exact_pipeline import SEED, Choices, ChosenStream, Pair, every_run

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, Cost, ZcdpEvent, events_from_json
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms import make_plan
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.small_db import mechanism, plan
from equipoise_server.mechanisms.small_db.mechanism import SmallDatabase
from equipoise_server.mechanisms.small_db.plan import (
    MAX_DATABASES,
    SmallDatabaseParameters,
    nearest,
    number_of_databases,
)
from equipoise_server.randomness.stream import KeyedStream

UNIVERSE, RECORDS, SIZE = 3, 4, 2
TABLE, CELLS, OTHER = table_workload([3], UNIVERSE), masks_workload([1, 6], UNIVERSE), masks_workload([2], UNIVERSE)


def setting_of(asked: dict[str, CompiledWorkload], budget: Budget) -> PublicParameters:
    shares = tuple(
        Share(name, own.statement_count, own.query_count, own.l1_sensitivity) for name, own in asked.items()
    )
    return PublicParameters(
        RECORDS, UNIVERSE, shares, "query", budget, Budget(1.0, 0.01), 0.1, {"database_size": SIZE}
    )


SETTING = setting_of({"a": TABLE, "b": CELLS}, Budget(3.0, 1e-6))


def law_of(
    setting: PublicParameters, histogram: NDArray[np.int64], asked: dict[str, CompiledWorkload], *viewers: str
) -> Law:
    """The law of what the viewers get: the shipped run, with every draw replaced by its exact law."""
    plan = SmallDatabase().plan(setting)

    def program(choices: Choices) -> tuple[int, ...]:
        def draw(exponents: NDArray[np.int64], count: int, _: object) -> NDArray[np.int64]:
            assert count == 1
            return np.array([choices.choose([float(each) for each in exponential_law(exponents)])])

        with (
            patch.object(KeyedStream, "derive", lambda *_: ChosenStream(choices)),
            patch.object(mechanism, "draw_exponential", draw),
        ):
            outcome = SmallDatabase().run(setting, plan, DenseCounts(histogram), asked, SEED, lambda *_: None)
        return tuple(int(value) for name in viewers for value in outcome.answers[name].values)

    law: Law = {}
    for outcome, chance in every_run(program):
        law[outcome] = law.get(outcome, 0.0) + chance
    return law


def tables() -> Iterator[NDArray[np.int64]]:
    for counts in itertools.product(range(RECORDS + 1), repeat=UNIVERSE):
        if sum(counts) == RECORDS:
            yield np.array(counts)


def pairs(setting: PublicParameters, asked: dict[str, CompiledWorkload]) -> Iterator[Pair]:
    """What everybody gets of every two tables of which one record differs."""
    laws = [(table, law_of(setting, table, asked, *asked)) for table in tables()]
    for (one, law), (other, near) in itertools.combinations(laws, 2):
        if np.abs(one - other).sum() == 2:
            yield Pair.of(law, near)


def a_record_shows_no_more_than_is_charged() -> bool:
    cost = SmallDatabase().plan(SETTING).data_cost
    return all(keeps_to(pair, cost) for pair in pairs(SETTING, {"a": TABLE, "b": CELLS}))


def test_the_draw_is_the_naive_exponential_mechanism() -> None:
    histogram = np.array([1, 0, 3])
    setting = setting_of({"a": TABLE}, Budget(3.0, 1e-6))
    expected: Law = {}
    for drawn in itertools.combinations_with_replacement(range(UNIVERSE), SIZE):
        masks = [{0}, {1}, {2}, {0, 1}]  # the table's cells, and the predicate
        seen = [sum(x in mask for x in drawn) for mask in masks]
        true = [sum(int(histogram[x]) for x in mask) for mask in masks]
        worst = max(abs(RECORDS * one - SIZE * other) for one, other in zip(seen, true, strict=True))
        key = tuple((hits << GRID_BITS) // SIZE for hits in seen)
        expected[key] = expected.get(key, 0.0) + math.exp(-3.0 * worst / (2 * SIZE))
    total = math.fsum(expected.values())
    law = law_of(setting, histogram, {"a": TABLE}, "a")
    assert law.keys() == expected.keys()
    assert all(law[key] == pytest.approx(weight / total, rel=1e-9) for key, weight in expected.items())


@pytest.mark.full
def test_a_record_shows_what_is_charged_and_no_more() -> None:
    written = " ".join(str(SmallDatabase.__doc__).split())
    assert "each analyst's database is epsilon-DP and costs `epsilon^2 / 8` in zCDP" in written
    plan = SmallDatabase().plan(SETTING)
    epsilon = SmallDatabaseParameters.from_json(plan.parameters).epsilon
    assert plan.data_cost.epsilon == 2 * epsilon * RHO_UNIT == 3 * RHO_UNIT
    seen = list(pairs(SETTING, {"a": TABLE, "b": CELLS}))
    assert all(keeps_to(pair, plan.data_cost) for pair in seen)
    assert max(use_of(pair, plan.data_cost) for pair in seen) > 0.5
    # One draw alone, as what it costs in zCDP.
    alone = setting_of({"a": TABLE}, Budget(3.0, 1e-6))
    rho = Cost(rho=math.ceil(Fraction(9, 8) * RHO_UNIT))
    seen = list(pairs(alone, {"a": TABLE}))
    assert all(keeps_to(pair, rho) for pair in seen)
    assert max(use_of(pair, rho) for pair in seen) > 0.4


def test_many_analysts_are_charged_in_zcdp() -> None:
    asked = dict.fromkeys([f"analyst-{number}" for number in range(40)], CELLS)
    plan = SmallDatabase().plan(setting_of(asked, Budget(1.0, 1e-6)))
    part = events_from_json(plan.data_events)[0]
    epsilon = SmallDatabaseParameters.from_json(plan.parameters).epsilon
    assert part == ZcdpEvent("draws", epsilon**2 / 8, 40)
    assert epsilon > Fraction(1, 40)
    assert plan.data_cost.epsilon == 0


def test_an_analyst_shows_another_nothing() -> None:
    laws = [
        law_of(SETTING, np.array([2, 1, 1]), {"a": TABLE, "b": other}, "a")
        for other in (CELLS, OTHER, masks_workload([], UNIVERSE))
    ]
    laws.append(law_of(SETTING, np.array([2, 1, 1]), {"a": TABLE}, "a"))
    assert all(float(np.abs(pair.ours - pair.theirs).sum()) < TINY for pair in map(Pair.of, laws[1:], laws))
    assert SmallDatabase().plan(SETTING).analyst_cost == Cost()
    assert analysts_draw_for_themselves()


def analysts_draw_for_themselves() -> bool:
    """Two analysts with one question get databases of their own in some of thirty-two runs."""
    asked = {"a": CELLS, "b": CELLS}
    setting = setting_of(asked, Budget(1.0, 0.01))
    plan, same = SmallDatabase().plan(setting), []
    for number in range(32):
        outcome = SmallDatabase().run(
            setting, plan, DenseCounts(np.array([2, 1, 1])), asked, number.to_bytes(32), lambda *_: None
        )
        same.append(outcome.answers["a"].values.tobytes() == outcome.answers["b"].values.tobytes())
    return not all(same)


def halved_sensitivity(patches: pytest.MonkeyPatch) -> None:
    """Scores that are believed to move by half a database."""
    units = plan.units_of_score
    for module in (plan, mechanism):
        patches.setattr(module, "units_of_score", lambda epsilon, size: 2 * units(epsilon, size))


def summed_scores(patches: pytest.MonkeyPatch) -> None:
    """Errors added up over the queries, which moves with each of them."""

    def added(workload: CompiledWorkload, data: Counts, databases: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = np.array([workload.record_counts(each) for each in databases])
        errors = data.records * counts - databases.shape[1] * data.count(workload)
        return np.asarray(np.abs(errors).sum(axis=1))

    patches.setattr(mechanism, "scores", added)


def realised_charge(patches: pytest.MonkeyPatch) -> None:
    """A charge for one of the two analysts."""
    charge_of = accounting.charge_of
    patches.setattr(
        make_plan, "charge_of", lambda parts: replace(charge_of(parts), epsilon=charge_of(parts).epsilon // 2)
    )


def reused_stream(patches: pytest.MonkeyPatch) -> None:
    """One stream for all analysts, each of whom begins it anew."""

    def forgetful(seed: bytes, _: CompiledWorkload, *labels: str) -> KeyedStream:
        return KeyedStream.derive(seed, labels[0])

    patches.setattr(mechanism, "own_stream", forgetful)


@pytest.mark.sparse(4)
@pytest.mark.full
@pytest.mark.parametrize(
    ("check", "switch"),
    [
        (a_record_shows_no_more_than_is_charged, halved_sensitivity),
        (a_record_shows_no_more_than_is_charged, summed_scores),
        (a_record_shows_no_more_than_is_charged, realised_charge),
        (analysts_draw_for_themselves, reused_stream),
    ],
)
def test_the_mutant_is_caught(
    check: Callable[[], bool], switch: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(monkeypatch)
    assert not check()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_some_database_is_as_near_as_is_promised(size: int) -> None:
    """For every table of four records over three, and all queries there are: the best database, by trying all."""
    setting = setting_of({"a": masks_workload(range(1, 7), UNIVERSE)}, Budget(1.0, 0.01))
    masks = np.array([[mask >> x & 1 for x in range(UNIVERSE)] for mask in range(1, 7)])
    databases = [np.bincount(each, minlength=UNIVERSE) for each in mechanism.all_databases(UNIVERSE, size)]
    assert len(databases) == number_of_databases(UNIVERSE, size)
    worst = max(
        min(float(np.abs(masks @ (drawn / size - table / RECORDS)).max()) for drawn in databases)
        for table in tables()
    )
    assert worst <= nearest(setting, size) + TINY
    assert nearest(setting, size) == 0 or worst >= nearest(setting, size) / 4


def test_what_cannot_be_enumerated_is_refused_with_what_can() -> None:
    beyond = replace(SETTING, universe_size=MAX_DATABASES + 1, options={})
    with pytest.raises(InvalidArgument, match="262,144 possible records") as refused:
        SmallDatabase().plan(beyond)
    assert refused.value.field == "universe_size"
    with pytest.raises(InvalidArgument, match="9 records each") as refused:
        SmallDatabase().plan(replace(SETTING, universe_size=12, options={"database_size": 10}))
    assert refused.value.field == "options.database_size"
    assert number_of_databases(12, 9) <= MAX_DATABASES < number_of_databases(12, 10)
    for nonsense in (0, -1, 2.5, "2", True):
        with pytest.raises(InvalidArgument, match="whole number"):
            SmallDatabase().plan(replace(SETTING, options={"database_size": nonsense}))


def test_the_size_that_promises_least_error_is_chosen() -> None:
    free = replace(SETTING, records=10_000, options={})
    plan = SmallDatabase().plan(free)
    size = SmallDatabaseParameters.from_json(plan.parameters).size
    assert size > 10
    for forced in (size // 2, size - 1, size + 1, 2 * size):
        other = SmallDatabase().plan(replace(free, options={"database_size": min(forced, 256)}))
        assert other.max_half_width >= plan.max_half_width
