"""Reports of replays beside the records: a seed that was read off the record is found, and so is another round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.audit_failures import failed_checks
from harness.custodian import Custodian

from equipoise.auditing.replay_checks import ReplayReport, read_replay_report
from equipoise.auditing.verify import verify
from equipoise.errors import InvalidArgument
from equipoise.records.record import Kind

ROUND = "aa"


def replay_of(custodian: Custodian, *kinds: Kind, round_id: str = ROUND, **changed: Any) -> ReplayReport:
    """What a replay of the round reports: that it follows from the first records of these kinds."""
    roots = {each.kind.value: each.root for each in reversed(custodian.records) if each.kind in kinds}
    return replace(ReplayReport(round_id, True, roots), **changed)


RELIED_ON = (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_RELEASED)


def test_a_replay_of_what_is_on_record_passes(custodian: Custodian) -> None:
    custodian.read_seed(ROUND)
    for kinds in (RELIED_ON, (*RELIED_ON, Kind.SEED_READ)):
        audit = verify(custodian.archive(), custodian.trusted, replays=[replay_of(custodian, *kinds)])
        assert audit.passed


def test_a_seed_that_a_replay_read_off_the_record_is_found(custodian: Custodian) -> None:
    """As where the replay ran on a copy of the store, whose records enter no log."""
    custodian.read_seed(ROUND)
    unread = replay_of(custodian, *RELIED_ON, Kind.SEED_READ)
    custodian.records.pop()
    custodian.read_seed(ROUND)
    named = failed_checks(verify(custodian.archive(), custodian.trusted, replays=[unread]))["A10"]
    assert f"names the seed-read record {unread.records['seed-read'].hex()}, which is not in the log" in named


@pytest.mark.parametrize(
    ("replay", "words"),
    [
        (lambda made: replay_of(made, *RELIED_ON), "used its seed, but nobody's reading of it is on record"),
        (lambda made: replay_of(made, *RELIED_ON, agrees=False), "has found a difference"),
        (lambda made: replay_of(made, *RELIED_ON[:-1]), "names no round-released record"),
        (lambda made: replay_of(made, *RELIED_ON, round_id="ff"), "which is another round's"),
        (lambda _: ReplayReport(ROUND, True, {"seed": bytes(32)}), "names the seed record 00"),
    ],
)
def test_a_replay_of_something_else_is_found(
    custodian: Custodian, replay: Callable[[Custodian], ReplayReport], words: str
) -> None:
    assert (
        words in failed_checks(verify(custodian.archive(), custodian.trusted, replays=[replay(custodian)]))["A10"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"round": "ab", "agrees": true, "records": {"seed-read": "00"}}',
        '{"round": "ab", "agrees": 1, "records": {}}',
    ],
)
def test_what_is_no_report_of_a_replay_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "replay").write_text(text)
    with pytest.raises(InvalidArgument, match="is no report of a replay"):
        read_replay_report(tmp_path / "replay")
