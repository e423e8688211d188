"""A call written frame by frame, for what no gRPC library would send.

Only what that takes of HTTP/2 (RFC 9113) and HPACK (RFC 7541): literal headers without indexing or compression, and
of what comes back the kinds of frames, read until the server ends the stream or the connection.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.server_process import Credentials

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_TABLE = struct.pack(">HI", 1, 0)  # what comes back names no header that came before
SECONDS = 60
MAX_FRAME = 16_384

Header = tuple[bytes, bytes]


@dataclass
class Ending:
    """What came back on one stream: data, headers as they were written, and how it ended.

    `ended` is "trailers", "reset", or "closed" where the connection ended first; `status` the gRPC status number,
    empty without one.
    """

    received: bytes = b""
    headers: bytes = b""
    ended: str = ""

    @property
    def status(self) -> bytes:
        """The number after `grpc-status`, which gRPC writes as a literal."""
        found = re.search(rb"grpc-status[\x01\x02](\d+)", self.headers)
        return found[1] if found else b""


def connected(port: int, credentials: Credentials) -> ssl.SSLSocket:
    """A TLS connection that has agreed on HTTP/2."""
    context = ssl.create_default_context(cadata=credentials.authority.decode())
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    if credentials.certificate is not None and credentials.key is not None:
        with tempfile.TemporaryDirectory() as directory:
            both = Path(directory) / "both.pem"
            both.write_bytes(credentials.certificate + credentials.key)
            context.load_cert_chain(both)
    plain = socket.create_connection(("127.0.0.1", port), SECONDS)
    try:
        return context.wrap_socket(plain, server_hostname="127.0.0.1")
    except BaseException:
        plain.close()
        raise


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(headers: Sequence[Header]) -> bytes:
    """Headers as HPACK literals."""
    return b"".join(b"\0" + _literal(name) + _literal(value) for name, value in headers)


def call_headers(method: str) -> list[Header]:
    """What every gRPC call begins with."""
    return [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":path", method.encode()),
        (b":authority", b"127.0.0.1"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]


def message(content: bytes, compressed: int = 0, length: int | None = None) -> bytes:
    """A gRPC message with its prefix, which may lie."""
    return struct.pack(">BI", compressed, len(content) if length is None else length) + content


def endings(
    port: int, credentials: Credentials, calls: Sequence[tuple[Sequence[Header], bytes]], *, answered: bool = True
) -> list[Ending]:
    """Makes calls on one connection, one after another, each ended after its body.

    Waits for the end of each, or, where all but the last are not `answered` at all, of the last only.
    """
    with connected(port, credentials) as connection:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, NO_TABLE))
        found, end = [Ending() for _ in calls], time.monotonic() + SECONDS
        for place, (headers, body) in enumerate(calls):
            stream = 2 * place + 1
            connection.sendall(frame(HEADERS, END_HEADERS, stream, header_block(headers)))
            pieces = [body[at : at + MAX_FRAME] for at in range(0, len(body), MAX_FRAME)] or [b""]
            for number, piece in enumerate(pieces, start=1):
                connection.sendall(frame(DATA, END_STREAM if number == len(pieces) else 0, stream, piece))
            if answered or place == len(calls) - 1:
                while not found[place].ended and _read(connection, found):
                    assert time.monotonic() < end, found
            if "closed" in (each.ended for each in found):
                break
        return found


def _read(connection: ssl.SSLSocket, found: Sequence[Ending]) -> bool:
    """Takes in one frame; false where the connection has ended."""
    head = _exactly(connection, 9)
    kind, flags, stream = (head[3], head[4], int.from_bytes(head[5:], "big")) if head else (GOAWAY, 0, 0)
    payload = _exactly(connection, int.from_bytes(head[:3], "big")) or b"" if head else b""
    if kind == GOAWAY:
        for each in found:
            each.ended = each.ended or "closed"
        return False
    if kind in (SETTINGS, PING) and not flags & ACK:
        connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
    if stream:
        ending = found[stream // 2]
        if kind == DATA:
            ending.received += payload
        elif kind == HEADERS:
            ending.headers += payload
        if kind == RST_STREAM:
            ending.ended = ending.ended or "reset"
        elif kind in (DATA, HEADERS) and flags & END_STREAM:
            ending.ended = "trailers"
    return True


def _exactly(connection: ssl.SSLSocket, count: int) -> bytes | None:
    """So many bytes, or None where the connection ends before."""
    received = b""
    while len(received) < count:
        try:
            part = connection.recv(count - len(received))
        except (ConnectionError, ssl.SSLEOFError):
            part = b""
        if not part:
            return None
        received += part
    return received


def _literal(text: bytes) -> bytes:
    """A string of HPACK: its length with a seven-bit prefix, and its bytes."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, encoded = len(text) - 127, bytearray([127])
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    return bytes(encoded) + bytes([rest]) + text
