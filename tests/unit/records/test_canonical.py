"""Canonical JSON, base64 and hexadecimal: one encoding for a value, and no other read."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import (
    canonical_json,
    from_base64,
    from_hex,
    parse_canonical_json,
    read_object,
    to_base64,
)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ({"b": 1, "a": [None, True, False]}, b'{"a":[null,true,false],"b":1}'),
        ([0.1, 1.0, 1e16, 5e-324, -0.0, 10**30], b"[0.1,1.0,1e+16,5e-324,-0.0,1000000000000000000000000000000]"),
        ({"é": "\x7f\n/\U0001f600", "Z": ""}, b'{"Z":"","\\u00e9":"\\u007f\\n/\\ud83d\\ude00"}'),
    ],
)
def test_a_value_has_one_encoding(value: Any, encoded: bytes) -> None:
    assert canonical_json(value) == encoded
    assert parse_canonical_json(encoded, "it") == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}\n",
        b'{"a": 1}',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b"NaN",
        b"[Infinity]",
        b"1e400",
        b"1.00",
        b"1E5",
        b"-0",
        b'"\\u0041"',
        b'"\\/"',
        b'"\\u00E9"',
        '"é"'.encode(),
        b'"\xff"',
        b"\xef\xbb\xbf1",
        b"[" * 100_000,
        b"1" * 10_000,
    ],
)
def test_any_other_encoding_is_refused(data: bytes) -> None:
    with pytest.raises(VerificationFailed, match="the item is not canonical JSON"):
        parse_canonical_json(data, "the item")


def test_what_is_not_json_is_not_written() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            canonical_json([value])
    with pytest.raises(TypeError):
        canonical_json(b"")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "is not an object"),
        ({"count": 1}, "name is missing"),
        ({"count": 1, "name": None, "more": 1}, "more is unknown"),
        ({"count": True, "name": None}, "count is of another type"),
        ({"count": 1.0, "name": None}, "count is of another type"),
        ({"count": 1, "name": 2}, "name is of another type"),
    ],
)
def test_an_object_has_exactly_its_keys_and_types(value: Any, problem: str) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {"count": int, "name": (str, type(None))}
    assert read_object({"count": 1, "name": None}, kinds, "it") == {"count": 1, "name": None}
    with pytest.raises(VerificationFailed, match=f"^it:? {problem}$"):
        read_object(value, kinds, "it")


@pytest.mark.parametrize(
    "text", ["AA", "AA=", "AB==", "AAB=", "A A=", "AA==\n", "AAA-", "AA===", "é", None, 3, b"AA=="]
)
def test_base64_is_read_as_it_is_written(text: Any) -> None:
    assert [from_base64(to_base64(data), "it") for data in (b"", b"\0", b"\xff\xfe", bytes(99))] == [
        b"",
        b"\0",
        b"\xff\xfe",
        bytes(99),
    ]
    with pytest.raises(VerificationFailed, match="base64"):
        from_base64(text, "it")


@pytest.mark.parametrize("text", ["", "0", "0a0", "0A0b", "0a 0b", " 0a0b", "0a0b0c", "0x0a", "zz00", None, 7])
def test_hexadecimal_is_read_as_it_is_written(text: Any) -> None:
    assert from_hex("0a0b", 2, "it") == b"\x0a\x0b"
    with pytest.raises(VerificationFailed, match="hexadecimal"):
        from_hex(text, 2, "it")
