"""An operator's terms: what is malformed is refused under its name."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share, Terms
from equipoise.model.terms_checks import MAX_COUNT
from equipoise.queries.schema import MAX_ATTRIBUTES
from equipoise.v1 import types_pb2
from equipoise.wire.terms import terms_from_message


def message() -> types_pb2.RoundTerms:
    return types_pb2.RoundTerms(
        dataset="flights",
        unit=types_pb2.PROTECTION_UNIT_QUERY,
        data_budget=types_pb2.Budget(epsilon=1.0, delta=1e-11),
        analyst_budget=types_pb2.Budget(epsilon=1.0, delta=1e-6),
        beta=0.05,
        mechanism="equilibrium",
        shares=[types_pb2.Share(analyst="alice", statements=10, queries=30, sensitivity=20, support=7, ways=2)],
        options='{"play": "sampled"}',
    )


def test_well_formed_terms() -> None:
    assert terms_from_message(message()) == Terms(
        dataset="flights",
        unit="query",
        data_budget=Budget(1.0, 1e-11),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        mechanism="equilibrium",
        shares=(Share("alice", 10, 30, 20, 7, 2),),
        options={"play": "sampled"},
    )


Change = Callable[[types_pb2.RoundTerms], None]


def setting(path: str, value: object) -> Change:
    def change(terms: types_pb2.RoundTerms) -> None:
        owner, _, name = path.rpartition(".")
        setattr(getattr(terms, owner) if owner else terms, name, value)

    return change


def setting_share(name: str, value: object) -> Change:
    return lambda terms: setattr(terms.shares[0], name, value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (setting("unit", 0), "terms.unit"),
        (setting("unit", 77), "terms.unit"),
        (setting("dataset", ""), "terms.dataset"),
        (setting("mechanism", ""), "terms.mechanism"),
        (setting("beta", math.nan), "terms.beta"),
        (setting("beta", 0.0), "terms.beta"),
        (setting("beta", 1.0), "terms.beta"),
        (setting("data_budget.epsilon", math.nan), "terms.data_budget.epsilon"),
        (setting("data_budget.epsilon", math.inf), "terms.data_budget.epsilon"),
        (setting("data_budget.epsilon", -1.0), "terms.data_budget.epsilon"),
        (setting("analyst_budget.delta", math.nan), "terms.analyst_budget.delta"),
        (setting("analyst_budget.delta", 1.0), "terms.analyst_budget.delta"),
        (setting_share("statements", 0), "terms.shares[0].statements"),
        (setting_share("queries", 0), "terms.shares[0].queries"),
        (setting_share("queries", MAX_COUNT + 1), "terms.shares[0].queries"),
        (setting_share("sensitivity", 21), "terms.shares[0].sensitivity"),
        (setting_share("sensitivity", 2**64 - 1), "terms.shares[0].sensitivity"),
        (setting_share("support", MAX_COUNT + 1), "terms.shares[0].support"),
        (setting_share("ways", MAX_ATTRIBUTES + 1), "terms.shares[0].ways"),
        (setting("options", "{"), "terms.options"),
        (setting("options", "[]"), "terms.options"),
        (setting("options", '{"a": NaN}'), "terms.options"),
        (setting("options", "[" * 50_000), "terms.options"),
        (setting("options", " " * 70_000), "terms.options"),
    ],
)
def test_malformed_terms_are_refused_by_name(change: Change, field: str) -> None:
    terms = message()
    change(terms)
    with pytest.raises(InvalidArgument) as caught:
        terms_from_message(terms)
    assert caught.value.field == field
