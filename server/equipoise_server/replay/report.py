"""Reports a replay as numbered lines for people, or as one JSON object."""

from __future__ import annotations

from dataclasses import asdict

from equipoise.records.record import Kind
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.replay.replay import Replayed


def as_json(replayed: Replayed) -> dict[str, object]:
    """Return the object that `--json` prints. Distances are in units of 2^-40."""
    return {
        "round": replayed.round_id,
        "agrees": replayed.difference is None,
        "checks": [asdict(check) for check in replayed.checks],
        "ways": [
            {"way": way.label, "answers": answers, "furthest": furthest, "allowed": allowed}
            for way, (answers, furthest, allowed) in replayed.ways.items()
        ],
        "records": {kind.value: root.hex() for kind, root in replayed.records.items()},
        "failed": replayed.failed or None,
        "difference": None if replayed.difference is None else replayed.difference.as_json(),
    }


def lines(replayed: Replayed) -> list[str]:
    """Return a line for each check, and a line for each answer method with the rule of its comparison."""
    facts = [
        f"{number:>2} ok   {check.name}: {check.detail}" for number, check in enumerate(replayed.checks, start=1)
    ]
    if replayed.difference is not None:
        facts.append(f"{len(facts) + 1:>2} FAIL {replayed.failed}: {replayed.difference}")
    if (reading := replayed.records.get(Kind.SEED_READ)) is not None:
        facts.append(f"        that the seed was read for this is on record: {Kind.SEED_READ} {reading.hex()}")
    for way, (answers, furthest, allowed) in replayed.ways.items():
        rule = f"to within 2^-20, at most {furthest} * 2^-{GRID_BITS} apart" if allowed else "exactly"
        facts.append(f"        {answers:,} answered by {way.label} were compared {rule}")
    if replayed.difference is None:
        facts.append(
            "The round follows from its data, workloads, terms and seed. See that the log has these records, with "
            "what --json prints here: equipoise audit verify --replay FILE"
        )
    return facts
