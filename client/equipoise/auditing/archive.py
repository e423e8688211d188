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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.model.log import ItemOpening, RecordOpening
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.profile.profile import read_file
from equipoise.records.codec import (
    BASE64,
    HASH,
    INTEGER,
    TEXT,
    Codec,
    bytes_in,
    canonical_object,
    codec_of,
    converted,
    key,
    list_of,
    mapping_of,
    object_codec,
    optional,
)
from equipoise.records.public_facts import COST

FORMAT, VERSION = "equipoise-audit", 1
CHECKPOINT, EARLIER = "checkpoint", "earlier-checkpoint"

T = TypeVar("T")


def _moment(microseconds: int) -> datetime:
    try:
        return from_microseconds(microseconds)
    except OverflowError:
        raise ValueError(f"{microseconds} is not a time of the years 1 to 9999") from None


TIME: Codec[datetime] = converted(INTEGER, to_microseconds, _moment)
EXACT: Codec[bytes] = bytes_in("latin-1")  # also of bytes that are no text: nothing is judged here


@canonical_object
class ListedRound:
    """A round as the server lists it. Times: microseconds since 1970, or None."""

    id: str = key("round", TEXT)
    dataset: str = key("dataset", TEXT)
    state: str = key("state", TEXT)
    open_time: int = key("open_time", INTEGER)
    release_time: int | None = key("release_time", optional(INTEGER))


@dataclass(frozen=True)
class AuditorLog:
    """The acts of one auditor that its profile keeps.

    Attributes:
        name: the auditor's.
        nonces: those it gave, in hexadecimal, by round.
        reads: how often it read a seed, by round.
        losses: the sizes of the logs whose loss it accepted, by their roots in hexadecimal.
    """

    name: str = ""
    nonces: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, int] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)


@canonical_object
class Header:
    """The file that makes a directory an archive; `time`: when it was downloaded."""

    time: datetime = key("time", TIME)


HEADER: Codec[Header] = codec_of(Header, {"format": FORMAT, "version": VERSION})
OWN: Codec[AuditorLog] = object_codec(
    AuditorLog,
    {
        "auditor": ("name", TEXT),
        "nonces": ("nonces", mapping_of(converted(HASH, bytes.fromhex, bytes.hex))),
        "reads": ("reads", mapping_of(INTEGER)),
        "losses": ("losses", mapping_of(INTEGER)),
    },
)
ITEM: Codec[ItemOpening] = object_codec(
    ItemOpening, {"content": ("content", EXACT), "salt": ("salt", BASE64), "hash": ("hash", HASH)}
)
RECORD: Codec[RecordOpening] = object_codec(
    RecordOpening,
    {
        "index": ("index", INTEGER),
        "leaf": ("leaf", EXACT),
        "items": ("items", list_of(ITEM)),
        "padding": ("padding", list_of(HASH)),
    },
)
ROUND: Codec[ListedRound] = codec_of(ListedRound)
ENTRY: Codec[JournalEntry] = object_codec(
    JournalEntry,
    {
        "sequence": ("sequence", INTEGER),
        "time": ("time", TIME),
        "action": ("action", TEXT),
        "account": ("account", TEXT),
        "round": ("round_id", TEXT),
        "cost": ("cost", COST),
        "events": ("events", TEXT),
        "digest": ("digest", HASH),
    },
)


@dataclass(frozen=True)
class Archive:
    """Every record of a deployment, as an auditor downloaded it.

    Attributes:
        time: when the download began.
        checkpoint: the log's newest checkpoint, a signed note.
        earlier: the checkpoint that the auditor had before, a signed note; None: none.
        leaves: the log's leaves in their order.
        records: the opened records in the order of the log.
        rounds: what the server lists, newest first.
        journal: the budget journal from its first entry on.
        own: what the auditor itself has done and noted.
    """

    time: datetime
    checkpoint: bytes
    earlier: bytes | None
    leaves: tuple[bytes, ...]
    records: tuple[RecordOpening, ...]
    rounds: tuple[ListedRound, ...]
    journal: tuple[JournalEntry, ...]
    own: AuditorLog = AuditorLog()


def write_archive(archive: Archive, directory: Path) -> None:
    """Writes the archive's files into a directory that is new or empty.

    Raises:
        InvalidArgument: the directory is not empty, or cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if next(directory.iterdir(), None) is not None:
            raise InvalidArgument(str(directory), "is not empty; an archive needs a directory of its own")
        (directory / CHECKPOINT).write_bytes(archive.checkpoint)
        if archive.earlier is not None:
            (directory / EARLIER).write_bytes(archive.earlier)
        _write_lines(directory / "leaves.jsonl", archive.leaves)
        _write_lines(directory / "records.jsonl", map(RECORD.to_bytes, archive.records))
        _write_lines(directory / "rounds.jsonl", map(ROUND.to_bytes, archive.rounds))
        _write_lines(directory / "journal.jsonl", map(ENTRY.to_bytes, archive.journal))
        _write_lines(directory / "own.json", [OWN.to_bytes(archive.own)])
        # Last, so that what was cut off is no archive.
        _write_lines(directory / "archive.json", [HEADER.to_bytes(Header(archive.time))])
    except OSError as error:
        raise InvalidArgument(str(directory), f"cannot be written: {error.strerror}") from None


def read_archive(directory: Path) -> Archive:
    """Returns the archive in a directory.

    Raises:
        InvalidArgument: a file is missing or cannot be read.
        VerificationFailed: a file holds other bytes than `write_archive` writes.
    """
    header = _only(_read(directory / "archive.json", HEADER), "archive.json")
    earlier = directory / EARLIER
    return Archive(
        time=header.time,
        checkpoint=read_file(directory / CHECKPOINT),
        earlier=read_file(earlier) if earlier.exists() else None,
        leaves=tuple(_lines(directory / "leaves.jsonl")),
        records=_read(directory / "records.jsonl", RECORD),
        rounds=_read(directory / "rounds.jsonl", ROUND),
        journal=_read(directory / "journal.jsonl", ENTRY),
        own=_only(_read(directory / "own.json", OWN), "own.json"),
    )


def _write_lines(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(line + b"\n" for line in lines)


def _lines(path: Path) -> Iterator[bytes]:
    content = read_file(path)
    if content and not content.endswith(b"\n"):
        raise VerificationFailed(f"{path.name} was cut off")
    yield from content.split(b"\n")[:-1]


def _read(path: Path, codec: Codec[T]) -> tuple[T, ...]:
    named = ((line, f"{path.name}, line {number}") for number, line in enumerate(_lines(path), start=1))
    return tuple(codec.from_bytes(line, what) for line, what in named)


def _only(parts: tuple[T, ...], what: str) -> T:
    if len(parts) != 1:
        raise VerificationFailed(f"{what} does not have one line")
    return parts[0]
