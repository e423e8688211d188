"""Budgets, costs, accounts and the journal as messages, and back."""

from __future__ import annotations

from equipoise.accounting import Cost
from equipoise.model.accounts import Account, AccountCharge, Budget, JournalEntry
from equipoise.v1 import types_pb2
from equipoise.wire.messages import MessageCodec
from equipoise.wire.scalars import from_server

BUDGET = MessageCodec(types_pb2.Budget, Budget)
COST = MessageCodec(types_pb2.Cost, Cost)
ACCOUNT = MessageCodec(types_pb2.Account, Account, cap=BUDGET, spent=BUDGET, committed=BUDGET)
CHARGE = MessageCodec(types_pb2.AccountCharge, AccountCharge, cap=BUDGET, budget=BUDGET)
JOURNAL_ENTRY = MessageCodec(types_pb2.JournalEntry, JournalEntry, cost=COST)

budget_to_message, budget_from_message = BUDGET.write_request, BUDGET.read
account_to_message, account_from_message = ACCOUNT.write, ACCOUNT.read
journal_entry_to_message, journal_entry_from_message = JOURNAL_ENTRY.write, from_server(JOURNAL_ENTRY.read)
