"""Bytes on the wire that no client's library writes: refused, dropped or waited for alone."""

from __future__ import annotations

import gzip
import socket
import ssl
from collections.abc import Callable

import grpc
import pytest
from harness.abuse.malformed import BEYOND_UTF8, FINE
from harness.abuse.place import (
    ANALYST,
    MESSAGE_LIMIT,
    Place,
    attempt,
    refusal,
    upload,
)
from harness.abuse.raw_http2 import Header, call_headers, connected, endings, message
from harness.server_process import Refusal

from equipoise.model.identities import Role
from equipoise.v1 import analyst_pb2
from equipoise_server.identity.policy import POLICY

pytestmark = pytest.mark.usefixtures("nothing_charged")


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_messages_are_never_unpacked(here: Place, compression: grpc.Compression) -> None:
    bomb = upload(here.shared, bytes(64 * 2**20), piece_bytes=64 * 2**20)
    with here.channel(here.mal, compression=compression) as channel:
        for requests in (upload(here.shared, FINE + bytes(200)), bomb):
            refused = refusal(channel, f"{ANALYST}/DryRunWorkload", requests)
            assert (refused.status, refused.reason) == ("UNIMPLEMENTED", ""), refused


def test_a_message_beyond_the_limit_is_refused(here: Place) -> None:
    with here.channel(here.mal) as channel:
        for requests in (upload(here.shared, bytes(MESSAGE_LIMIT), piece_bytes=MESSAGE_LIMIT),):
            refused = refusal(channel, f"{ANALYST}/SubmitWorkload", requests)
            assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", "")


@pytest.mark.full
def test_bytes_that_are_no_message_are_refused_everywhere(here: Place) -> None:
    """By every method that is served, and however the bytes are wrong."""
    callers = {Role.ANALYST: here.mal, Role.OPERATOR: here.operator, Role.AUDITOR: here.auditor}
    expected = {"INVALID_ARGUMENT": "INVALID", "NOT_FOUND": "NOT_FOUND", "OUT_OF_RANGE": "RANGE"}
    for role, caller in callers.items():
        with here.channel(caller) as channel:
            for method, row in POLICY.items():
                if role not in row.roles:
                    continue
                for garbage in (b"\xff", b"\x0a\x05ab", b"\x0b" * 200, b"\x0a\x03" + BEYOND_UTF8):
                    found = attempt(channel, method, [garbage])
                    if isinstance(found, Refusal):
                        assert expected.get(found.status) == found.reason, (method, garbage, found)
                    else:
                        assert garbage == b"\x0a\x03" + BEYOND_UTF8, (method, garbage)


LOOK = f"{ANALYST}/GetAnalystRound"

GZIP = (b"grpc-encoding", b"gzip")


def changed(name: bytes, *values: bytes) -> list[Header]:
    """The headers of a call with these values of one of them instead."""
    return [*((name, value) for value in values), *(each for each in call_headers(LOOK) if each[0] != name)]


def added(*more: Header) -> list[Header]:
    """The headers of a call, and more."""
    return [*call_headers(LOOK), *more]


Framed = Callable[[bytes], tuple[list[Header], bytes]]

WELL_FORMED: Framed = lambda asked: (call_headers(LOOK), message(asked))  # noqa: E731

# gRPC answers them with a status of its own, or resets them, as its version is; none reaches a method of ours.
REFUSED_FRAMES: dict[str, Framed] = {
    "said to be compressed": lambda asked: (added(GZIP), message(asked, 1)),
    "compressed": lambda asked: (added(GZIP), message(gzip.compress(asked), 1)),
    "no te": lambda asked: (changed(b"te"), message(asked)),
    "GET": lambda asked: (changed(b":method", b"GET"), message(asked)),
    "no path": lambda asked: (changed(b":path"), message(asked)),
    "a path of bytes": lambda asked: (changed(b":path", b"/\xff\xfe"), message(asked)),
    "a path of a service only": lambda asked: (changed(b":path", b"/"), message(asked)),
    "a long path": lambda asked: (changed(b":path", b"/" + b"a" * 9000), message(asked)),
    "an unknown compression": lambda asked: (added((b"grpc-encoding", b"br")), message(asked, 1)),
    "no text in a binary header": lambda asked: (added((b"a-bin", b"!!!")), message(asked)),
    "a capital in a header": lambda asked: (added((b"A", b"a")), message(asked)),
}

# gRPC waits for the rest of these, which never comes; they hold their stream until their own connection ends.
UNFINISHED_FRAMES: dict[str, Framed] = {
    "cut off": lambda asked: (call_headers(LOOK), message(asked)[:-3]),
    "half a prefix": lambda asked: (call_headers(LOOK), message(asked)[:2]),
    "nothing": lambda _: (call_headers(LOOK), b""),
    "the largest length": lambda asked: (call_headers(LOOK), message(asked, length=2**32 - 1)),
    "an unknown flag": lambda asked: (call_headers(LOOK), message(asked, 7)),
}


def looked_at(here: Place) -> bytes:
    return analyst_pb2.GetAnalystRoundRequest(round_id=here.shared).SerializeToString()


@pytest.mark.parametrize("name", REFUSED_FRAMES)
def test_frames_that_no_library_writes_are_refused_alone(here: Place, name: str) -> None:
    asked = looked_at(here)
    first, second = endings(here.server.port, here.mal, [REFUSED_FRAMES[name](asked), WELL_FORMED(asked)])
    assert first.ended in ("trailers", "reset"), first
    assert (first.status != b"0", first.received) == (True, b""), first
    assert second.status == b"0", second


@pytest.mark.parametrize("name", UNFINISHED_FRAMES)
def test_unfinished_messages_hold_up_nobody(here: Place, name: str) -> None:
    asked = looked_at(here)
    unfinished = [UNFINISHED_FRAMES[name](asked)] * 20
    found = endings(here.server.port, here.mal, [*unfinished, WELL_FORMED(asked)], answered=False)
    assert found[-1].status == b"0", found


@pytest.mark.parametrize(
    "spoken",
    [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", bytes(10_000), b"\x16\x03\x01\x02\x00", b""],
    ids=["HTTP/1.1", "zeros", "half a handshake", "nothing"],
)
def test_what_is_not_even_a_call_is_dropped(here: Place, spoken: bytes) -> None:
    with socket.create_connection(("127.0.0.1", here.server.port), 60) as plain:
        plain.sendall(spoken)
    try:
        with connected(here.server.port, here.mal) as secured:
            secured.sendall(spoken)
            secured.sendall(bytes(100))
            while secured.recv(65_536):
                pass
    except (ConnectionError, ssl.SSLError):
        pass
