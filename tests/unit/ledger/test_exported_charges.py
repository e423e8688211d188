"""The documented script, which knows only the exported file, finds what the ledger finds for every kind of part."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from equipoise.accounting import (
    ApproximateDpEvent,
    Cost,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.auditing.ledger_export import exported
from equipoise.model.accounts import JournalEntry
from equipoise_server.ledger.caps import Cap, epsilon_under

pytestmark = pytest.mark.slow

MECHANISMS = Path(__file__).parents[3] / "docs" / "mechanisms" / "equilibrium.md"
DELTA = 1e-6
LOST = {"sum": Cost(delta=10**11, divergence=10**11), "worst": Cost(rho=10**10, epsilon=10**11, delta=10**11)}
MIXED = (100, Fraction(1, 50), Fraction(1, 10**4), Fraction(1, 2), Fraction(1, 10**8))
ROUNDS: tuple[tuple[PrivacyEvent, ...], ...] = (
    (
        ZcdpEvent("game", Fraction(1, 70), 2),
        PureDpEvent("detection", Fraction(1, 20), 30),
        PureDpEvent("nothing", Fraction(1), 0),
    ),
    (
        ApproximateDpEvent("game", Fraction(1, 2), Fraction(1, 10**7)),
        ApproximateDpEvent("places", Fraction(1, 10), Fraction(0)),
    ),
    (Mixture("game", *MIXED),),
    (ThresholdTests("few", 5, Fraction(1, 50), Fraction(1, 5000), Fraction(1), Fraction(1, 10**7)),),
    (ThresholdTests("many", 50, Fraction(1, 5), Fraction(1, 500), Fraction(20), Fraction(1, 10**8)),),
)


def entry(action: str, round_id: str, cost: Cost, events: str) -> JournalEntry:
    return JournalEntry(1, datetime(2024, 1, 1, tzinfo=UTC), action, "data/t", round_id, cost, events, b"")


@pytest.mark.sparse(3)
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("composition", "order"), [("sum", 5.0), ("sum", 200.0), ("worst", None)])
def test_the_documented_script_finds_what_the_ledger_finds(composition: str, order: float | None) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```", MECHANISMS.read_text(), re.MULTILINE | re.DOTALL)
    cap = Cap(9.0, DELTA, order)
    costs = [charge_of(parts) if order is None else charge_at(parts, order) for parts in ROUNDS]
    lost = LOST[composition]
    counted = {} if order is None else {"order": order}
    opening = json.dumps({"cap": {"epsilon": 9.0, "delta": DELTA}, "composition": composition} | counted)
    history = [
        entry("open-account", "", Cost(), opening),
        entry("write-off", "", lost, json.dumps(counted)),
        *(
            entry("reserve", str(number), cost, events_to_json("equilibrium", parts))
            for number, (parts, cost) in enumerate(zip(ROUNDS, costs, strict=True))
        ),
    ]
    asked = json.dumps(exported("data/t", history))
    told = subprocess.run([sys.executable, "-c", script], input=asked, capture_output=True, text=True, check=True)
    every = [lost, *costs]
    held = (
        epsilon_under(cap, sum(every, Cost()))
        if composition == "sum"
        else max(epsilon_under(cap, cost) for cost in every)
    )
    assert float(told.stdout) == pytest.approx(held, rel=1e-4)
