"""Budgets, costs, accounts and the journal as messages, and back."""

from __future__ import annotations

import math

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Account, AccountCharge, Budget, JournalEntry
from equipoise.v1 import types_pb2
from equipoise.wire.scalars import from_server, time_from_message, time_to_message


def budget_to_message(budget: Budget) -> types_pb2.Budget:
    """The message of an (epsilon, delta) pair."""
    return types_pb2.Budget(epsilon=budget.epsilon, delta=budget.delta)


def budget_from_message(message: types_pb2.Budget) -> Budget:
    """The pair, as it stands."""
    return Budget(message.epsilon, message.delta)


def checked_budget(message: types_pb2.Budget, field: str) -> Budget:
    """A pair that somebody asks for. Raises `InvalidArgument` unless 0 <= epsilon < infinity and 0 <= delta < 1."""
    if not (math.isfinite(message.epsilon) and message.epsilon >= 0):
        raise InvalidArgument(f"{field}.epsilon", "must be a finite number, at least 0")
    if not 0 <= message.delta < 1:
        raise InvalidArgument(f"{field}.delta", "must be at least 0 and less than 1")
    return budget_from_message(message)


def cost_to_message(cost: Cost) -> types_pb2.Cost:
    """The message of a cost."""
    return types_pb2.Cost(rho=cost.rho, epsilon=cost.epsilon, delta=cost.delta, divergence=cost.divergence)


def cost_from_message(message: types_pb2.Cost) -> Cost:
    """The cost."""
    return Cost(message.rho, message.epsilon, message.delta, message.divergence)


def account_to_message(account: Account) -> types_pb2.Account:
    """The message of what stands on one account."""
    return types_pb2.Account(
        name=account.name,
        cap=budget_to_message(account.cap),
        spent=budget_to_message(account.spent),
        committed=budget_to_message(account.committed),
        order=account.order,
        divergence=account.divergence,
        max_divergence=account.max_divergence,
        delta=account.delta,
        max_delta=account.max_delta,
    )


def account_from_message(message: types_pb2.Account) -> Account:
    """What stands on one account."""
    return Account(
        name=message.name,
        cap=budget_from_message(message.cap),
        spent=budget_from_message(message.spent),
        committed=budget_from_message(message.committed),
        order=message.order if message.HasField("order") else None,
        divergence=message.divergence,
        max_divergence=message.max_divergence,
        delta=message.delta,
        max_delta=message.max_delta,
    )


def charge_to_message(charge: AccountCharge) -> types_pb2.AccountCharge:
    """The message of what a round counts on an account."""
    return types_pb2.AccountCharge(
        account=charge.account,
        cap=budget_to_message(charge.cap),
        budget=budget_to_message(charge.budget),
        order=charge.order,
        divergence=charge.divergence,
        max_divergence=charge.max_divergence,
        delta=charge.delta,
        max_delta=charge.max_delta,
        refusal=charge.refusal,
    )


def charge_from_message(message: types_pb2.AccountCharge) -> AccountCharge:
    """What a round counts on an account."""
    return AccountCharge(
        account=message.account,
        cap=budget_from_message(message.cap),
        budget=budget_from_message(message.budget),
        order=message.order if message.HasField("order") else None,
        divergence=message.divergence,
        max_divergence=message.max_divergence,
        delta=message.delta,
        max_delta=message.max_delta,
        refusal=message.refusal,
    )


def journal_entry_to_message(entry: JournalEntry) -> types_pb2.JournalEntry:
    """The message of one line of the budget journal."""
    return types_pb2.JournalEntry(
        sequence=entry.sequence,
        time=time_to_message(entry.time),
        action=entry.action,
        account=entry.account,
        round_id=entry.round_id,
        cost=cost_to_message(entry.cost),
        events=entry.events,
        digest=entry.digest,
    )


@from_server
def journal_entry_from_message(message: types_pb2.JournalEntry) -> JournalEntry:
    """One line of the budget journal. Raises `DataLoss`."""
    return JournalEntry(
        sequence=message.sequence,
        time=time_from_message(message.time),
        action=message.action,
        account=message.account,
        round_id=message.round_id,
        cost=cost_from_message(message.cost),
        events=message.events,
        digest=message.digest,
    )
