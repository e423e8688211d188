"""Measurements of the table of `rounds_bench`, and rounds that are answered from them."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState, Terms
from harness.dangers import SMALL_TABLE
from harness.rounds_bench import TERMS, Bench

MEASURE = Terms(
    "shop", (), Budget(8.0, 1e-4), None, mechanism="measurement", options={"family": "pairs"}, accepted=SMALL_TABLE
)
STANDING = replace(TERMS, mechanism="standing", options={})


def measured(bench: Bench, terms: Terms = MEASURE) -> str:
    """The id of a released measurement, to which the schedule alone has brought it."""
    round_id = bench.opened(terms)
    for _ in range(2):
        bench.rounds.schedule.keep()
    assert bench.wait(round_id).complete
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.RELEASED
    bench.clock.move(60)
    bench.rounds.schedule.keep()
    return round_id
