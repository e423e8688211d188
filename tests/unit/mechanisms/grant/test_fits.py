"""What a grant's fits tell, compared with the same fits in fractions: no count is further away than its slack."""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from harness.exact_fits import ExactFits, as_asked, measured_parts
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.rounds import STANDING_OPTION, Share
from equipoise.queries.meanings import Meaning, meaning_of, subsets
from equipoise.queries.own_precision import OwnPrecision
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.fits import NOT_MEASURED, Drawn, Fits, MeasuredParts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.grant.rounded import OPERATION, Rounded, in_units
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import planned_starts
from equipoise_server.mechanisms.residuals.estimates import Estimates
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.family import planned_noise

A, B, C = (attribute(name) for name in "abc")
GRANT = GrantMechanism()


def schema_of(*sizes: int) -> Schema:
    """Attributes a, b and so on, with categories 0, 1 and so on."""
    named = zip("abc", sizes, strict=False)
    return Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in named))


def meaning_in(schema: Schema, statement: Statement) -> Meaning:
    return meaning_of(compile_single(statement, schema), repr(statement).encode())


class Paid:
    """Tables that were paid for, as a grant fits them, and exactly. `largest`: of any noisy count."""

    def __init__(self, sizes: tuple[int, ...], seed: int, largest: int) -> None:
        self.schema, self.draws, self.largest = schema_of(*sizes), np.random.default_rng(seed), largest
        self.fits, self.exact = Fits(OwnPrecision()), ExactFits()

    def pay(self, names: str, cost: int) -> None:
        """Learn of a table of any whole numbers, small ones beside large ones."""
        asked = meaning_in(self.schema, Marginal(tuple(names)))
        noisy = self.draws.integers(-self.largest, self.largest, asked.counts)
        noisy[self.draws.random(asked.counts) < 0.5] //= 1 << 20
        self.fits.precision.learn(asked, cost)
        self.fits.learn(asked, cost, noisy, Fraction(1, 100), 1)
        self.exact.learn(asked, cost, noisy)

    def compare(self, statement: Statement) -> tuple[Rounded, list[Fraction]]:
        """What the fit tells, and the error of each count."""
        told = meaning_in(self.schema, statement).told
        assert told is not None
        fitted = self.fits.counts(told)
        return fitted, errors(fitted.counts, self.exact.counts(told))


def errors(counts: NDArray[np.float64], exact: list[Fraction]) -> list[Fraction]:
    return [abs(Fraction(count) - each) for count, each in zip(counts.tolist(), exact, strict=True)]


@given(
    st.integers(0, 1 << 32),
    st.tuples(st.integers(2, 4), st.integers(2, 4), st.integers(2, 4)),
    st.lists(st.tuples(st.sampled_from(["a", "ab", "bc", "abc"]), st.integers(1, 10**9)), max_size=2),
)
def test_all_errors_of_a_fit_add_up_to_no_more_than_its_slack(
    seed: int, sizes: tuple[int, int, int], later: list[tuple[str, int]]
) -> None:
    paid = Paid(sizes, seed, 1 << 30)
    for names, cost in [("abc", 7), *later]:
        paid.pay(names, cost)
    for asked in (Marginal(("a", "b", "c")), Marginal(("c",)), (A != "0") & (B == "1"), A.isin(["0", "1"])):
        fitted, errs = paid.compare(asked)
        assert sum(errs) <= fitted.slack < 0.1


@pytest.mark.parametrize("asked", [Marginal(("a", "b")), A.isin(list(map(str, range(30)))) & (B != "5")])
def test_fits_of_a_large_table_err_by_more_than_2_to_the_minus_40_of_a_count(asked: Statement) -> None:
    paid = Paid((48, 64), 7, 1 << 24)
    for names, cost in [("ab", 7), ("ab", 9), ("a", 1001), ("ab", 12345)]:
        paid.pay(names, cost)
    fitted, errs = paid.compare(asked)
    assert sum(errs) <= fitted.slack < 2.0**-5
    parts = [err / (abs(Fraction(count)) + 1) for err, count in zip(errs, fitted.counts.tolist(), strict=True)]
    assert len(parts) == 1 or max(parts) > 2.0**-40


def test_a_thousand_payments_make_no_large_slack() -> None:
    paid = Paid((3, 4), 11, 1 << 30)
    for cost in range(1, 1001):
        paid.pay("ab", cost)
    fitted, errs = paid.compare(Marginal(("a", "b")))
    assert sum(errs) <= fitted.slack < 0.05
    drawn = paid.fits.drawn(meaning_in(paid.schema, Marginal(("a", "b"))))
    assert drawn is not None
    assert 100 * OPERATION * (1 << 30) < drawn.mean.slack < 0.01
    assert fitted.slack > 4 * drawn.mean.slack  # as the cells are summed down to four sets of axes


def test_the_slack_of_a_fit_is_that_of_all_its_operations_and_of_its_sums() -> None:
    """Of whole numbers all sums are exact. So what remains is that nine tables are added up in four levels."""
    paid = Paid((3, 5), 12, 1000)
    paid.pay("ab", 5)
    asked = meaning_in(paid.schema, Marginal(("a", "b")))
    drawn = paid.fits.drawn(asked)
    assert drawn is not None
    assert asked.told is not None
    cells = drawn.mean.counts.reshape(3, 5)
    rows, columns, every = np.abs(cells.sum(axis=1)).sum(), np.abs(cells.sum(axis=0)).sum(), abs(cells.sum())
    fitted = paid.fits._fitted(asked.told, NOT_MEASURED)
    assert fitted.slack == pytest.approx(9 * OPERATION * (np.abs(cells).sum() + 2 * rows + 2 * columns + 4 * every))
    paid.pay("ab", 7)
    fitted = paid.fits._fitted(asked.told, NOT_MEASURED)
    assert in_units(fitted.counts).slack > 0
    assert paid.fits.counts(asked.told).slack == fitted.slack + in_units(fitted.counts).slack


def test_measured_parts_bring_their_slack() -> None:
    """The measured tables are told with errors that come to their slack, all to one side."""
    paid = Paid((3, 4), 8, 1000)
    paid.pay("ab", 5)
    told = meaning_in(paid.schema, Marginal(("a",))).told
    assert told is not None
    tables = {part: np.full([(3, 4)[axis] for axis in part], 40.0) for part in subsets((0, 1))}
    measured = MeasuredParts({(0,): Fraction(3), (1,): Fraction(4)}, lambda part: Rounded(tables[part], 1.5))
    shifted = [(part, 80 + 0 * tables[part].astype(int) + 2 // tables[part].size, 2) for part in ((0,), (1,))]
    exact = paid.exact.counts(told, measured_parts(measured.precisions, shifted))
    fitted = paid.fits.counts(told, measured)
    assert sum(errors(fitted.counts, exact)) <= fitted.slack
    assert fitted.slack >= paid.fits.counts(told, NOT_MEASURED).slack + 2 * 1.5  # down to both sets of axes


STATEMENTS: list[Statement] = [
    Marginal(("a", "b", "c")),
    Marginal(("c", "a")),
    Marginal(("b", "a")),
    A == "0",
    A != "0",
    (A != "0") & B.isin(["2", "3"]) & (C == "1"),
    (A != "0") | (B != "1"),
    Marginal(("b", "a"), where=C == "0"),
    Marginal(("c", "b"), where=(A == "0") | (B != "1")),  # some of whose counts are sums of more cells
    (A == "0") & (A == "1"),
    C == "0",
    C == "1",
]


class Compared(GrantSession):
    """A grant that compares all of its estimates with exact ones."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.exact = ExactFits()
        self.seen: set[str] = set()
        learn = self._fits.learn

        def learnt(meaning: Meaning, cost: int, noisy: NDArray[np.int64], chance: Fraction, width: int) -> None:
            self.exact.learn(meaning, cost, noisy)
            learn(meaning, cost, noisy, chance, width)

        self._fits.learn = learnt  # type: ignore[method-assign,assignment]

    def _estimate_alone(self, meaning: Meaning, drawn: Drawn | None) -> tuple[Estimates | None, float]:
        known, square = super()._estimate_alone(meaning, drawn)
        if known is not None:
            self.compare("alone", known, self.own(meaning))
        return known, square

    def _estimate_fitted(
        self, meaning: Meaning, drawn: Drawn | None, measured: MeasuredParts = NOT_MEASURED
    ) -> tuple[Estimates, float]:
        known, square = super()._estimate_fitted(meaning, drawn, measured)
        told = meaning.told
        assert told is not None
        tables: list[Any] = []
        if self._standing is not None and measured.precisions:
            known_parts = [part for part in subsets(told.table) if part in measured.precisions]
            numbers = [self._standing.measured.table(part) for part in known_parts]
            tables = [(each.axes, each.numerators, each.denominator) for each in numbers]
        counts = self.exact.counts(told, measured_parts(measured.precisions, tables))
        exact = as_asked(meaning, counts, self._setting.records if meaning.told_opposite else None)
        inverses = self._account.precision.variances(told, measured.precisions)
        assert inverses is not None
        rows = as_asked(meaning, [inverses[row] for row in told.squares[2].tolist()])
        case = "fitted with a measurement" if tables else "fitted"
        if drawn is not None and not told.whole:
            weights = [each * drawn.precision for each in rows]
            rows = [each / (1 + weight) for each, weight in zip(rows, weights, strict=True)]
            both = zip(exact, self.own(meaning), weights, strict=True)
            exact = [(fitted + own * weight) / (1 + weight) for fitted, own, weight in both]
            case += " and with noise of its own"
            if meaning.opposite != meaning.told_opposite:
                self.seen.add("two sides")
            if len(set(rows)) > 1:
                self.seen.add("two rows")
        self.compare(case, known, exact)
        np.testing.assert_allclose(known.variances, list(map(self._variance, rows)))
        return known, square

    def own(self, meaning: Meaning) -> list[Fraction]:
        return as_asked(meaning, self.exact.own(meaning), self._setting.records if meaning.opposite else None)

    def compare(self, case: str, known: Estimates, exact: list[Fraction]) -> None:
        assert sum(errors(known.counts, exact)) <= known.slack[0]
        assert known.slack.max() < 1e-3
        self.seen.add(case)


@pytest.mark.parametrize("measured", [None, 0.001, 5.0], ids=["tables", "little measured", "much measured"])
def test_answers_are_the_best_that_all_noises_tell(measured: float | None) -> None:
    """Random questions, prices and tables: all estimates are the exact ones, of both sides and in every order."""
    draws, schema, seen = np.random.default_rng(3), schema_of(3, 4, 2), set[str]()
    for run in range(4):
        counts = draws.integers(0, 10, 24)
        counts[draws.integers(24)] = 10**9
        data, options, numbers = DenseCounts(counts, schema.sizes), {"length": 1 << 20}, b""
        if measured is not None:
            noise = planned_noise({"family": [["a", "b"], ["b", "c"]]}, schema, Budget(measured, 1e-9))
            numbers = measure(data, noise, bytes(32), "measurement").to_bytes()
            options[STANDING_OPTION] = ReleasedMeasurement("r-1", sha256(numbers).digest(), noise).as_option()
        setting = PublicParameters(
            records=int(counts.sum()),
            universe_size=24,
            shares=(Share("ann", 1 << 20, 1 << 30),),
            unit="query",
            data_budget=Budget(20.0, 1e-6),
            analyst_budget=ANALYSTS,
            beta=0.05,
            options=options,
            attributes=schema.sizes,
            ordered=schema.ordered,
            measured=numbers,
        )
        session = Compared(setting, planned_starts(GRANT, setting)[0].plan, data, run.to_bytes(32))
        rho = 1000
        for _ in range(60):
            statement = STATEMENTS[draws.integers(len(STATEMENTS))]
            rho = int(rho * draws.uniform(0.5, 2)) + 1
            session.answer(0, compile_single(statement, schema), repr(statement).encode(), rho)
        seen |= session.seen
        if session._standing is not None:
            told, exact = session._standing.table((0, 1)), session._standing.measured.table((0, 1))
            cells = [Fraction(int(each), exact.denominator) for each in exact.numerators.reshape(-1)]
            assert 0 < sum(errors(told.counts.reshape(-1), cells)) <= told.slack
    assert seen >= {"fitted", "fitted and with noise of its own", "two rows"}
    if measured is None:
        assert "two sides" in seen
    else:
        assert seen >= {"alone", "fitted with a measurement", "fitted with a measurement and with noise of its own"}
