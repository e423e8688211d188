"""The mean errors that plans expect, beside what is measured on a table that no constant was chosen on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.residuals.allocation import least_largest
from equipoise_server.mechanisms.residuals.expected_error import part_of_residuals

SIZES, RECORDS = (6, 5, 4, 3, 3), 20_000
SCHEMA = Schema(tuple(Attribute(f"m{place}", tuple("abcdef"[:size])) for place, size in enumerate(SIZES)))
# The law of noise is known; what a fit leaves of it is a formula.
EXACT, FITTED = ("gaussian", "laplace", "histogram"), ("pooled", "equilibrium", "projection")


@cache
def table() -> DenseCounts:
    """A mixture of seven profiles."""
    choose = np.random.default_rng(2718)
    profile = choose.choice(7, RECORDS, p=choose.dirichlet(np.ones(7)))
    codes = [
        (choose.random((RECORDS, 1)) > np.cumsum(choose.dirichlet(np.ones(size), 7), axis=1)[profile, :-1]).sum(
            axis=1
        )
        for size in SIZES
    ]
    cells = np.ravel_multi_index(tuple(codes), SIZES)
    return DenseCounts(np.bincount(cells, minlength=SCHEMA.universe_size).astype(np.int64), SIZES)


def conjunctions(count: int) -> list[Statement]:
    """Of two conditions, each of half of the categories."""
    choose = np.random.default_rng(count)
    made: list[Statement] = []
    for _ in range(count):
        some = [SCHEMA.attributes[place] for place in np.sort(choose.choice(len(SIZES), 2, replace=False))]
        halves = [np.sort(choose.permutation(each.size)[: (each.size + 1) // 2]).tolist() for each in some]
        made.append(
            AllOf(
                tuple(
                    Among(each.name, tuple(each.categories[place] for place in half))
                    for each, half in zip(some, halves, strict=True)
                )
            )
        )
    return made


ASKED: dict[str, list[Statement]] = {
    "conditions": conjunctions(300),
    "tables": [Marginal(names) for names in itertools.combinations(SCHEMA.names, 2)],
    "both": [*conjunctions(300), Marginal(("m0", "m1"))],
}


@cache
def workload(asked: str) -> CompiledWorkload:
    return compile_workload(ASKED[asked], SCHEMA)


def setting(shares: Sequence[Share], records: int = RECORDS) -> PublicParameters:
    budgets = Budget(1.0, 1e-9), Budget(1.0, 1e-6)
    return PublicParameters(
        records, SCHEMA.universe_size, tuple(shares), "query", *budgets, 0.05, {}, attributes=SIZES
    )


def share_of(asked: CompiledWorkload) -> Share:
    """A share that declares all of a workload's numbers."""
    numbers = asked.statement_count, asked.query_count, asked.l1_sensitivity, asked.support, asked.ways
    return Share("ana", *numbers)


@pytest.mark.sparse(5)
@pytest.mark.thin(8)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", [*EXACT, *FITTED])
def test_plans_expect_about_what_is_measured(name: str, asked: str) -> None:
    own, means = workload(asked), []
    public = setting([share_of(own)])
    plan = mechanism(name).plan(public)
    for seed in range(3):
        run = mechanism(name).run(public, plan, table(), {"ana": own}, bytes([seed]) * 32, lambda *_: None)
        errors = np.abs(run.answers["ana"].values / ONE - table().count(own) / RECORDS)
        means.append(float(errors.mean()))
    factor = 1.4 if name in EXACT else 2.5
    assert plan.expected_error / factor <= np.mean(means) <= plan.expected_error * factor


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["histogram", "pooled", "equilibrium", "projection", "multiplicative_weights"])
def test_a_table_beside_many_conditions_does_not_make_them_cells(name: str) -> None:
    """A share of 2,000 conditions and one table of 24 cells has 1.01 queries a statement, which no table has."""
    conditions = Share("ana", 2_000, 2_000, 2_000)
    both = Share("ana", 2_001, 2_024, 2_002)
    one, other = (mechanism(name).plan(setting([share])).expected_error for share in (conditions, both))
    assert 0.9 * one <= other <= 1.05 * one


@pytest.mark.slow
@pytest.mark.parametrize("name", ["equilibrium", "multiplicative_weights"])
def test_what_shares_declare_of_attributes_tells_what_a_prior_knows(name: str) -> None:
    """Pairs are measured: with many records a statement about two errs far less than one that may be about all."""

    def expected(ways: int) -> float:
        public = setting([Share("ana", 500, 500, ways=ways)], 5_000_000)
        return mechanism(name).plan(replace(public, options={"prior": "own"})).expected_error

    assert expected(2) < 0.5 * expected(0)
    assert expected(3) == expected(0)


@pytest.mark.parametrize(
    ("sizes", "ways", "tables"),
    [((10,) * 12, 2, 66), ((4,) * 7, 3, 35), ((9, 8, 7, 6, 6, 5, 5, 4, 4, 3), 3, 20), ((5, 4, 3), 2, 1)],
)
def test_residuals_of_own_tables_leave_as_much_noise_as_expected(
    sizes: tuple[int, ...], ways: int, tables: int
) -> None:
    """Against the allocation itself, which knows the sets: all of them, or some that are drawn."""
    every = list(itertools.combinations(range(len(sizes)), ways))
    drawn = np.random.default_rng(3).choice(len(every), tables, replace=False)
    family = ResidualFamily.closed(sizes, [every[place] for place in drawn])
    noise = least_largest(family, 1.0).noise
    cells = [math.prod(sizes[axis] for axis in axes) for axes in noise.largest]
    found = [math.sqrt(cell_variances(noise, axes).mean()) for axes in noise.largest]
    on_counts = math.sqrt(tables)  # replacing a record moves two cells of each table by one
    part = np.average(found, weights=cells) / on_counts
    assert part_of_residuals(len(sizes), ways, tables, sum(cells) / tables) == pytest.approx(part, rel=0.12)


@pytest.mark.parametrize(("width", "tables"), [(12, 66), (23, 253), (26, 325), (40, 5)])
def test_what_the_bound_of_the_worst_pair_costs_is_expected(width: int, tables: int) -> None:
    """Beyond 22 attributes that tables are about, the bound adds a ninth to the variance, and below nothing."""
    pairs = list(itertools.combinations(range(width), 2))
    apart = [(axis, axis + 1) for axis in range(0, 2 * tables, 2)]
    family = ResidualFamily.closed((10,) * width, pairs if tables > width else apart)
    noise = least_largest(family, 1.0).noise
    variance = np.mean([cell_variances(noise, axes).mean() for axes in noise.largest])
    part = math.sqrt(variance / tables)
    assert part_of_residuals(width, 2, tables, 100) == pytest.approx(part, rel=0.02)


def test_drawn_records_are_expected_to_follow_only_so_many_numbers_as_finely_as_the_noise() -> None:
    """As measured: with a million records a fit to all pairs of 50 attributes gains nothing, with 100,000 half."""

    def left(width: int, records: int) -> float:
        tables = math.comb(width, 2)
        share = Share("ana", tables, 100 * tables, 2 * tables, ways=2)
        public = replace(
            setting([share], records),
            universe_size=10**width,
            attributes=(10,) * width,
            data_budget=Budget(1.0, 1 / records**2),
        )
        noise = mechanism("gaussian").plan(public).expected_error * part_of_residuals(width, 2, tables, 100)
        return mechanism("projection").plan(public).expected_error / noise

    assert left(100, 1_000_000) > 0.9
    assert left(50, 1_000_000) == pytest.approx(1.0, rel=1e-4)
    assert left(50, 100_000) < 0.55


def test_wide_tables_are_told_by_their_residuals_with_less_noise_than_on_their_counts() -> None:
    sizes = (10,) * 13
    public = replace(
        setting([Share("ana", 78, 7_800, 156, ways=2)], 1_000_000),
        universe_size=math.prod(sizes),
        attributes=sizes,
    )
    noisy, told = (mechanism(name).plan(public).expected_error for name in ("gaussian", "projection"))
    assert 0.8 * noisy < told < 0.9 * noisy


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pooled", "equilibrium"])
def test_conditions_that_cover_little_are_expected_to_err_less(name: str) -> None:
    little, dense = (
        mechanism(name).plan(setting([Share("ana", 500, 500, support=support)])).expected_error
        for support in (10, 0)
    )
    assert little < 0.7 * dense
