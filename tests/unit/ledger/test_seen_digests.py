"""The digests that the guard has seen: of one chain, without any that were kept behind its end."""

from __future__ import annotations

from pathlib import Path

from equipoise.model.journal import START
from equipoise_server.ledger.seen_digests import SeenDigests

ONE, OTHER = ([bytes([first + place]) * len(START) for place in range(4)] for first in (1, 100))


def kept(seen: SeenDigests) -> list[bytes | None]:
    """What is known of the first entries, and of the one before them all."""
    return [seen.at(sequence) for sequence in range(6)]


def test_digests_of_another_chain_do_not_stay_behind_the_new_end(tmp_path: Path) -> None:
    seen = SeenDigests(tmp_path / "seen")
    assert kept(seen) == [START, None, None, None, None, None]
    seen.extend(0, ONE)
    assert kept(seen) == [START, *ONE, None]
    seen.extend(1, OTHER[1:2])
    assert kept(seen) == [START, ONE[0], OTHER[1], None, None, None]
    seen.extend(0, OTHER[:1])
    assert kept(seen) == [START, OTHER[0], None, None, None, None]


def test_a_digest_that_was_cut_off_is_not_known(tmp_path: Path) -> None:
    seen = SeenDigests(tmp_path / "seen")
    seen.extend(0, ONE[:2])
    seen.path.write_bytes(seen.path.read_bytes()[:-1])
    assert kept(seen) == [START, ONE[0], None, None, None, None]
