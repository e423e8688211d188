"""A prior's plan from public facts, and its measurement: what is charged, counted and fitted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.errors import BudgetExhausted, InvalidArgument, VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.marginal_tables import Axes
from equipoise.records.codec import codec_of
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import cell_variances, product_variances
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.forecast import dense_variance
from equipoise_server.mechanisms.prior.measure import fitted_prior, measured_for, support_of
from equipoise_server.mechanisms.prior.plan import MAX_CATEGORIES, PriorParameters, plan_prior, tables_of
from equipoise_server.mechanisms.prior.support import RECORDS, ListedSupport, Universe, support_size
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

SIZES = (4, 3, 1, 2)
SEED = b"\x07" * 32
RHO = Fraction(1, 20)


def setting_of(attributes: tuple[int, ...], shares: tuple[Share, ...] = ()) -> PublicParameters:
    return PublicParameters(
        records=3_000,
        universe_size=math.prod(attributes),
        shares=shares,
        unit="query",
        data_budget=Budget(1.0, 1e-6),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=attributes,
    )


def table() -> NDArray[np.int64]:
    weights = np.random.default_rng(1).gamma(0.4, size=math.prod(SIZES))
    return np.random.default_rng(2).multinomial(3_000, weights / weights.sum())


class OnlyMarginals(DenseCounts):
    """A table that counts marginals and nothing else, and remembers which."""

    asked: list[Axes]

    def marginals(self, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
        self.asked = list(wanted)
        yield from super().marginals(self.asked)

    def dense(self) -> NoReturn:
        raise AssertionError("a prior counts marginals")

    def occupied(self) -> NoReturn:
        raise AssertionError("a prior counts marginals")

    def count(self, workload: object) -> NoReturn:
        raise AssertionError(f"a prior counts marginals, not {workload}")


def prior_of(parameters: PriorParameters, data: DenseCounts, seed: bytes) -> Prior:
    return fitted_prior(parameters, measured_for(parameters, setting_of(SIZES), data, seed))


def test_the_event_charges_exactly_what_the_noise_costs_and_no_more_than_was_given() -> None:
    parameters = plan_prior(setting_of(SIZES), RHO)
    event = parameters.events()[0]
    assert event.rho == Fraction(parameters.noise.rho())
    assert RHO * Fraction(99, 100) < event.rho <= RHO
    assert parameters.truncation() == 0


def test_what_samplers_truncate_is_counted_for_every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = plan_prior(setting_of(SIZES), RHO)
    monkeypatch.setattr(DiscreteGaussian, "truncation_delta", lambda law: Fraction(1, 1000))
    assert parameters.truncation() == Fraction(parameters.numbers, 1000)


def test_the_plan_depends_on_no_share() -> None:
    shares = (Share("a", 5, 5), Share("b", 700, 9000))
    assert plan_prior(setting_of(SIZES, shares), RHO) == plan_prior(setting_of(SIZES), RHO)


def test_ordered_attributes_are_measured_by_levels_at_no_more_cost_and_with_less_noise_on_ranges() -> None:
    sizes, axes = (16, 12, 3), (0, 1)
    usual = setting_of(sizes)
    plain, by_levels = plan_prior(usual, RHO), plan_prior(replace(usual, ordered=axes), RHO)
    assert (plain.noise.ordered, by_levels.noise.ordered) == ((), axes)
    assert RHO * Fraction(99, 100) < by_levels.rho <= RHO
    prefixes = np.tril(np.ones((16, 16))), np.tril(np.ones((12, 12)))
    all_pairs = [np.repeat(prefixes[0], 12, axis=0), np.tile(prefixes[1], (16, 1))]
    on_ranges = [float(product_variances(each.noise, axes, all_pairs).mean()) for each in (plain, by_levels)]
    on_cells = [float(cell_variances(each.noise, axes).mean()) for each in (plain, by_levels)]
    assert on_ranges[1] < 0.7 * on_ranges[0]
    assert on_cells[1] < 1.5 * on_cells[0]
    assert (
        on_ranges[1] / on_ranges[0] < dense_variance(by_levels) / dense_variance(plain) < on_cells[1] / on_cells[0]
    )


def test_parameters_travel_and_refuse_variances_of_other_tables() -> None:
    parameters = plan_prior(setting_of(SIZES), RHO)
    codec = codec_of(PriorParameters)
    assert codec.from_text(codec.to_text(parameters), "the prior") == parameters
    with pytest.raises(ValueError, match="2 variances for 3 tables"):
        replace(parameters, variances=parameters.variances[1:])
    text = codec.to_text(parameters).replace('"variances":[', '"variances":[7,')
    with pytest.raises(VerificationFailed, match="4 variances for 3 tables"):
        codec.from_text(text, "the prior")


def test_attributes_that_are_too_large_are_not_measured() -> None:
    """A statement about 65,536 categories would take tens of gigabytes to tell, and make a turn late."""
    assert tables_of((200, 400, 3, 1)) == [(0,), (2,), (0, 2)]
    assert tables_of((MAX_CATEGORIES, MAX_CATEGORIES + 1)) == [(0,)]


def test_what_no_prior_can_be_measured_of_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"options\.prior: needs the sizes"):
        plan_prior(replace(setting_of(SIZES), attributes=()), RHO)
    with pytest.raises(InvalidArgument, match=r"options\.prior: needs an attribute of 2 to"):
        plan_prior(setting_of((1, 1)), RHO)
    for rho in (Fraction(0), Fraction(1, 10**40)):
        with pytest.raises(BudgetExhausted, match="data_budget"):
            plan_prior(setting_of(SIZES), rho)


@pytest.mark.slow
def test_a_prior_is_planned_for_any_width_and_costs_what_its_support_does() -> None:
    wide, wider = (plan_prior(setting_of((2,) * attributes), RHO) for attributes in (30, 60))
    assert wide.support == wider.support == RECORDS
    assert 0.9 < wide.rho / RHO <= 1
    assert wide.memory_bytes() < wider.memory_bytes() < 2**30


def test_only_the_marginals_of_the_family_are_counted() -> None:
    data, parameters = OnlyMarginals(table(), SIZES), plan_prior(setting_of(SIZES), RHO)
    prior_of(parameters, data, SEED)
    assert sorted(data.asked) == [(0,), (0, 1), (0, 3), (1,), (1, 3), (3,)]
    with pytest.raises(ValueError, match="another universe"):
        prior_of(parameters, DenseCounts(np.ones(4, dtype=np.int64)), SEED)


def test_a_prior_comes_near_every_pair_and_is_the_same_to_the_bit_on_every_machine() -> None:
    """Its parameters are stated here: the search for them is in floating point, and recorded in the plan."""
    family = ResidualFamily.closed(SIZES, tables_of(SIZES))
    noise = ResidualNoise.of(family, [1 << 12, 1 << 12, 1 << 11, 1 << 16, 1 << 14, 1 << 14])
    data, parameters = DenseCounts(table(), SIZES), PriorParameters.of(noise)
    prior = prior_of(parameters, data, SEED)
    shares = (prior.weights / prior.weights.sum()).reshape(SIZES)
    truth = table().reshape(SIZES) / 3_000
    for axes in parameters.noise.largest:
        others = tuple(set(range(4)) - set(axes))
        assert np.abs(shares.sum(axis=others) - truth.sum(axis=others)).max() < 0.01
    assert np.abs(1 / 24 - truth).max() > 0.05
    assert hashlib.sha256(prior.potential.tobytes()).hexdigest()[:16] == "4745f0ece9f9ef9f"
    again = fitted_prior(parameters, measure(data, parameters.noise, SEED, "prior"))
    assert np.array_equal(again.potential, prior.potential)
    assert not np.array_equal(prior_of(parameters, data, bytes(32)).potential, prior.potential)


@pytest.mark.nightly
def test_a_wide_table_has_a_support_of_records_that_its_measurement_tells_of() -> None:
    """Of 2^28 possible records some are drawn: along the measured pairs, up to the noise and to single records."""
    sizes = (4,) * 14
    choose = np.random.default_rng(6)
    first = choose.integers(0, 4, 4_000)
    rows = np.column_stack([(first + choose.integers(0, 2, 4_000)) % 4 for _ in sizes])
    table = CodedCounts.of(sizes, rows.T.astype(np.uint8), np.ones(4_000, dtype=np.int64))
    family = ResidualFamily.closed(sizes, tables_of(sizes))
    measured = measure(table, least_summed(family, 2.0).noise, SEED, "prior")
    support = support_of(measured)
    assert isinstance(support, ListedSupport)
    assert support.size == support_size(sizes) == RECORDS
    every = np.ones(support.size, dtype=np.int64)
    for axes, true in table.marginals([(0, 1), (3, 9), (12, 13)]):
        joint, product = true / 4_000, np.multiply.outer(true.sum(axis=1), true.sum(axis=0)) / 4_000**2
        found = support.table(axes, every) / support.size
        # Three quarters along the tree: a pair that is no edge of it is told less, but not turned around.
        assert np.abs(found - (0.75 * joint + 0.25 * product)).max() < 0.06
        assert np.abs(found - product).max() > 0.01
    prior = fitted_prior(PriorParameters.of(measured.noise), measured)
    for axes, true in table.marginals([(0, 1), (3, 9), (12, 13)]):
        assert np.abs(support.table(axes, prior.weights) / prior.weights.sum() - true / 4_000).max() < 0.02


def test_a_small_universe_is_its_own_support() -> None:
    noise = least_summed(ResidualFamily.closed(SIZES, tables_of(SIZES)), 1.0).noise
    assert support_of(measure(DenseCounts(table(), SIZES), noise, SEED, "prior")) == Universe(SIZES)
    assert support_size(SIZES) == math.prod(SIZES)
