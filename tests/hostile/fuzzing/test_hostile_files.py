"""Files and messages that come from elsewhere are read, or refused with the one right error."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message
from harness.mutations import nearly
from harness.server_process import signing_request
from harness.shown_rounds import shown_round
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.accounting import Cost
from equipoise.auditing.ledger_export import exported
from equipoise.errors import DataLoss, InvalidArgument, NotFound
from equipoise.model.accounts import JournalEntry
from equipoise.model.rounds import RoundState
from equipoise.profile.enrolment import Bundle
from equipoise.profile.profile import Profile
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements_file import statements_from_json
from equipoise.records.signed_notes import VerifierKey
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire import rounds, workloads
from equipoise.wire.accounts import account_from_message, journal_entry_from_message
from equipoise.wire.datasets import dataset_from_message
from equipoise.wire.identities import caller_from_message
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.submissions import receipt_from_message
from equipoise_server.config_file import CONFIG_FILE, load_config, make_config, render
from equipoise_server.identity.authority import Authority, certificate_to_pem, key_to_pem, new_key
from equipoise_server.identity.enrolment import requested_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEEP = 5000


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with a few of them changed, taken out or put in."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(found)))
        end = min(len(found), place + draw(st.integers(0, 3)))
        found[place:end] = draw(st.binary(max_size=3))
    return bytes(found)


@st.composite
def damaged_pem(draw: st.DrawFn, pem: bytes) -> bytes:
    """PEM with its text damaged, or what is inside."""
    if draw(st.booleans()):
        return draw(damaged(pem))
    first, *lines, last = pem.decode().strip().splitlines()
    inside = draw(damaged(base64.b64decode("".join(lines))))
    return "\n".join([first, base64.b64encode(inside).decode(), last, ""]).encode()


AUTHORITY = Authority.create("here", NOW)
KEY = new_key()
FILES = {
    "ca.pem": AUTHORITY.pem,
    "certificate.pem": certificate_to_pem(AUTHORITY.issue_identity("ann", KEY.public_key(), NOW)),
    "key.pem": key_to_pem(KEY),
}
SETTINGS = b'target = "127.0.0.1:7443"\nname = "ann"\n'


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("profile")
    for name, content in {**FILES, "profile.toml": SETTINGS}.items():
        (directory / name).write_bytes(content)
    (directory / "key.pem").chmod(0o600)
    assert Profile.load(directory).name == "ann"
    return directory


def with_file(path: Path, content: bytes, read: Callable[[], object]) -> None:
    """Reads while the file holds this: what is wrong is refused by the file's own name."""
    kept = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    try:
        read()
    except InvalidArgument as error:
        named = error.field
    else:
        named = str(path)
    finally:
        if kept is None:
            path.unlink()
        else:
            path.write_bytes(kept)
    assert str(path.parent) in named


def with_inside(pem: bytes, old: bytes, new: bytes) -> bytes:
    """PEM with one part inside exchanged for another of the same length."""
    first, *lines, last = pem.decode().strip().splitlines()
    inside = base64.b64decode("".join(lines))
    assert old in inside
    assert len(old) == len(new)
    changed = base64.b64encode(inside.replace(old, new, 1)).decode()
    return "\n".join([first, changed, last, ""]).encode()


VERSION_3, VERSION_6 = bytes([0xA0, 3, 2, 1, 2]), bytes([0xA0, 3, 2, 1, 5])
POINT, NO_POINT = bytes([0x03, 66, 0, 4]), bytes([0x03, 66, 0, 0])  # of a key: uncompressed, and of no known form
VERSION_1, VERSION_8 = bytes([2, 1, 0]), bytes([2, 1, 7])


@given(st.sampled_from(sorted(FILES)).flatmap(lambda name: st.tuples(st.just(name), damaged_pem(FILES[name]))))
@example(("ca.pem", with_inside(FILES["ca.pem"], VERSION_3, VERSION_6)))
@example(("ca.pem", with_inside(FILES["ca.pem"], POINT, NO_POINT)))
@example(("certificate.pem", with_inside(FILES["certificate.pem"], VERSION_3, VERSION_6)))
@example(("certificate.pem", with_inside(FILES["certificate.pem"], POINT, NO_POINT)))
@settings(max_examples=3 * settings().max_examples)
def test_damaged_certificates_and_keys_are_named(profile: Path, file: tuple[str, bytes]) -> None:
    name, content = file
    with_file(profile / name, content, lambda: Profile.load(profile))


@given(damaged(SETTINGS))
@example(b"a = " + b"[" * DEEP)
@example(b"a = " + b"{a=" * DEEP)
@example(b"target = 1979-05-27T07:32:00Z\nname = 3")
def test_damaged_profiles_are_named(profile: Path, content: bytes) -> None:
    with_file(profile / "profile.toml", content, lambda: Profile.load(profile))


LOG_KEY = f"{VerifierKey('equipoise/here', bytes(range(32))).to_text()}\n"
BUNDLE = Bundle("ann", "127.0.0.1:7443", FILES["certificate.pem"], FILES["ca.pem"], LOG_KEY)


@given(damaged(BUNDLE.to_json().encode()).map(lambda content: content.decode("utf-8", "replace")))
@example("[" * 100_000)
@example('{"version": 2, "name": 1, "target": [], "certificate": "\u00e9", "authority": "", "log_keys": 1}')
def test_damaged_bundles_are_named(content: str) -> None:
    with contextlib.suppress(InvalidArgument):
        Bundle.from_json(content)


@given(damaged(render(make_config(deployment="here")).encode()))
@example(b"deployment = " + b"[" * DEEP)
@example(b'deployment = "a"\nlisten = "a:\xd9\xa3"')
@example(b'deployment = "a"\nrelease_grid_seconds = ' + b"9" * 5000)
@example(b'deployment = "a"\ndrain_seconds = nan')
@example(b"\xff\xfe")
def test_damaged_configurations_are_named(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    state = tmp_path_factory.getbasetemp() / "state"
    state.mkdir(exist_ok=True)
    with_file(state / CONFIG_FILE, content, lambda: load_config(state))


@given(damaged_pem(signing_request(KEY)))
@example(with_inside(signing_request(KEY), VERSION_1, VERSION_8))
@example(with_inside(signing_request(KEY), POINT, NO_POINT))
@settings(max_examples=3 * settings().max_examples)
def test_damaged_signing_requests_are_refused(content: bytes) -> None:
    with contextlib.suppress(InvalidArgument):
        requested_key(content)


ASKED = {
    "version": 1,
    "statements": [
        {"marginal": ["colour"]},
        {"any": [{"not": {"interval": {"attribute": "size", "low": 1.5, "high": None}}}]},
        {"all": [{"among": {"attribute": "colour", "categories": ["red"]}}]},
    ],
}


@given(damaged(json.dumps(ASKED).encode()))
@example(b"[" * 100_000)
@example(b'{"version": 1, "statements": [' + b'{"not": ' * 200 + b"1" + b"}" * 200 + b"]}")
@example(b'{"version": 1, "statements": [{"interval": {"attribute": "a", "low": 1e999, "high": NaN}}]}')
def test_damaged_statements_are_refused(content: bytes) -> None:
    with contextlib.suppress(InvalidArgument):
        workloads.workload_to_bytes(statements_from_json(content.decode("utf-8", "surrogateescape")))


SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("[0, 1)", "[1, 2)"), (0.0, 1.0, 2.0))))
BUDGET = types_pb2.Budget(epsilon=1.0, delta=1e-6)
SHOWN = shown_round("a", RoundState.OPEN)
RECEIVED: tuple[tuple[Callable[[Any], object], Message], ...] = (
    (dataset_from_message, types_pb2.Dataset(name="shop", schema=workloads.schema_to_message(SCHEMA), records=4)),
    (rounds.round_from_message, SHOWN),
    (rounds.round_detail_from_message, types_pb2.RoundDetail(round=SHOWN)),
    (receipt_from_message, analyst_pb2.Receipt(round_id="a", statements=1, queries=1)),
    (account_from_message, types_pb2.Account(name="data/shop", cap=BUDGET)),
    (journal_entry_from_message, types_pb2.JournalEntry(sequence=1, action="open-account", events="{}")),
    (
        lambda message: chunk_from_bytes(message.SerializeToString()),
        types_pb2.ResultChunk(version=1, last=True),
    ),
    (caller_from_message, analyst_pb2.GetIdentityResponse(role=types_pb2.ROLE_ANALYST)),
)


@given(st.sampled_from(range(len(RECEIVED))).flatmap(lambda i: st.tuples(st.just(i), nearly(RECEIVED[i][1]))))
@settings(max_examples=3 * settings().max_examples)
def test_what_a_server_sends_is_understood_or_lost(received: tuple[int, bytes]) -> None:
    read, template = RECEIVED[received[0]]
    # What does not parse never comes to these: gRPC gives the call up.
    with contextlib.suppress(DecodeError, DataLoss):
        read(type(template).FromString(received[1]))


OPENED = '{"composition": "sum", "cap": {"epsilon": 1.0, "delta": 1e-06}, "order": 9.0}'
CHARGED = '{"events":[{"event":"ZCDpEvent","name":"a","rho":"1/100","times":4}],"mechanism":"gaussian"}'
CHARGE = Cost(divergence=360_000_000_000)


def entry(action: str, events: str) -> JournalEntry:
    return JournalEntry(1, NOW, action, "data/shop", "a", CHARGE if action == "reserve" else Cost(), events, b"")


def test_the_export_that_is_damaged_below_is_one() -> None:
    assert exported("data/shop", [entry("open-account", OPENED), entry("reserve", CHARGED)])["sums"]


ACTIONS = ("open-account", "set-cap", "reserve", "spend", "release", "write-off", "other")
TEXTS = st.sampled_from([OPENED, CHARGED, "", "[]", "null", '{"events": [1]}', '{"order": "1/0"}', "[" * 9000])


@given(
    st.sampled_from([OPENED, CHARGED]).flatmap(lambda text: damaged(text.encode())),
    st.lists(st.tuples(st.sampled_from(ACTIONS), TEXTS), max_size=4),
    st.integers(0, 4),
)
@example(CHARGED.replace("1/100", "1/0").encode(), [("open-account", OPENED)], 1)
@example(CHARGED.replace('"1/100"', "1e999").encode(), [("open-account", OPENED)], 1)
@example(b"[]", [("open-account", OPENED)], 1)
def test_damaged_journals_are_lost(content: bytes, others: list[tuple[str, str]], place: int) -> None:
    text = content.decode("utf-8", "replace")
    action = "reserve" if "event" in text or len(text) < 5 else "open-account"
    entries = [entry(*each) for each in others]
    entries.insert(place, entry(action, text))
    entries.append(entry("write-off", text))
    with contextlib.suppress(DataLoss, NotFound):
        exported("data/shop", entries)
