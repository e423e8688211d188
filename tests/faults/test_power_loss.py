"""Power losses at every sync of a real server: nothing that was acknowledged before is missing after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.asking import Contents, check_image, make_deployment, requests
from faults.disk import Disk, any_part, everything, nothing, traced_disk
from integration.server_process import SCRIPT, running

# A server that does what SQLite's documentation warns of: its commits survive a kill, and not a power loss.
CARELESS = """
from equipoise_server.storage import sqlite

kept = sqlite._pragma
sqlite._pragma = lambda connection, name, value, expected: kept(
    connection, name, *(("NORMAL", 1) if name == "synchronous" else (value, expected))
)
"""


def play(directory: Path, script: str) -> tuple[Disk, list[tuple[int, str]]]:
    """Everything that clients ask for, and how much had happened on the disk when each answer was there."""
    state = directory / "state"
    make_deployment(state)
    answered = []
    with traced_disk(state, directory) as disk, running(state, script=script):
        asked = requests(state, directory)
        request, ask = next(asked)
        while True:
            answer = ask()
            answered.append((disk.position(), request))
            try:
                request, ask = asked.send(answer)
            except StopIteration:
                break
    return disk, answered


def images(disk: Disk, answered: list[tuple[int, str]], directory: Path) -> Iterator[tuple[Path, list[str]]]:
    """The directory after a power loss before and after every sync, and with every answer; what was answered."""
    ends = {position for position, _ in answered}
    seed = 0
    last = None
    steps = disk.steps()
    # `kind` is of the call that has just happened.
    for position, kind in steps:
        if kind != "s" and position not in ends:
            continue
        acknowledged = [request for end, request in answered if end <= position]
        for reached in (nothing, everything, any_part(seed)):
            seed += 1
            image = directory / "image"
            disk.write_image(image, reached)
            yield image, acknowledged
            shutil.rmtree(image)
    assert last is None


def test_at_every_sync_all_that_was_acknowledged_is_durable(tmp_path: Path) -> None:
    disk, answered = play(tmp_path, SCRIPT)
    final = Contents.of(tmp_path / "state")
    number = 0
    for image, acknowledged in images(disk, answered, tmp_path):
        check_image(image, acknowledged, final)
        number += 1
    print(number)
    assert number > 100
