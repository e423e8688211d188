"""A disk that tells what reached it and fails on command, under a server that runs with `disk.c` preloaded.

    with traced_disk(root, scratch) as disk:        # the environment of processes that are started in here
        ...                                         # run servers on files below `root`
        disk.break_down(errno.EIO, ALL, after=3)    # three calls succeed, then every one fails, until `repair`
        disk.read()                                 # takes in what has happened
        disk.write_image(target, NOTHING)           # what a power loss now would leave

What a power loss leaves is modelled as POSIX promises it, and no better: a file has what its last successful sync
found in it, and a directory the names that its own last sync found. Of everything later, nothing is there, or
all, or any part of it. What a failed sync was to make durable is lost even when a later one succeeds, as Linux
forgets about such pages.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from harness.faults.preloading import built

SOURCE = Path(__file__).with_name("disk.c")
RECORD = struct.Struct("=c7xQqII")
CONTROL = struct.Struct("=iiii")
WRITES, SYNCS, NAMES = 1, 2, 4
ALL = WRITES | SYNCS | NAMES
DIE = -1
SECTOR = 512
# Memory that processes share, and locks: after a power loss nobody relies on what is in them.
VOLATILE = ("-shm", ".lock", "-server", ".log")

# Says of every piece of what was not synced whether it reached the disk.
Reached = Callable[[], bool]


def nothing() -> bool:
    """Only what was synced."""
    return False


def everything() -> bool:
    """As a kill leaves it."""
    return True


def any_part(seed: int) -> Reached:
    """Any sectors, names and lengths, half of them."""
    draws = np.random.default_rng(seed)
    return lambda: bool(draws.integers(2))


@dataclass(frozen=True)
class Change:
    """A write, or (without bytes) a new length."""

    offset: int
    written: bytes | None

    def apply(self, content: bytearray) -> None:
        """What the change makes of a file."""
        if self.written is None:
            del content[self.offset :]
            content.extend(bytes(self.offset - len(content)))
            return
        content.extend(bytes(max(0, self.offset - len(content))))
        content[self.offset : self.offset + len(self.written)] = self.written

    def sectors(self) -> Iterator[Change]:
        """The pieces that reach a disk apart."""
        if self.written is None:
            yield self
            return
        start = self.offset
        end = start + len(self.written)
        while start < end:
            cut = min(end, (start // SECTOR + 1) * SECTOR)
            yield Change(start, self.written[start - self.offset : cut - self.offset])
            start = cut


@dataclass
class File:
    """What is durable of a file, and what was done to it since."""

    durable: bytearray = field(default_factory=bytearray)
    later: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        """All of it is durable."""
        for change in self.later:
            change.apply(self.durable)
        self.later.clear()

    def after_power_loss(self, reached: Reached) -> bytes:
        """What could be found."""
        content = bytearray(self.durable)
        for change in self.later:
            for piece in change.sectors():
                if reached():
                    piece.apply(content)
        return bytes(content)


@dataclass
class Directory:
    """Names and their inodes: now, durably, and what was changed since, in this order; 0 is a removal."""

    names: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)
    later: list[tuple[tuple[str, int], ...]] = field(default_factory=list)

    def change(self, *changes: tuple[str, int]) -> None:
        """Changes that happen at once, as a rename within the directory does."""
        _set_names(self.names, changes)
        self.later.append(changes)

    def sync(self) -> None:
        """All of it is durable."""
        self.durable = dict(self.names)
        self.later.clear()

    def after_power_loss(self, reached: Reached) -> dict[str, int]:
        """What could be found. File systems keep the order of such changes."""
        names = dict(self.durable)
        for changes in self.later:
            if not reached():
                break
            _set_names(names, changes)
        return names


def files(directory: Path) -> dict[str, bytes]:
    """All files below a directory that a power loss is of any importance to."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.endswith(VOLATILE)
    }


class Disk:
    """The files below `root` as the trace tells them."""

    def __init__(self, root: Path, trace: Path, control: mmap.mmap) -> None:
        self.root = root
        self._trace = trace
        self._control = control
        self._inodes: dict[int, File | Directory] = {}
        self._taken = 0  # bytes of the trace
        self._top = self._found(root)

    # Failing

    def break_down(self, error: int, kinds: int, after: int = 0) -> None:
        """Let calls of these kinds fail, once `after` more of them have succeeded."""
        # The error last: from then on it counts.
        self._control[4:16] = struct.pack("=iii", kinds, after, 0)
        self._control[0:4] = struct.pack("=i", error)

    def left(self) -> int:
        """How many calls, of those that are to fail, still succeed."""
        return int(CONTROL.unpack(self._control[:16])[2])

    def repair(self) -> int:
        """Let everything succeed again. How many calls have failed."""
        self._control[0:4] = bytes(4)
        return int(CONTROL.unpack(self._control[:16])[3])

    # Telling

    def position(self) -> int:
        """How much has happened."""
        return self._trace.stat().st_size

    def read(self, until: int | None = None) -> None:
        """Take in what has happened, up to a position."""
        for _ in self.steps(until):
            pass

    def steps(self, until: int | None = None) -> Iterator[tuple[int, str]]:
        """The same call by call: the position after it, and its kind, before what it did is taken in."""
        with self._trace.open("rb") as trace:
            trace.seek(self._taken)
            rest = trace.read(-1 if until is None else until - self._taken)
        start = 0
        while start < len(rest):
            kind, inode, offset, first, second = RECORD.unpack_from(rest, start)
            texts = start + RECORD.size
            start = texts + first + second
            self._taken += RECORD.size + first + second
            yield self._taken, kind.decode()
            self._apply(kind.decode(), inode, offset, rest[texts : texts + first], rest[texts + first : start])

    def write_image(self, target: Path, reached: Reached) -> None:
        """The directory as a power loss now would leave it."""
        self._write(target, self._top, reached)

    def _write(self, target: Path, inode: int, reached: Reached) -> None:
        target.mkdir(mode=0o700)
        directory = self._inodes[inode]
        assert isinstance(directory, Directory)
        for name, below in directory.after_power_loss(reached).items():
            held = self._inodes[below]
            if isinstance(held, Directory):
                self._write(target / name, below, reached)
            elif not name.endswith(VOLATILE):
                path = target / name
                path.touch(0o600)
                path.write_bytes(held.after_power_loss(reached))

    def _found(self, path: Path) -> int:
        """What is there at the beginning is durable."""
        inode = path.stat().st_ino
        if path.is_dir():
            names = {below.name: self._found(below) for below in path.iterdir()}
            self._inodes[inode] = Directory(names, dict(names))
        else:
            self._inodes[inode] = File(bytearray(path.read_bytes()))
        return inode

    def _apply(self, kind: str, inode: int, offset: int, first: bytes, second: bytes) -> None:
        match kind:
            case "c" | "d":
                self._inodes[inode] = File() if kind == "c" else Directory()
                directory, name = self._place(first)
                directory.change((name, inode))
            case "r":
                (old, old_name), (new, new_name) = self._place(first), self._place(second)
                moved = old.names[old_name]
                if old is new:
                    old.change((new_name, moved), (old_name, 0))
                else:
                    new.change((new_name, moved))
                    old.change((old_name, 0))
            case "u":
                directory, name = self._place(first)
                directory.change((name, 0))
            case "s":
                self._inodes[inode].sync()
            case "f":
                held = self._inodes[inode]
                if isinstance(held, File):
                    held.later.clear()
            case "w" | "t":
                held = self._inodes[inode]
                assert isinstance(held, File)
                held.later.append(Change(offset, second if kind == "w" else None))

    def _place(self, path: bytes) -> tuple[Directory, str]:
        *above, name = Path(os.fsdecode(path)).relative_to(self.root).parts
        directory = self._inodes[self._top]
        for each in above:
            assert isinstance(directory, Directory)
            directory = self._inodes[directory.names[each]]
        assert isinstance(directory, Directory)
        return directory, name


@contextmanager
def traced_disk(root: Path, scratch: Path) -> Iterator[Disk]:
    """Processes that are started while the context lasts have this disk below `root`; `scratch` is elsewhere."""
    library = built(SOURCE, scratch)
    trace, control = scratch / "trace", scratch / "control"
    trace.touch()
    control.write_bytes(bytes(CONTROL.size))
    names = {"LD_PRELOAD": library, "DISK_ROOT": root, "DISK_TRACE": trace, "DISK_CONTROL": control}
    assert not names.keys() & os.environ.keys()
    with control.open("r+b") as file, mmap.mmap(file.fileno(), CONTROL.size) as memory:
        disk = Disk(root, trace, memory)
        os.environ.update({name: str(value) for name, value in names.items()})
        try:
            yield disk
        finally:
            for name in names:
                del os.environ[name]


def _set_names(names: dict[str, int], changes: tuple[tuple[str, int], ...]) -> None:
    for name, inode in changes:
        if inode:
            names[name] = inode
        else:
            names.pop(name, None)
