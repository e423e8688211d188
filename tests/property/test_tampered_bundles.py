"""A bundle is refused with any part changed, left out, repeated, moved or taken from another honest bundle.

The file may stay in its one form, and only what it says be changed, as by someone who has other true bundles of the
same custodian, signed with the same keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.examples import examples
from harness.small_custodian import STATEMENTS, Told
from harness.verifying import flipped, found, log_of
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.records.canonical import canonical_json
from equipoise.records.signed_notes import VerifierKey
from equipoise.verification.checks import VerifierInputs

Place = tuple[str | int, ...]
LOG = log_of()
OWN = json.loads(Told().bundle(LOG, earlier=3).to_bytes())
OTHERS = {
    "another analyst": json.loads(Told(analyst="bob", place=3).bundle(LOG, earlier=4).to_bytes()),
    "another workload": json.loads(Told(statements=STATEMENTS[:2]).bundle(LOG, earlier=5).to_bytes()),
    "an aborted round": json.loads(Told(end="running").bundle(LOG, earlier=6).to_bytes()),
    "another log": json.loads(Told().bundle(log_of(6), earlier=2).to_bytes()),
}


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, itself left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def at(value: Any, path: Place) -> Any:
    for key in path:
        value = value[key]
    return value


def changed(path: Place, value: Any) -> dict[str, Any]:
    """The own bundle with another value at a place."""
    copy: dict[str, Any] = json.loads(json.dumps(OWN))
    at(copy, path[:-1])[path[-1]] = value
    return copy


def refused(bundle: dict[str, Any]) -> bool:
    return found(canonical_json(bundle)) is not None


VECTORS = Path(__file__).parents[1] / "vectors"
SERVED = (VECTORS / "bundle.json").read_bytes()
PAPERS = VerifierInputs([VerifierKey.from_text((VECTORS / "log.vkey").read_text("ascii").rstrip("\n"))])
PLACES = list(places(OWN))
LISTS = [path for path in PLACES if isinstance(at(OWN, path), list)]
# Without these a bundle is a true one that says less: the proof of what was before, a key that is trusted anyway.
EARLIER, KEYS = ("evidence", "earlier"), ("evidence", "keys")


@settings(max_examples=examples(300))
@given(st.integers(0, 8 * len(SERVED) - 1))
def test_every_flipped_bit_of_a_served_bundle_is_found(bit: int) -> None:
    assert found(flipped(SERVED, bit), PAPERS) is not None


def test_all_are_true_bundles() -> None:
    for bundle in (OWN, *OTHERS.values()):
        assert not refused(bundle)
    assert found(SERVED, PAPERS) is None


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_no_part_comes_from_another_bundle(other: dict[str, Any]) -> None:
    """Every part there is, the largest and the smallest, at the same place of the other bundle."""
    in_both = set(PLACES) & set(places(other))
    replaced = {path: changed(path, at(other, path)) for path in in_both}
    mixed = {path: bundle for path, bundle in replaced.items() if bundle not in (OWN, other)}
    assert len(mixed) > 20
    for path, bundle in mixed.items():
        assert refused(bundle), path


def test_nothing_is_left_out() -> None:
    for path in PLACES:
        copy = json.loads(json.dumps(OWN))
        del at(copy, path[:-1])[path[-1]]
        assert refused(copy) or path[:-1] == KEYS, path
        assert refused(changed(path, None)) or path == EARLIER or at(OWN, path) is None, path


def test_nothing_is_repeated_or_moved() -> None:
    for path in LISTS:
        whole = at(OWN, path)
        others = [[*whole, *whole[-1:]], [*whole[:1], *whole], whole[::-1], [*whole[1:], *whole[:1]], [*whole, 0]]
        for other in others:
            if other != whole:
                assert refused(changed(path, other)), path


@settings(max_examples=examples(200))
@given(st.sampled_from([path for path in PLACES if isinstance(at(OWN, path), int | str)]), st.data())
def test_no_text_or_number_is_another(path: Place, data: st.DataObject) -> None:
    value = at(OWN, path)
    if isinstance(value, int):
        near = [value + 1, value - 1, -value - 1, value << 32]
        other = data.draw(st.sampled_from([*near, float(value), str(value)]))
    else:
        place = data.draw(st.integers(0, len(value)))
        end = place + data.draw(st.integers(0, 3))
        other = value[:place] + data.draw(st.text(max_size=3)) + value[end:]
    if canonical_json(other) != canonical_json(value):
        assert refused(changed(path, other))
