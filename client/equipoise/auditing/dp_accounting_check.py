"""The same totals by `dp_accounting`, where it is installed: `pip install 'equipoise[audit]'`.

Nothing else of the client knows that library, and nothing here runs unless an audit is verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    Mixture,
    PrivacyEvent,
    ThresholdTests,
)
from equipoise.auditing.accounts import SUM, Account
from equipoise.errors import VerificationFailed
from equipoise.verification.conversion import ORDERS

TOLERANCE = 1e-6  # of two accountants' epsilons


class NotInstalled(Exception):
    """There is no `dp_accounting` here."""


def check_totals(accounts: Mapping[str, Account]) -> None:
    """Each account's total, composed part by part by the library, is at most what the account says.

    What was written off has no parts, and is added as what it was counted. Raises `NotInstalled`,
    `VerificationFailed` naming the first account that holds more than it says.
    """
    try:
        from dp_accounting import dp_event  # noqa: PLC0415
        from dp_accounting.rdp import rdp_privacy_accountant as rdp  # noqa: PLC0415
    except ImportError:
        raise NotInstalled from None
    for name, account in accounts.items():
        said = account.committed_epsilon
        for parts, lost in _sums(account):
            found = _epsilon(dp_event, rdp, parts, lost, account)
            if found > said * (1 + TOLERANCE) + TOLERANCE:
                raise VerificationFailed(
                    f"{name}: dp_accounting comes to epsilon {found:.6g}, and the account to {said:.6g}"
                )


def _sums(account: Account) -> Iterable[tuple[Iterable[PrivacyEvent], Iterable[Cost]]]:
    """What composes on an account, in parts and in what was written off; equal sums once."""
    live = [charge.parts for charge in account.charges.values() if charge.state != "released"]
    if account.composition == SUM:
        return [(chain.from_iterable(live), account.lost)]
    return [*((parts, ()) for parts in dict.fromkeys(live)), *(((), [cost]) for cost in account.lost)]


def _epsilon(event: Any, rdp: Any, parts: Iterable[PrivacyEvent], lost: Iterable[Cost], account: Account) -> float:
    order = account.order
    accountant = rdp.RdpAccountant([order] if order is not None else list(ORDERS))
    epsilon = delta = Fraction(0)
    for part, times in Counter(parts).items():
        rho, pair_epsilon, pair_delta = _amounts(part, order)
        epsilon, delta = epsilon + times * pair_epsilon, delta + times * pair_delta
        if rho:
            accountant.compose(event.ZCDpEvent(float(rho)), times)
    for cost in lost:
        epsilon, delta = epsilon + Fraction(cost.epsilon, RHO_UNIT), delta + Fraction(cost.delta, DELTA_UNIT)
        counted = Fraction(cost.rho) if order is None else Fraction(cost.divergence) / Fraction(order)
        if counted:
            accountant.compose(event.ZCDpEvent(float(counted / RHO_UNIT)))
    left = account.cap.delta - float(delta)
    return float("inf") if left < 0 else float(epsilon) + float(accountant.get_epsilon(left))


def _amounts(part: PrivacyEvent, order: float | None) -> tuple[Fraction, Fraction, Fraction]:
    """A part as a rho, which at one order is the divergence there by that order, and a pair beside it."""
    if order is None:
        if isinstance(part, ApproximateDpEvent | Mixture | ThresholdTests):
            return Fraction(0), part.epsilon, part.delta
        return part.amounts()
    divergence, delta = part.divergence(Fraction(order))
    return divergence / Fraction(order), Fraction(0), delta
