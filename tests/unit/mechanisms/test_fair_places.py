"""Who is answered afresh, where not everybody can be, does not follow from where a share stands in the list."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from harness import mechanism_cases as cases

from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.repair.analyst_repair import (
    MULTIPLICATIVE_WEIGHTS,
    AnalystRepairParameters,
    Served,
    repair_analysts,
)
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import SynopsisCounts
from equipoise_server.randomness.stream import KeyedStream

ONE = 1 << GRID_BITS
ANALYSTS = [f"analyst-{place}" for place in range(30)]
PLACES = RepairPlaces(3, Fraction(8), 5)
# Every analyst tests positive, and any bound will do.
PARAMETERS = AnalystRepairParameters(
    threshold=-(1 << 60),
    test_epsilon=Fraction(1),
    places=PLACES,
    weights=PrivateWeights(1, Fraction(1), Fraction(1), Fraction(1), ONE),
    certified_half_width=1,
    weights_half_width=ONE,
    weights_limit=ONE,
    certify_margin=0,
)


def placed(seed: int) -> set[int]:
    """Where the shares stand of those who were answered afresh in one round."""
    table = cases.CASES["a table"]
    workload = table.workloads["cyd"]
    served = Served(workload, workload.counts(table.histogram), SynopsisCounts(np.zeros(1, dtype=np.int64), 1))
    everybody = dict.fromkeys(ANALYSTS, served)
    answers = repair_analysts(PARAMETERS, ANALYSTS, everybody, 2000, np.ones(12), seed.to_bytes(32))
    assert list(answers) == ANALYSTS
    return {place for place, own in enumerate(answers.values()) if own.methods[0] == MULTIPLICATIVE_WEIGHTS}


@pytest.mark.slow
def test_every_share_may_get_a_place_wherever_it_stands() -> None:
    """In forty rounds nearly everybody has had one, and no round has more of them than its cap."""
    rounds = [placed(seed) for seed in range(40)]
    assert max(len(each) for each in rounds) <= PLACES.cap
    assert len(set().union(*rounds)) > 24
    # Of 120 places or so a share has 4; ten of them are 1 in a thousand for all 30 together.
    assert max(sum(place in each for each in rounds) for place in range(30)) < 15


def test_no_two_analysts_tests_read_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who gets a place would tell of another's test. Nor do the fresh answers of two analysts share noise."""
    read: list[tuple[str, ...]] = []
    derive = KeyedStream.derive

    def noted(seed: bytes, *labels: str) -> KeyedStream:
        read.append(labels)
        return derive(seed, *labels)

    monkeypatch.setattr(KeyedStream, "derive", noted)
    placed(0)
    assert len(read) == len(set(read)) > len(ANALYSTS)
