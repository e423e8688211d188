"""Power losses at every sync of a real server: nothing that was acknowledged before is missing after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.faults.asking import Contents, check_image, make_deployment, requests
from harness.faults.disk import Disk, any_part, everything, files, nothing, traced_disk
from harness.server_process import SCRIPT, command, running

from equipoise.errors import DataLoss
from equipoise_server.admin.checks import check_state

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


def images(disk: Disk, answered: list[tuple[int, str]], image: Path, nth: int = 1) -> Iterator[list[str]]:
    """Writes to `image` what a power loss leaves before and after every sync; gives what had been answered.

    `nth`: of the moments at which an image is written, all or every second, third and so on.
    """
    seen = set()
    moments = 0
    settled = False
    acknowledged: list[str] = []
    for number, (position, kind) in enumerate(disk.steps()):
        # The image is of before this call. What it does is on the disk, as far as it is, at the next one.
        variants = ([nothing] if settled else []) + ([everything, any_part(number)] if kind == "s" else [])
        moments += bool(variants)
        for reached in variants if moments % nth == 0 else []:
            disk.write_image(image, reached)
            state = (len(acknowledged), tuple(sorted(files(image).items())))
            if hash(state) not in seen:
                seen.add(hash(state))
                yield acknowledged
            shutil.rmtree(image)
        known = [request for end, request in answered if end <= position]
        settled = kind == "s" or known != acknowledged
        acknowledged = known


def check_images(
    disk: Disk, answered: list[tuple[int, str]], directory: Path, final: Contents, nth: int = 1
) -> int:
    """Checks every image that differs from the others; their number."""
    number = 0
    for acknowledged in images(disk, answered, directory / "image", nth):
        check_image(directory / "image", acknowledged, final)
        number += 1
    return number


@pytest.mark.nightly
@pytest.mark.parametrize("nth", [10, pytest.param(1, marks=pytest.mark.nightly)])
def test_at_every_sync_all_that_was_acknowledged_is_durable(tmp_path: Path, nth: int) -> None:
    disk, answered = play(tmp_path, SCRIPT)
    final = Contents.of(tmp_path / "state")
    assert nth * check_images(disk, answered, tmp_path, final, nth) > len(answered)
    # The trace told everything.
    disk.write_image(tmp_path / "image", everything)
    assert files(tmp_path / "image") == files(tmp_path / "state")


@pytest.mark.nightly
def test_a_new_state_directory_is_durable_when_init_says_so(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with traced_disk(place, tmp_path) as disk:
        made = command("init", "--state", str(place / "state"))
    assert made.returncode == 0, made.stderr
    disk.read()
    disk.write_image(tmp_path / "image", nothing)
    assert files(tmp_path / "image") == files(place)
    check_state(tmp_path / "image" / "state")


@pytest.mark.nightly
def test_a_store_that_does_not_sync_its_commits_is_caught(tmp_path: Path) -> None:
    disk, answered = play(tmp_path, CARELESS + SCRIPT)
    final = Contents.of(tmp_path / "state")
    with pytest.raises((AssertionError, DataLoss)):
        check_images(disk, answered, tmp_path, final)
