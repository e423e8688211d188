"""The same totals by `dp_accounting`, where it is installed: `pip install 'equipoise[audit]'`.

Nothing else of the client knows that library, and nothing here runs unless an audit is verified.

What is independent of `equipoise.accounting`: the library composes all parts and converts the total. A pure part is
randomised response to it, from which every pure mechanism can be made (Kairouz, Oh & Viswanath 2015); it computes
the divergence of that exactly, where the account counts a bound. For a mixture and for threshold tests it has no
event. Their divergences are computed here by other means than the account's: with SciPy's binomial law, and with
decimals of 50 digits from the corners of the polygon in `accounting.threshold_tests`. The theorems are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    RenyiEvent,
    ThresholdTests,
    ZcdpEvent,
)
from equipoise.accounting.renyi import MAX_TRIALS
from equipoise.auditing.accounts import SUM, Account
from equipoise.errors import VerificationFailed
from equipoise.verification.conversion import ORDERS

TOLERANCE = 1e-6  # of two accountants' epsilons
MAX_PURE_EPSILON = 500.0  # beyond, a wrong response has no chance in doubles: the divergence is epsilon
DIGITS = 50


class NotInstalled(Exception):
    """There is no `dp_accounting` here."""


def check_totals(accounts: Mapping[str, Account]) -> None:
    """Check that each account's total, composed part by part by the library, is at most what the account says.

    What was written off has no parts, and is added as what it was counted.

    Raises:
        NotInstalled: the library is not there.
        VerificationFailed: names the first account that holds more than it says.
    """
    try:
        library = Library()
    except ImportError:
        raise NotInstalled from None
    for name, account in accounts.items():
        said = account.committed_epsilon
        for parts, lost in _sums(account):
            epsilon = _epsilon(library, parts, lost, account)
            if epsilon > said * (1 + TOLERANCE) + TOLERANCE:
                raise VerificationFailed(
                    f"{name}: dp_accounting comes to epsilon {epsilon:.6g}, and the account to {said:.6g}"
                )


class Library:
    """What is used of `dp_accounting`. Raises `ImportError`."""

    def __init__(self) -> None:
        from dp_accounting import dp_event  # noqa: PLC0415
        from dp_accounting.privacy_accountant import NeighboringRelation  # noqa: PLC0415
        from dp_accounting.rdp import rdp_privacy_accountant as rdp  # noqa: PLC0415

        self.event: Any = dp_event
        self._accountant, self._relation = rdp.RdpAccountant, NeighboringRelation.REPLACE_ONE

    def accountant(self, order: float | None) -> Any:
        """Returns an accountant of replaced records at one order, or at all of `conversion.ORDERS`."""
        return self._accountant([order] if order is not None else list(ORDERS), self._relation)

    def pure(self, epsilon: float) -> Any:
        """Randomised response that is right with probability `e^epsilon / (1 + e^epsilon)`."""
        return self.event.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)


def _sums(account: Account) -> Iterable[tuple[Iterable[PrivacyEvent], Iterable[Cost]]]:
    """Returns what composes on an account, in parts and in what was written off; equal sums once."""
    live = [charge.parts for charge in account.charges.values() if charge.state != "released"]
    if account.composition == SUM:
        return [(chain.from_iterable(live), account.lost)]
    return [*((parts, ()) for parts in dict.fromkeys(live)), *(((), [cost]) for cost in account.lost)]


def _epsilon(library: Library, parts: Iterable[PrivacyEvent], lost: Iterable[Cost], account: Account) -> float:
    order = account.order
    accountant = library.accountant(order)
    epsilon = delta = Fraction(0)
    for part, times in Counter(parts).items():
        if order is None and isinstance(part, ApproximateDpEvent | Mixture | ThresholdTests):
            epsilon, delta = epsilon + times * part.epsilon, delta + times * part.delta
        else:
            delta += times * compose(library, accountant, part, times, order)
    for cost in lost:
        epsilon, delta = epsilon + Fraction(cost.epsilon, RHO_UNIT), delta + Fraction(cost.delta, DELTA_UNIT)
        counted = Fraction(cost.rho) if order is None else Fraction(cost.divergence) / Fraction(order)
        if counted:
            accountant.compose(library.event.ZCDpEvent(float(counted / RHO_UNIT)))
    left = account.cap.delta - float(delta)
    return float("inf") if left < 0 else float(epsilon) + float(accountant.get_epsilon(left))


def compose(library: Library, accountant: Any, part: PrivacyEvent, times: int, order: float | None) -> Fraction:
    """Compose a privacy event with an accountant of `dp_accounting`.

    Args:
        library: The parts of `dp_accounting` that are used.
        accountant: The library's accountant, to which the event is added.
        part: The event.
        times: How many rounds have it.
        order: The Renyi order at which the account adds; None if each of its rounds counts by itself.

    Returns:
        The delta that each time adds beside what the accountant knows.

    Raises:
        VerificationFailed: The library has no event for it without an order.
    """
    match part:
        case ZcdpEvent() | PureDpEvent() if not part.times:
            return Fraction(0)  # a session settled it unused; the library refuses to compose 0 times
        case ZcdpEvent():
            accountant.compose(library.event.ZCDpEvent(float(part.rho)), times * part.times)
            return Fraction(0)
        case PureDpEvent() if part.epsilon <= MAX_PURE_EPSILON:
            accountant.compose(library.pure(float(part.epsilon)), times * part.times)
            return Fraction(0)
        case ApproximateDpEvent() if part.epsilon <= MAX_PURE_EPSILON:
            accountant.compose(library.pure(float(part.epsilon)), times)
            return part.delta
    if order is None:
        raise VerificationFailed(f"{part.name}: dp_accounting has no event for it without a Renyi order")
    divergence, delta = _divergence(part, order)
    # At one order any divergence can be said as a rho.
    accountant.compose(library.event.ZCDpEvent(divergence / order), times)
    return delta


@lru_cache(maxsize=256)  # every analyst of a round is charged for the same parts
def _divergence(part: PrivacyEvent, order: float) -> tuple[float, Fraction]:
    """Returns the divergence of what the library has no event for, and the delta beside it."""
    match part:
        case PureDpEvent():
            return part.times * float(part.epsilon), Fraction(0)
        case Mixture():
            return _mixture(part, order), Fraction(0)
        case ThresholdTests():
            divergence, epsilon = _threshold_tests(part, order), float(part.epsilon)
            pair = min(epsilon, order * epsilon**2 / 2)
            return (divergence, Fraction(0)) if divergence <= pair else (pair, part.delta)
        case RenyiEvent():
            return float(part.bound), Fraction(0)
    return float(part.epsilon), part.delta  # type: ignore[union-attr]


def _mixture(part: Mixture, order: float) -> float:
    """`log(E exp(a (a - 1) w^2 rho)) / (a - 1)` for a binomial `w`; at most as if all trials differed."""
    from scipy.special import logsumexp  # noqa: PLC0415
    from scipy.stats import binom  # noqa: PLC0415

    rho, chance = float(part.rho_of_one), float(part.probability)
    if part.trials > MAX_TRIALS or not 0 < chance < 1:
        return order * part.trials**2 * rho if chance > 0 else 0.0
    differing = np.arange(part.trials + 1.0)
    moments = binom.logpmf(differing, part.trials, chance) + order * (order - 1) * rho * differing**2
    return max(0.0, float(logsumexp(moments)) / (order - 1))


def _threshold_tests(part: ThresholdTests, order: float) -> float:
    """What `positives` tests and their answers diverge by, the worst test being at a corner of the polygon."""
    if not part.positives:
        return 0.0
    with localcontext() as context:
        context.prec = DIGITS
        power = Decimal(order)
        one = 1 / (1 + (Decimal(part.test_epsilon.numerator) / part.test_epsilon.denominator).exp())
        largest = Decimal(1)
        for p in (one, 1 - one):
            q = 1 - p
            left = 1 - q**power * p ** (1 - power)
            if left <= 0:
                return math.inf
            largest = max(largest, p**power * q ** (1 - power) / left)
        return part.positives * (float(largest.ln()) / (order - 1) + order * float(part.answer_rho))
