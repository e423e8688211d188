"""The dangers of the budgets that tests use, named as operators name them."""

from __future__ import annotations

from equipoise.model.accounts import Danger
from equipoise.wire.terms import DANGERS

# Tables of tests are small: noise that hides a person in them would hide every answer, too.
SMALL_TABLE = (Danger.NOISE, Danger.PROMISE)
SMALL_TABLE_SENT = tuple(DANGERS.write(each, "accepted") for each in SMALL_TABLE)
SMALL_TABLE_TYPED = tuple(word for each in SMALL_TABLE for word in ("--accept", each.value))
