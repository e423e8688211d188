"""A grant's tables and a standing measurement fitted together: by least squares, and held against who knows all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT
from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.results import Answers
from equipoise.model.rounds import STANDING_OPTION, Share
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.queries.meanings import meaning_of
from equipoise.queries.predicates import Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.axis_bases import bases_of
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedMeasurement
from equipoise.residuals.told_counts import StandingNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import planned_starts
from equipoise_server.mechanisms.residuals.measurement import Measured, measure
from equipoise_server.mechanisms.standing.family import planned_noise

SIZES = (3, 4, 2)
COUNTS = np.array([200 + 37 * (number % 7) for number in range(math.prod(SIZES))])
RECORDS = int(COUNTS.sum())
DATA = DenseCounts(COUNTS, SIZES)
WHOLE = Marginal(("a", "b", "c"))
PRICE = RHO_UNIT // 1000
GRANT = GrantMechanism()
A, B, C = (attribute(name) for name in "abc")


@dataclass(frozen=True)
class Setting:
    """A table of three attributes, of which b may have an order, and the noise of its measured pairs."""

    ordered: bool

    @property
    def schema(self) -> Schema:
        named = [(name, tuple("0123"[:size])) for name, size in zip("abc", SIZES, strict=True)]
        return Schema(
            tuple(Attribute(name, labels, ordered=self.ordered and name == "b") for name, labels in named)
        )

    @property
    def noise(self) -> ResidualNoise:
        return planned_noise({"family": [["a", "b"], ["b", "c"], ["a", "c"]]}, self.schema, Budget(0.5, 1e-9))

    def wanted(self, statement: Statement, rho: int) -> Wanted:
        """What a grant is asked, with what the measurement tells of it."""
        asked = compile_single(statement, self.schema)
        meaning = meaning_of(asked, repr(statement).encode())
        return Wanted(meaning, rho, StandingNoise(self.noise, 1).tells(asked, meaning))

    def session(self, numbers: Measured, seed: bytes) -> GrantSession:
        """A grant that is given after the measurement."""
        data = numbers.to_bytes()
        named = ReleasedMeasurement("r-1", sha256(data).digest(), self.noise)
        setting = PublicParameters(
            records=RECORDS,
            universe_size=len(COUNTS),
            shares=(Share("ann", 1 << 20, 1 << 30),),
            unit="query",
            data_budget=Budget(20.0, 1e-6),
            analyst_budget=ANALYSTS,
            beta=0.05,
            options={"length": 1 << 20, STANDING_OPTION: named.as_option()},
            attributes=SIZES,
            ordered=self.schema.ordered,
            measured=data,
        )
        return GRANT.start(setting, planned_starts(GRANT, setting)[0].plan, DATA, seed)

    def ask(self, session: GrantSession, statement: Statement, rho: int) -> Answers:
        return session.answer(0, compile_single(statement, self.schema), repr(statement).encode(), rho)

    def least_squares(
        self, tables: Iterable[tuple[tuple[int, ...], NDArray[np.float64], float]], numbers: Measured
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The cells, and their covariances, by generalised least squares over all numbers that were released.

        `tables`: the axes of each table that was paid for, its noisy counts, and their variance.
        """
        cells = np.eye(len(COUNTS)).reshape(-1, *SIZES)
        rows, values, variances = [np.ones((1, len(COUNTS)))], [np.array([float(RECORDS)])], [np.array([1e-4])]
        for axes, noisy, variance in tables:
            away = tuple(1 + axis for axis in range(3) if axis not in axes)
            rows.append(cells.sum(axis=away).reshape(len(COUNTS), -1).T)
            values.append(noisy)
            variances.append(np.full(len(noisy), variance))
        noise = self.noise
        bases = bases_of(SIZES, noise.family.is_ordered)
        for axes in noise.family.sets:
            design = cells.sum(axis=tuple(1 + axis for axis in range(3) if axis not in axes))
            spread = np.zeros([bases[axis].places[-1].stop for axis in axes])
            for place, axis in enumerate(axes):
                design = bases[axis].analyse(design.astype(np.int64), 1 + place)
            for residual in noise.family.residuals_of(axes):
                own = tuple(bases[axis].places[level - 1] for axis, level in residual)
                spread[own] = float(noise.variance(residual))
            rows.append(design.reshape(len(COUNTS), -1).T.astype(float))
            values.append(numbers.numbers[axes].reshape(-1).astype(float))
            variances.append(spread.reshape(-1))
        design, weights = np.concatenate(rows), 1 / np.concatenate(variances)
        covariance = np.asarray(np.linalg.inv(design.T @ (design * weights[:, None])), dtype=np.float64)
        return covariance @ (design.T @ (np.concatenate(values) * weights)), covariance


PLAIN, ORDERED = Setting(False), Setting(True)
HALVES = (A != "0") & B.isin(["2", "3"]) & (C == "1")


def counts(answers: Answers) -> NDArray[np.float64]:
    """Values in records."""
    return np.asarray(answers.values * (RECORDS / 2.0**40))


def errors(answers: Answers) -> NDArray[np.float64]:
    """Standard errors in records."""
    return np.asarray(answers.standard_errors * (RECORDS / 2.0**40))


def weights_of(statement: Statement, schema: Schema) -> NDArray[np.int64]:
    """Which cells each count of a statement is the sum of: int64[k, cells]."""
    compiled = compile_single(statement, schema)
    return np.stack([compiled.counts(cell) for cell in np.eye(len(COUNTS), dtype=np.int64)], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [PLAIN, ORDERED], ids=["plain", "ordered"])
@pytest.mark.parametrize("statement", [HALVES, Marginal(("b",), where=C == "0"), Marginal(("a", "c")), A == "1"])
def test_what_was_paid_and_measured_is_fitted_by_least_squares(setting: Setting, statement: Statement) -> None:
    numbers = measure(DATA, setting.noise, bytes(32), "measurement")
    session = setting.session(numbers, bytes(32))
    paid = [((0, 1, 2), WHOLE, PRICE), ((1, 2), Marginal(("b", "c")), 8 * PRICE)]
    account, told = GrantAccount(RHO_UNIT), []
    for axes, table, rho in paid:
        setting.ask(session, table, rho)
        cost = account.pay(setting.wanted(table, rho))
        drawn = session._fits.drawn(setting.wanted(table, rho).meaning)
        if cost:
            assert drawn is not None
            told.append((axes, drawn.mean.counts, 2 * RHO_UNIT / (2 * cost)))
    cells, covariance = setting.least_squares(told, numbers)
    rows = weights_of(statement, setting.schema)
    variances = np.einsum("kc,cd,kd->k", rows, covariance, rows)
    answers = setting.ask(session, statement, 1)
    assert session._account.filter.spent == account.filter.spent  # it costs nothing
    if setting.ordered:  # levels of an order have different precisions, of which the least counts
        assert (errors(answers) >= np.sqrt(variances) * (1 - 1e-6)).all()
        return
    joined = account.precision.joined(*setting.wanted(statement, 1)[::2])
    assert joined is not None
    assert max(map(float, joined)) * RHO_UNIT / 2 == pytest.approx(variances.max(), rel=1e-5)
    np.testing.assert_allclose(errors(answers), np.sqrt(variances), rtol=1e-4)
    np.testing.assert_allclose(counts(answers), rows @ cells, atol=1e-2)


def test_the_joint_fit_lets_a_condition_cost_less_than_either_tells() -> None:
    """Of a box along three attributes the pairs and single attributes are measured, and only the rest is bought."""
    account = GrantAccount(RHO_UNIT)
    wanted = PLAIN.wanted(HALVES, 1)
    assert wanted.measured is not None
    assert account.precision.joined(wanted.meaning, wanted.measured) is None  # nothing was paid
    assert account.cost(PLAIN.wanted(HALVES, PRICE)) == PRICE
    account.pay(PLAIN.wanted(WHOLE, PRICE))
    without = account.precision.known(wanted.meaning)
    joined = account.precision.known(wanted.meaning, wanted.measured)
    assert joined > 3 * without
    assert account.cost(PLAIN.wanted(HALVES, math.floor(joined))) == 0
    assert account.cost(PLAIN.wanted(HALVES, math.floor(joined) + 1)) == 1


def test_parts_along_an_order_are_used_where_every_halving_is_even() -> None:
    parts = StandingNoise(ORDERED.noise, 1).parts
    assert set(parts) == {(), *ORDERED.noise.family.sets}
    uneven = Schema((Attribute("a", ("0", "1", "2"), ordered=True), Attribute("b", ("0", "1"))))
    noise = planned_noise({"family": [["a", "b"]]}, uneven, Budget(0.5, 1e-9))
    assert set(StandingNoise(noise, 1).parts) == {(), (1,)}
    assert StandingNoise(noise, 3).parts[1,] == 9 * StandingNoise(noise, 1).parts[1,]
    assert isinstance(StandingNoise(noise, 1).parts[1,], Fraction)


@pytest.mark.nightly
@pytest.mark.parametrize("setting", [PLAIN, ORDERED], ids=["plain", "ordered"])
def test_intervals_hold_against_who_knows_the_truth_and_asks_where_the_error_is_largest(setting: Setting) -> None:
    """It pays for a table again as long as that errs much, and then asks for all cells that err to one side."""
    runs, failures = 400, 0
    worst: list[float] = []
    for run in range(runs):
        seed = run.to_bytes(32)
        session = setting.session(measure(DATA, setting.noise, seed, "measurement"), seed)
        rho = PRICE // 4
        for _ in range(4):
            known = setting.ask(session, WHOLE, rho)
            rho *= 2
            if np.abs(counts(known) - COUNTS).max() < 2 * errors(known).max():
                break
        failures += bool(known.misses(COUNTS / RECORDS).any())
        above = (counts(known) > COUNTS).reshape(SIZES)
        for mask in (above, ~above):
            statement = chosen(mask)
            answers = setting.ask(session, statement, 1)
            truth = np.array([COUNTS.reshape(SIZES)[mask].sum()])
            failures += bool(answers.misses(truth / RECORDS).any())
            worst.append(abs(float((counts(answers) - truth)[0])) / float(errors(answers)[0]))
    assert failures <= 0.05 * runs
    assert np.mean(worst) > 2.5  # a quantile of one normal number would not hold


def chosen(mask: NDArray[np.bool_]) -> Statement:
    """The records of some cells of the whole table."""
    boxes = [
        A.isin([str(a)]) & B.isin([str(b)]) & C.isin([str(c)])
        for a, b, c in itertools.product(*map(range, SIZES))
        if mask[a, b, c]
    ]
    union: Predicate = boxes[0]
    for box in boxes[1:]:
        union = union | box
    return union
