"""The dangers of the budgets that tests use, named as operators name them."""

from __future__ import annotations

from equipoise.model.accounts import Danger
from equipoise.wire.terms import DANGERS

# Tables of tests are small: noise that hides a person in them would hide every answer, too.
SMALL_TABLE = (Danger.NOISE, Danger.PROMISE)
LARGE_CAPS = (Danger.EPSILON,)  # for many rounds on one small table
ANY_BUDGET = (*SMALL_TABLE, Danger.EPSILON, Danger.DELTA)  # where the budget itself is what is tried
SMALL_TABLE_SENT = tuple(DANGERS.write(each, "accepted") for each in SMALL_TABLE)
LARGE_CAPS_SENT = tuple(DANGERS.write(each, "accepted") for each in LARGE_CAPS)
ANY_BUDGET_SENT = tuple(DANGERS.write(each, "accepted") for each in ANY_BUDGET)
LARGE_CAPS_TYPED = tuple(word for each in LARGE_CAPS for word in ("--accept", each.value))
SMALL_TABLE_TYPED = tuple(word for each in SMALL_TABLE for word in ("--accept", each.value))
