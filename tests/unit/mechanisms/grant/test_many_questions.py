"""An answer of a grant is as much work after many others as after a few."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.rounds import Share
from equipoise.queries.grant_account import GrantAccount
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.wire.session_workload import compile_offered, wanted_of
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import planned_starts

CATEGORIES = 12
SCHEMA = Schema((Attribute("a", tuple(map(str, range(CATEGORIES)))),))
FEW, MANY, LOOKED_AT = 40, 300, 40
GRANT = GrantMechanism()
SETTING = PublicParameters(
    records=6000,
    universe_size=CATEGORIES,
    shares=(Share("ann", 1 << 20, 1 << 30),),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=ANALYSTS,
    beta=0.05,
    options={"length": 1 << 20},
    attributes=(CATEGORIES,),
)


def different() -> Iterator[bytes]:
    """Conditions with a meaning each, at one price."""
    for number in range(1, 1 << CATEGORIES - 1):
        chosen = [str(place) for place in range(CATEGORIES) if number >> place & 1]
        yield statement_to_bytes(attribute("a").isin(chosen), 1000)


@pytest.mark.nightly
def test_a_new_question_is_no_more_work_the_more_were_asked() -> None:
    data = DenseCounts(np.full(CATEGORIES, SETTING.records // CATEGORIES), (CATEGORIES,))
    session = GRANT.start(SETTING, planned_starts(GRANT, SETTING)[0].plan, data, bytes(32))
    account, questions = GrantAccount(10**12), different()

    def ask(count: int) -> None:
        for _ in range(count):
            encoded = next(questions)
            assert account.pay(wanted_of(encoded, SCHEMA)) == 1000
            compiled, offer = compile_offered(encoded, SCHEMA)
            session.answer(0, compiled, *offer)

    ask(FEW)
    first = calls(lambda: ask(LOOKED_AT))
    ask(MANY)
    assert calls(lambda: ask(LOOKED_AT)) < 1.05 * first


def calls(work: Callable[[], None]) -> int:
    """How many Python functions are called meanwhile, which no other load on the machine changes."""
    counted = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted
