"""One typed codec for all that is hashed, signed, or compared as a request: values to canonical JSON and back.

A codec names every key of an object literally, beside the attribute that holds its value. So a Python attribute or
class can get another name without a byte changing. A reader accepts only what the writer of the same codec writes
(`docs/formats.md`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast, dataclass_transform

from equipoise.errors import VerificationFailed
from equipoise.records import canonical
from equipoise.records.merkle import HASH_BYTES

T = TypeVar("T")
U = TypeVar("U")
Name = TypeVar("Name", bound=StrEnum)
_ANY: tuple[type, ...] = (str, int, float, bool, dict, list, type(None))
_FRACTION = re.compile(r"-?[0-9]{1,2000}(/[1-9][0-9]{0,1999})?", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Codec(Generic[T]):
    """How the values of one type are written as JSON values, and how they are read.

    `decode` is given the JSON value and what it is called in the `VerificationFailed` that it raises. `keys`: of an
    object, each key with the attribute that it stands for.
    """

    encode: Callable[[T], Any]
    decode: Callable[[Any, str], T]
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def to_bytes(self, value: T) -> bytes:
        """Write the value as canonical JSON."""
        return canonical.canonical_json(self.encode(value))

    def from_bytes(self, data: bytes, what: str) -> T:
        """Read what `to_bytes` writes. Raises `VerificationFailed`, which names `what`, for all other bytes."""
        try:
            value = self.decode(json.loads(data), what)
            if self.to_bytes(value) == data:
                return value
        except (ValueError, RecursionError, VerificationFailed):
            pass
        # What is wrong is said first of the JSON. What is written as these very bytes needs no such comparison.
        self.decode(canonical.parse_canonical_json(data, what), what)
        raise VerificationFailed(f"{what} is not written in its one form")

    def to_text(self, value: T) -> str:
        """Write the value as a string of canonical JSON."""
        return self.to_bytes(value).decode("ascii")

    def from_text(self, text: str, what: str) -> T:
        """Read what `to_text` writes. Raises `VerificationFailed` for all other text."""
        return self.from_bytes(text.encode("utf-8", "surrogatepass"), what)


def key(name: str, codec: Codec[T]) -> T:
    """Declare a field of a `canonical_object`: the key of its JSON object, and the codec of its value."""
    return cast(T, dataclasses.field(metadata={"key": name, "codec": codec}))


@dataclass_transform(frozen_default=True, field_specifiers=(key,))
def canonical_object(cls: type[T]) -> type[T]:
    """Make a frozen dataclass whose fields are all declared by `key`; `codec_of` gives its codec."""
    return dataclasses.dataclass(frozen=True)(cls)


def codec_of(cls: type[T], constants: Mapping[str, Any] | None = None) -> Codec[T]:
    """The codec of a `canonical_object`; `constants` are keys with fixed values, such as a format's version."""
    declared = {
        field.metadata["key"]: (field.name, field.metadata["codec"]) for field in dataclasses.fields(cast(Any, cls))
    }
    return object_codec(cls, declared, constants)


def object_codec(
    build: Callable[..., T],
    keys: Mapping[str, tuple[str, Codec[Any]]],
    constants: Mapping[str, Any] | None = None,
) -> Codec[T]:
    """Returns the codec of objects whose class says nothing of JSON; it reads others with `VerificationFailed`.

    Args:
        build: makes the value of its attributes, given by name.
        keys: for each key the attribute that holds its value, and the value's codec.
        constants: keys with fixed values.
    """
    fixed = dict(constants or {})
    kinds: dict[str, type | tuple[type, ...]] = {name: type(value) for name, value in fixed.items()}
    kinds |= dict.fromkeys(keys, _ANY)

    def encode(value: T) -> Any:
        return fixed | {name: codec.encode(getattr(value, place)) for name, (place, codec) in keys.items()}

    def decode(value: Any, what: str) -> T:
        # First, so that what another version has written is called that.
        for name, expected in fixed.items():
            if type(value) is dict and name in value and value[name] != expected:
                raise VerificationFailed(f"{what}: {name} is {value[name]!a}, but must be {expected!a}")
        fields = canonical.read_object(value, kinds, what)
        read = {place: codec.decode(fields[name], f"{what}: {name}") for name, (place, codec) in keys.items()}
        try:
            return build(**read)
        except ValueError as problem:
            raise VerificationFailed(f"{what}: {problem}") from None

    return Codec(encode, decode, {name: place for name, (place, _) in keys.items()})


def either(tag: str, kinds: Mapping[str, tuple[type, Codec[Any]]]) -> Codec[Any]:
    """Returns the codec of a union of classes: the key `tag` of an object names its class, one of `kinds`."""
    tags = dict(kinds.values())
    named = one_of(*kinds)

    def decode(value: Any, what: str) -> Any:
        name = named.decode(OBJECT.decode(value, what).get(tag), f"{what}: {tag}")
        return kinds[name][1].decode(value, what)

    return Codec(lambda value: tags[type(value)].encode(value), decode)


def converted(codec: Codec[U], to: Callable[[T], U], back: Callable[[U], T]) -> Codec[T]:
    """Returns the codec of values that `to` turns into others, which have a codec, and `back` turns back.

    `back` raises `ValueError` where it cannot convert.
    """

    def decode(value: Any, what: str) -> T:
        try:
            return back(codec.decode(value, what))
        except ValueError as problem:
            raise VerificationFailed(f"{what}: {problem}") from None

    return Codec(lambda value: codec.encode(to(value)), decode)


def optional(codec: Codec[T]) -> Codec[T | None]:
    """Returns the codec of values that may be missing: null."""
    return Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value, what: None if value is None else codec.decode(value, what),
    )


def list_of(codec: Codec[T]) -> Codec[tuple[T, ...]]:
    """Returns the codec of tuples: a list."""

    def decode(value: Any, what: str) -> tuple[T, ...]:
        if type(value) is not list:
            raise VerificationFailed(f"{what} is not a list")
        return tuple(codec.decode(each, f"{what}[{place}]") for place, each in enumerate(value))

    return Codec(lambda values: [codec.encode(value) for value in values], decode)


def mapping_of(codec: Codec[T]) -> Codec[Mapping[str, T]]:
    """Returns the codec of mappings whose keys are names: an object with any keys."""

    def decode(value: Any, what: str) -> Mapping[str, T]:
        return {name: codec.decode(each, f"{what}: {name}") for name, each in OBJECT.decode(value, what).items()}

    return Codec(lambda values: {name: codec.encode(value) for name, value in values.items()}, decode)


def one_of(*allowed: str) -> Codec[str]:
    """Returns the codec of a string that is one of these."""

    def decode(value: Any, what: str) -> str:
        if type(value) is not str or value not in allowed:
            raise VerificationFailed(f"{what} is none of {', '.join(allowed)}")
        return value

    return Codec(str, decode)


def name_of(names: type[Name]) -> Codec[Name]:
    """Returns the codec of an enumeration of names: its value, a string."""
    text = one_of(*names)
    return Codec(lambda name: name.value, lambda value, what: names(text.decode(value, what)))


def hex_of(length: int) -> Codec[bytes]:
    """Returns the codec of `length` bytes: lower-case hexadecimal."""
    return Codec(lambda data: data.hex(), lambda value, what: canonical.from_hex(value, length, what))


def base64_of(length: int) -> Codec[bytes]:
    """Returns the codec of exactly `length` bytes: base64."""

    def decode(value: Any, what: str) -> bytes:
        data = canonical.from_base64(value, what)
        if len(data) != length:
            raise VerificationFailed(f"{what} does not have {length} bytes")
        return data

    return Codec(canonical.to_base64, decode)


def bytes_in(encoding: str) -> Codec[bytes]:
    """Returns the codec of bytes that are text in this encoding: a string of exactly these bytes."""

    def decode(value: Any, what: str) -> bytes:
        try:
            return TEXT.decode(value, what).encode(encoding)
        except UnicodeEncodeError:
            raise VerificationFailed(f"{what} is not a string of bytes") from None

    return Codec(lambda data: data.decode(encoding), decode)


def _of_type(kind: type[T], called: str, holds: Callable[[T], bool] = lambda value: True) -> Codec[T]:
    def decode(value: Any, what: str) -> T:
        if type(value) is not kind or not holds(value):
            raise VerificationFailed(f"{what} is not {called}")
        return value

    return Codec(lambda value: value, decode)


def _fraction(value: Any, what: str) -> Fraction:
    # A decimal of ten letters can stand for gigabytes of digits: only digits are read.
    if type(value) is not str or not _FRACTION.fullmatch(value) or str(read := Fraction(value)) != value:
        raise VerificationFailed(f"{what} is not a fraction in lowest terms")
    return read


TEXT: Codec[str] = _of_type(str, "a string")
COUNT: Codec[int] = _of_type(int, "an integer of at least 0", lambda value: value >= 0)
POSITIVE: Codec[int] = _of_type(int, "an integer of at least 1", lambda value: value >= 1)
INTEGER: Codec[int] = _of_type(int, "an integer")
BOOLEAN: Codec[bool] = _of_type(bool, "true or false")
OBJECT: Codec[Mapping[str, Any]] = Codec(dict, _of_type(dict, "an object").decode)
# Whole numbers too, so that a number has one spelling.
REAL: Codec[float] = Codec(float, _of_type(float, "a float", math.isfinite).decode)
FRACTION: Codec[Fraction] = Codec(str, _fraction)
HASH: Codec[bytes] = hex_of(HASH_BYTES)
BASE64: Codec[bytes] = Codec(canonical.to_base64, canonical.from_base64)
