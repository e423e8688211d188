"""What a custodian who signs whatever it likes cannot say: the check of each lie's number finds it."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction

import pytest
from harness.small_custodian import HALF_WIDTH, PARTS, Told, signing_key
from harness.verifying import found, log_of, with_evidence

from equipoise.accounting import ApproximateDpEvent, ZcdpEvent, charge_at, charge_of
from equipoise.model.results import AnswerMethod
from equipoise.queries.fixed_point import ONE
from equipoise.verification.checks import Check

NOTHING = {"rho": 0, "epsilon": 0, "delta": 0, "divergence": 0}
LIES: dict[str, tuple[Told, Check]] = {
    "an order that is none": (
        Told(items={"round": {"unit": "analyst", "analyst_order": 0.5}}),
        Check.CHARGE,
    ),
    "an order that is none, of no cost": (
        Told(items={"round": {"unit": "analyst", "analyst_order": 0.5}, "result": {"charge": NOTHING}}, parts=()),
        Check.CHARGE,
    ),
    "two rounds mixed": (Told(items={"seal": {"opened_root": "00" * 32}}), Check.ROUND),
    "another dataset": (Told(items={"round": {"dataset_root": "00" * 32}}), Check.ROUND),
    "a release of another sealing": (Told(items={"release": {"sealed_root": "00" * 32}}), Check.ROUND),
    "an abort of another round": (Told(end="running", items={"abort": {"previous_root": "00" * 32}}), Check.ROUND),
    "another number of records": (Told(items={"round": {"records": 401}}), Check.ROUND),
    "another universe": (Told(items={"round": {"universe_size": 9}}), Check.ROUND),
    "another's result": (Told(items={"result": {"analyst": "bob"}}), Check.ROUND),
    "another's place": (Told(place=3), Check.ROUND),
    "an item of another version": (Told(items={"release": {"version": 2}}), Check.ROUND),
    "an item with a note": (Told(items={"result": {"note": "unread"}}), Check.ROUND),
    "a schema that is none": (Told(items={"dataset": {"schema": {"a": 0}}}), Check.ROUND),
    "another workload sealed": (Told(items={"workload": {"commitment": "00" * 32}}), Check.RECEIPT),
    "another promise than on record": (Told(promised={"max_half_width": 0.001}), Check.RECEIPT),
    "another charge than on record": (Told(promised={"analyst_cost": NOTHING}), Check.RECEIPT),
    "another opening than on record": (Told(promised={"opened_root": "00" * 32}), Check.RECEIPT),
    "another closing time than on record": (Told(promised={"close_time": 1}), Check.RECEIPT),
    "another release grid than on record": (Told(promised={"release_grid_seconds": 1}), Check.RECEIPT),
    "no workload sealed": (Told(items={"workload": {"commitment": None}}), Check.RECEIPT),
    "a workload beyond the share": (Told(items={"share": {"queries": 9}}), Check.WORKLOAD),
    "a workload more sensitive than the share": (Told(items={"share": {"sensitivity": 3}}), Check.WORKLOAD),
    "a workload of a larger support": (Told(items={"share": {"support": 3}}), Check.WORKLOAD),
    "a workload about more attributes": (Told(items={"share": {"ways": 1}}), Check.WORKLOAD),
    "no results": (Told(items={"result": {"stream": None}}), Check.STREAM),
    "a larger half-width": (Told(lows={2: 0}, highs={2: 2 * HALF_WIDTH + 1}), Check.INTERVALS),
    "a value above its interval": (Told(lows={2: 0}, highs={2: HALF_WIDTH}), Check.INTERVALS),
    "a value below its interval": (Told(lows={2: ONE}, highs={2: ONE}), Check.INTERVALS),
    "an interval of nothing": (Told(lows={2: 2}, highs={2: 1}), Check.STREAM),
    "an uncertified answer with an interval": (
        Told(methods={2: AnswerMethod.UNCERTIFIED}, highs={2: ONE}),
        Check.STREAM,
    ),
    "a certified answer without": (Told(lows={2: 0}, highs={2: 0}), Check.INTERVALS),
    "more uncertified than promised": (Told(items={"round": {"max_uncertified": 0}}), Check.INTERVALS),
    "an answer that the synopsis does not give": (Told(values={4: 12345}), Check.ANSWERS),
    "a synopsis answer without a synopsis": (
        Told(synopsis=False, methods={1: AnswerMethod.SYNOPSIS}),
        Check.ANSWERS,
    ),
    "a lower charge": (
        Told(items={"result": {"charge": NOTHING | {"rho": 1}}}),
        Check.CHARGE,
    ),
    "a cost that is not its parts'": (
        Told(items={"round": {"analyst_cost": NOTHING | {"rho": 1}}}),
        Check.CHARGE,
    ),
    "a cost beyond the budget": (
        Told(items={"round": {"analyst_budget": {"epsilon": 0.1, "delta": 1e-6}}}),
        Check.CHARGE,
    ),
    "parts of another mechanism": (Told(items={"round": {"mechanism": "pooled"}}), Check.CHARGE),
    "parts that are none": (
        Told(items={"round": {"analyst_events": {"mechanism": "equilibrium", "events": 1}}}),
        Check.CHARGE,
    ),
    "a charge at another order": (
        Told(items={"round": {"unit": "analyst", "analyst_order": 5.5}}),
        Check.CHARGE,
    ),
    "an order where rounds do not add": (
        Told(items={"round": {"analyst_order": 5.5}, "result": {"charge": NOTHING}}, parts=()),
        Check.CHARGE,
    ),
    "no order where rounds add": (Told(items={"round": {"unit": "analyst"}}), Check.CHARGE),
    "a charge for a round that never was sealed": (
        Told(end="open", items={"charge": {"state": "spent"}}),
        Check.CHARGE,
    ),
    "nothing charged for a round that ran": (
        Told(end="running", items={"charge": {"state": "none"}}),
        Check.CHARGE,
    ),
}


COST = charge_of(PARTS)
DELTA = (ApproximateDpEvent("samplers", Fraction(0), Fraction(1, 10**12)), *PARTS)


@pytest.mark.parametrize("less", [{"rho": COST.rho - 1}, {"rho": COST.rho + 1}, {"delta": 1}, {"epsilon": 1}])
def test_a_cost_that_is_announced_and_charged_alike_must_be_that_of_the_parts(less: dict[str, int]) -> None:
    """Record and charge agree with each other: only the parts tell."""
    cost = asdict(COST) | less
    told = Told(items={"round": {"analyst_cost": cost}, "result": {"charge": cost}})
    assert found(told.bundle(log_of())) is Check.CHARGE


@pytest.mark.parametrize("field", ["rho", "epsilon", "delta", "divergence"])
@pytest.mark.parametrize("beyond", [1, -1])
def test_every_amount_of_a_charge_is_compared_to_the_unit(field: str, beyond: int) -> None:
    charge = asdict(charge_of(DELTA))
    assert found(Told(parts=DELTA).bundle(log_of())) is None
    if charge[field] + beyond >= 0:
        charge[field] += beyond
        told = Told(parts=DELTA, items={"result": {"charge": charge}})
        assert found(told.bundle(log_of())) is Check.CHARGE


@pytest.mark.parametrize(("told", "check"), LIES.values(), ids=LIES.keys())
def test_what_is_signed_and_wrong_is_found(told: Told, check: Check) -> None:
    bundle = told.bundle(log_of())
    assert found(bundle) is check


def test_a_charge_at_a_renyi_order_is_recomputed() -> None:
    part = ZcdpEvent("game", Fraction(1, 7))
    cost = charge_at([part], 5.5)
    charge = NOTHING | {"delta": cost.delta, "divergence": cost.divergence}
    items: dict[str, dict[str, object]] = {
        "round": {"unit": "analyst", "analyst_order": 5.5},
        "result": {"charge": charge},
    }
    assert found(Told(parts=(part,), items=items).bundle(log_of())) is None
    less = items | {"result": {"charge": charge | {"divergence": cost.divergence - 1}}}
    assert found(Told(parts=(part,), items=less).bundle(log_of())) is Check.CHARGE


def test_keys_that_signed_nothing_are_not_carried_along() -> None:
    bundle = Told().bundle(log_of())
    keys = sorted([*bundle.evidence.keys, signing_key(5).verifier.to_text()])
    assert found(with_evidence(bundle, keys=tuple(keys))) is Check.HISTORY


def test_keys_that_signed_are_all_named_though_the_reader_knows_them() -> None:
    bundle = Told().bundle(log_of())
    assert found(with_evidence(bundle, keys=())) is Check.HISTORY


def test_a_step_that_is_shown_twice_is_none_of_the_log_s() -> None:
    bundle = Told().bundle(log_of())
    first, *others = bundle.evidence.records
    assert found(with_evidence(bundle, records=(first, first, *others))) is Check.LOG
