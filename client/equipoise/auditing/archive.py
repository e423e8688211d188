"""The audit archive: all that a custodian has on record, as one directory that can be checked offline, years later.

    archive.json         {"format": "equipoise-audit", "version": 1, "time": ...}: when it was downloaded
    checkpoint           the log's newest signed checkpoint, a note
    earlier-checkpoint   the one that the auditor had checked before, if any
    leaves.jsonl         the leaves of the log, from the first
    records.jsonl        {"index", "leaf", "items": [{"content", "salt", "hash"}], "padding"}, one for each leaf
    rounds.jsonl         {"round", "dataset", "state", "open_time", "release_time"}: all rounds, newest first
    journal.jsonl        the entries of the budget journal, from the first
    own.json             {"auditor", "nonces", "reads"}: what the auditor itself did, from its profile

The rounds are asked for first and the journal last, so that the log is never behind the one and never ahead of the
other.
Every line is canonical JSON; leaves, contents and events are strings of exactly their bytes. Nothing is judged
here, and nothing in the directory is trusted: `equipoise.auditing.verify` checks it against keys from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.model.log import ItemOpening, RecordOpening
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.profile.profile import read_file
from equipoise.records.canonical import (
    canonical_json,
    from_base64,
    from_hex,
    parse_canonical_json,
    read_object,
    to_base64,
)
from equipoise.records.merkle import HASH_BYTES

FORMAT, VERSION = "equipoise-audit", 1
CHECKPOINT, EARLIER = "checkpoint", "earlier-checkpoint"

_COST = {"rho": int, "epsilon": int, "delta": int, "divergence": int}
_ENTRY = {
    "sequence": int,
    "time": int,
    "action": str,
    "account": str,
    "round": str,
    "cost": dict,
    "events": str,
    "digest": str,
}
_ROUND: dict[str, type | tuple[type, ...]] = {
    "round": str,
    "dataset": str,
    "state": str,
    "open_time": int,
    "release_time": (int, type(None)),
}

Part = TypeVar("Part")


@dataclass(frozen=True)
class ListedRound:
    """A round as the server lists it. Times: microseconds since 1970, or None."""

    id: str
    dataset: str
    state: str
    open_time: int
    release_time: int | None


@dataclass(frozen=True)
class AuditorLog:
    """What the auditor `name` did: the nonces it gave, in hexadecimal, and how often it read a seed, by round."""

    name: str = ""
    nonces: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Archive:
    """All of it. `time`: when it was downloaded; `checkpoint` and `earlier` are signed notes."""

    time: datetime
    checkpoint: bytes
    earlier: bytes | None
    leaves: tuple[bytes, ...]
    records: tuple[RecordOpening, ...]
    rounds: tuple[ListedRound, ...]
    journal: tuple[JournalEntry, ...]
    own: AuditorLog = AuditorLog()


def write_archive(archive: Archive, directory: Path) -> None:
    """Write the files into a directory that is new or empty. Raises `InvalidArgument` where it is neither."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if next(directory.iterdir(), None) is not None:
            raise InvalidArgument(str(directory), "is not empty; an archive needs a directory of its own")
        (directory / CHECKPOINT).write_bytes(archive.checkpoint)
        if archive.earlier is not None:
            (directory / EARLIER).write_bytes(archive.earlier)
        _write_lines(directory / "leaves.jsonl", archive.leaves)
        _write_lines(directory / "records.jsonl", map(_record_line, archive.records))
        _write_lines(directory / "rounds.jsonl", map(_round_line, archive.rounds))
        _write_lines(directory / "journal.jsonl", map(_entry_line, archive.journal))
        own = {"auditor": archive.own.name, "nonces": archive.own.nonces, "reads": archive.own.reads}
        _write_lines(directory / "own.json", [canonical_json(own)])
        # Last, so that what was cut off is no archive.
        header = {"format": FORMAT, "version": VERSION, "time": to_microseconds(archive.time)}
        _write_lines(directory / "archive.json", [canonical_json(header)])
    except OSError as error:
        raise InvalidArgument(str(directory), f"cannot be written: {error.strerror}") from None


def read_archive(directory: Path) -> Archive:
    """The archive in a directory. Raises `InvalidArgument` where a file is missing, or `VerificationFailed`."""
    header = _only(_read(directory / "archive.json", _header), "archive.json")
    earlier = directory / EARLIER
    return Archive(
        time=header,
        checkpoint=read_file(directory / CHECKPOINT),
        earlier=read_file(earlier) if earlier.exists() else None,
        leaves=tuple(_lines(directory / "leaves.jsonl")),
        records=_read(directory / "records.jsonl", _record),
        rounds=_read(directory / "rounds.jsonl", _round),
        journal=_read(directory / "journal.jsonl", _entry),
        own=_only(_read(directory / "own.json", _own), "own.json"),
    )


def _write_lines(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(line + b"\n" for line in lines)


def _lines(path: Path) -> Iterator[bytes]:
    content = read_file(path)
    if content and not content.endswith(b"\n"):
        raise VerificationFailed(f"{path.name} was cut off")
    yield from content.split(b"\n")[:-1]


def _read(path: Path, part: Callable[[Any, str], Part]) -> tuple[Part, ...]:
    named = ((line, f"{path.name}, line {number}") for number, line in enumerate(_lines(path), start=1))
    return tuple(part(parse_canonical_json(line, what), what) for line, what in named)


def _only(parts: tuple[Part, ...], what: str) -> Part:
    if len(parts) != 1:
        raise VerificationFailed(f"{what} does not have one line")
    return parts[0]


def _header(value: Any, what: str) -> datetime:
    fields = read_object(value, {"format": str, "version": int, "time": int}, what)
    if (fields["format"], fields["version"]) != (FORMAT, VERSION):
        raise VerificationFailed(f"{what}: is not of the format {FORMAT}, version {VERSION}")
    return _time(fields["time"], what)


def _own(value: Any, what: str) -> AuditorLog:
    fields = read_object(value, {"auditor": str, "nonces": dict, "reads": dict}, what)
    for nonce in fields["nonces"].values():
        from_hex(nonce, HASH_BYTES, f"{what}: a nonce")
    if any(type(times) is not int for times in fields["reads"].values()):
        raise VerificationFailed(f"{what}: a number of reads is none")
    return AuditorLog(fields["auditor"], fields["nonces"], fields["reads"])


def _record_line(record: RecordOpening) -> bytes:
    items = [
        {"content": item.content.decode("latin-1"), "salt": to_base64(item.salt), "hash": item.hash.hex()}
        for item in record.items
    ]
    leaf = record.leaf.decode("latin-1")
    padding = [each.hex() for each in record.padding]
    return canonical_json({"index": record.index, "leaf": leaf, "items": items, "padding": padding})


def _record(value: Any, what: str) -> RecordOpening:
    fields = read_object(value, {"index": int, "leaf": str, "items": list, "padding": list}, what)
    items = [read_object(each, {"content": str, "salt": str, "hash": str}, what) for each in fields["items"]]
    return RecordOpening(
        fields["index"],
        _bytes(fields["leaf"], what),
        tuple(
            ItemOpening(
                _bytes(item["content"], what),
                from_base64(item["salt"], f"{what}: a salt"),
                from_hex(item["hash"], HASH_BYTES, f"{what}: a hash"),
            )
            for item in items
        ),
        tuple(from_hex(each, HASH_BYTES, f"{what}: a hash") for each in fields["padding"]),
    )


def _round_line(listed: ListedRound) -> bytes:
    told = {"round": listed.id, "dataset": listed.dataset, "state": listed.state}
    return canonical_json(told | {"open_time": listed.open_time, "release_time": listed.release_time})


def _round(value: Any, what: str) -> ListedRound:
    fields = read_object(value, _ROUND, what)
    times = fields["open_time"], fields["release_time"]
    return ListedRound(fields["round"], fields["dataset"], fields["state"], *times)


def _entry_line(entry: JournalEntry) -> bytes:
    cost = {name: getattr(entry.cost, name) for name in _COST}
    return canonical_json(
        {
            "sequence": entry.sequence,
            "time": to_microseconds(entry.time),
            "action": entry.action,
            "account": entry.account,
            "round": entry.round_id,
            "cost": cost,
            "events": entry.events,
            "digest": entry.digest.hex(),
        }
    )


def _entry(value: Any, what: str) -> JournalEntry:
    fields = read_object(value, _ENTRY, what)
    cost = read_object(fields["cost"], _COST, f"{what}: cost")
    if min(cost.values()) < 0:
        raise VerificationFailed(f"{what}: a cost is negative")
    return JournalEntry(
        sequence=fields["sequence"],
        time=_time(fields["time"], what),
        action=fields["action"],
        account=fields["account"],
        round_id=fields["round"],
        cost=Cost(**cost),
        events=fields["events"],
        digest=from_hex(fields["digest"], HASH_BYTES, f"{what}: digest"),
    )


def _bytes(text: str, what: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise VerificationFailed(f"{what}: a text is no string of bytes") from None


def _time(microseconds: int, what: str) -> datetime:
    try:
        return from_microseconds(microseconds)
    except OverflowError:
        raise VerificationFailed(f"{what}: a time is none") from None
