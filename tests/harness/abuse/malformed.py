"""What malformed messages are made of, and the refusals that they get: status and reason."""

from __future__ import annotations

from harness.abuse.place import ASKED

from equipoise.wire.workloads import workload_to_bytes

INVALID = ("INVALID_ARGUMENT", "INVALID")
BUDGET = ("RESOURCE_EXHAUSTED", "BUDGET")
FINE = workload_to_bytes(ASKED)
LARGE_EDGE = 1.7976931348623157e308
DENORMAL = 5e-324
BEYOND_UTF8 = b"\xed\xa0\x80"  # half of a surrogate pair

NASTY = {
    "control characters": "a\r\n\t\x1b]0;b\x07\x7f\x9b",
    "SQL": "a'); DROP TABLE rounds; --",
    "a format string": "%s%n{0.__class__.__init__.__globals__}${jndi:x}",
    "a path": "../../keys/storage.key",
    "right to left": "\u202etxt.a\u2066",
    "invisible": "\ufeff\u200b\u00ad",
    "combining": "a" + "\u0301" * 3000,
    "wide and long": "\U0001f600" * 50_000,
    "long": "a" * 200_000,
    "markup": "[red]a[/red]<b>&amp;</b>",
    "not quite the name": "colour\u0337",
}
