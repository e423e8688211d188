"""A10: rounds that were computed again are those on record, and so are the readings of their seeds for it.

Whoever computes a round again needs its seed. `equipoise-server audit replay` opens the sealed one only after the
reading is on record, and its report names that record. A custodian could run it on a copy of the store, which no
log ever gets the record of: here the report is compared with the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.auditing.steps import Step
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.profile.profile import read_file
from equipoise.queries.strict_json import parse_json
from equipoise.records.items import AccessItem, ReleaseItem, RoundItem, SealItem
from equipoise.records.merkle import HASH_BYTES
from equipoise.records.record import Kind

OF_ROUND = {
    Kind.ROUND_OPENED: RoundItem,
    Kind.ROUND_SEALED: SealItem,
    Kind.ROUND_RELEASED: ReleaseItem,
    Kind.SEED_READ: AccessItem,
}


@dataclass(frozen=True)
class ReplayReport:
    """What a replay of a round says: whether the round follows, and the roots of its records, by kind.

    There is no `seed-read` among them where the seed came from a file.
    """

    round_id: str
    agrees: bool
    records: Mapping[str, bytes]


def read_replay_report(path: Path) -> ReplayReport:
    """Reads what `equipoise-server audit replay --json` printed. Raises `InvalidArgument` naming the file."""
    found = parse_json(read_file(path).decode("utf-8", "replace"), str(path))
    try:
        records = {str(kind): bytes.fromhex(root) for kind, root in found["records"].items()}
        report = ReplayReport(found["round"], found["agrees"], records)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidArgument(str(path), "is no report of a replay, as audit replay --json prints it") from None
    whole = isinstance(report.round_id, str) and isinstance(report.agrees, bool)
    if not whole or any(len(root) != HASH_BYTES for root in records.values()):
        raise InvalidArgument(str(path), "is no report of a replay, as audit replay --json prints it")
    return report


def check_replays(steps: Iterable[Step], replays: Sequence[ReplayReport]) -> None:
    """Raises `VerificationFailed` for a report that found a difference, or names a record that is not in the log.

    A replay with a seed from a file names no reading; then somebody's reading of that seed must be on record.

    Args:
        steps: all steps of the log.
        replays: the reports of `equipoise-server audit replay`.
    """
    recorded = {(step.kind, step.root): step for step in steps}
    read = {step.one(AccessItem).round_id for step in recorded.values() if step.kind is Kind.SEED_READ}
    for replay in replays:
        what = f"the replay of the round {replay.round_id}"
        if not replay.agrees:
            raise VerificationFailed(f"{what} has found a difference")
        for kind, root in replay.records.items():
            step = recorded.get((Kind(kind), root)) if kind in {*Kind} else None
            if step is None:
                raise VerificationFailed(f"{what} names the {kind} record {root.hex()}, which is not in the log")
            if step.kind in OF_ROUND and step.one(OF_ROUND[step.kind]).round_id != replay.round_id:
                raise VerificationFailed(f"{what} names {step}, which is another round's")
        missing = [kind for kind in OF_ROUND if kind not in replay.records]
        if missing not in ([], [Kind.SEED_READ]):
            raise VerificationFailed(f"{what} names no {missing[0]} record")
        if missing and replay.round_id not in read:
            raise VerificationFailed(f"{what} has used its seed, but nobody's reading of it is on record")
