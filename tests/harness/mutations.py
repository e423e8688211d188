"""Messages that are nearly right: valid ones with fields changed, and their bytes damaged."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from hypothesis import strategies as st

TEXTS = (
    "",
    "shop",
    "ann",
    "colour",
    "size",
    "red",
    "' OR '1'='1",
    "%s%n",
    "../../etc/passwd",
    "a\r\n\x1b[31m\x9b",
    "\0",
    "\u202e",
    "\U0001f600" * 600,
    "a" * 5000,
    '{"play": 1e999}',
    '{"\\ud800": 1}',
    '{"a":' * 300 + "1" + "}" * 300,
    "[" * 2000,
    "9" * 30,
)
MECHANISMS = (
    "auto",
    "gaussian",
    "laplace",
    "projection",
    "histogram",
    "multiplicative_weights",
    "small_db",
    "pooled",
)
NUMBERS = (0.0, -0.0, 5e-324, -1.0, 0.5, 1.0, math.nextafter(1.0, 0.0), 2.0, 1e-300, 1e308, math.inf, math.nan)
UNSIGNED = (0, 1, 2, 5, 12, 1000, 1001, 2**31 - 1, 2**31, 2**32 - 1)

texts = st.sampled_from(TEXTS + MECHANISMS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
doubles = st.sampled_from(NUMBERS) | st.floats()
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    Field.TYPE_STRING: texts,
    Field.TYPE_BYTES: st.binary(max_size=40),
    Field.TYPE_BOOL: st.booleans(),
    Field.TYPE_DOUBLE: doubles,
    Field.TYPE_ENUM: st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 9),
    Field.TYPE_UINT32: st.sampled_from(UNSIGNED),
    Field.TYPE_UINT64: st.sampled_from((*UNSIGNED, 2**40, 2**63 - 1, 2**63, 2**64 - 1)),
    Field.TYPE_INT32: st.sampled_from((0, -1, 999_999_999, 10**9, 2**31 - 1, -(2**31))),
    Field.TYPE_INT64: st.sampled_from((0, -1, 10**9, 253_402_300_799, 253_402_300_800, 2**63 - 1, -(2**63))),
    Field.TYPE_SFIXED64: st.sampled_from((0, -1, 2**62, 2**63 - 1, -(2**63))),
    Field.TYPE_FIXED64: st.sampled_from((0, 1, 2**62, 2**62 + 1, 2**64 - 1)),
}


def change(draw: st.DrawFn, message: Message) -> None:
    """Changes one field of a message, or of one below it."""
    field: Any = draw(st.sampled_from(list(message.DESCRIPTOR.fields)))
    value: Any = getattr(message, field.name)
    if field.type != Field.TYPE_MESSAGE:
        drawn = draw(SCALARS[field.type])
        if field.is_repeated:
            value.append(drawn)
        else:
            setattr(message, field.name, drawn)
    elif draw(st.integers(0, 5)) == 0:
        message.ClearField(field.name)
    elif not field.is_repeated:
        value.SetInParent()
        change(draw, value)
    elif value and draw(st.booleans()):
        change(draw, value[draw(st.integers(0, len(value) - 1))])
    else:
        added = value.add()
        if len(value) > 1 and draw(st.booleans()):
            added.CopyFrom(value[0])
        change(draw, added)


@st.composite
def nearly(draw: st.DrawFn, template: Message) -> bytes:
    """The bytes of the template with up to three fields changed, sometimes damaged, cut off or lengthened."""
    message = type(template)()
    message.CopyFrom(template)
    for _ in range(draw(st.integers(0, 3))):
        change(draw, message)
    data = bytearray(message.SerializeToString())
    damage = draw(st.sampled_from(["none", "none", "none", "flip", "cut", "join", "swap"]))
    if damage == "join":
        data += draw(st.binary(max_size=8))
    elif data and damage == "cut":
        del data[draw(st.integers(0, len(data) - 1)) :]
    elif data and damage == "flip":
        for _ in range(draw(st.integers(1, 3))):
            data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    elif data and damage == "swap":
        place = draw(st.integers(0, len(data) - 1))
        data = data[place:] + data[:place]
    return bytes(data)
