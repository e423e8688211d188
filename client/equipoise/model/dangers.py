"""Budgets and plans that protect nobody or tell nothing, judged from public facts alone.

An operator who wants one all the same names its dangers. They are then on record, and analysts are shown them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import GRANT, PlanNumbers, Share

MAX_EPSILON = 10  # beyond it a result may be e^10 times, more than 22,000 times, as likely with a person as without


Dangers = Mapping[Danger, str]  # each with what is wrong, in words


def dangers_of_caps(data: Budget, analyst: Budget, people: int) -> Dangers:
    """Return the dangers of a dataset's caps.

    Args:
        data: the cap of the data account.
        analyst: the cap of every analyst's accounts; how many statements it will protect is not known.
        people: whose table it is: the records, divided by how many are each person's.
    """
    found = [*_of_budget("data_cap", data, people, "people"), *_of_epsilon("analyst_cap", analyst)]
    return _by_danger(found)


def dangers_of_new_cap(cap: Budget, people: int | None) -> Dangers:
    """Return the dangers of a cap that an account gets after it was opened: those it would have had then.

    Args:
        cap: the new cap.
        people: of a data account, the most that a registered table on it holds; None: it is an analyst's account.
    """
    found = _of_epsilon("cap", cap) if people is None else _of_budget("cap", cap, people, "people")
    return _by_danger(found)


def dangers_of_round(
    data: Budget,
    analyst: Budget | None,
    unit: str,
    shares: Sequence[Share],
    plan: PlanNumbers,
    records: int,
    each: int,
) -> Dangers:
    """Return the dangers of a round's or a session's budgets and plan.

    Args:
        data: its data budget.
        analyst: its analyst budget; None where analysts are not protected.
        unit: what that protects, "query" or "analyst".
        shares: its shares.
        plan: what is planned. A grant promises nothing before a statement says what is paid for it.
        records: in the table, of all people.
        each: how many of them are each person's.
    """
    found = [*_of_budget("data_budget", data, records // each, "people")]
    if analyst is not None and len(shares) > 1:
        protected = len(shares) if unit == "analyst" else sum(share.statements for share in shares)
        found += _of_budget("analyst_budget", analyst, protected, "analysts" if unit == "analyst" else "statements")
    elif analyst is not None:
        found += _of_epsilon("analyst_budget", analyst)
    expected = plan.expected_error * records
    if plan.data_cost != Cost() and expected < each:
        whose = "one record" if each == 1 else f"the {each:,} records of one person"
        found.append((Danger.NOISE, f"answers are expected to err by {expected:.3g} records, less than {whose}"))
    if plan.max_half_width >= 1 and plan.mechanism != GRANT:
        promised = "the plan promises nothing: intervals may be as wide as everything"
        found.append((Danger.PROMISE, f"{promised} (expected mean error: {expected:.4g} of {records:,} records)"))
    return _by_danger(found)


def check_accepted(dangers: Dangers, accepted: Iterable[Danger]) -> None:
    """Raise `InvalidArgument`, saying what is wrong, unless all dangers are named."""
    if missing := not_accepted(dangers, accepted):
        said = "; ".join(missing.values())
        flags = " ".join(f"--accept {danger}" for danger in missing)
        raise InvalidArgument("accepted", f"{said}. Choose other budgets, or name the danger: {flags}")


def not_accepted(dangers: Dangers, accepted: Iterable[Danger]) -> Dangers:
    """Return the dangers that are not named."""
    named = frozenset(accepted)
    return {danger: said for danger, said in dangers.items() if danger not in named}


def check_named_once(accepted: Sequence[Danger], field: str) -> None:
    """Raise `InvalidArgument` where a danger is named twice.

    Args:
        accepted: the dangers, as they were named.
        field: where, to be named in the message.
    """
    if len(set(accepted)) != len(accepted):
        raise InvalidArgument(field, "must name each danger once")


def _of_budget(field: str, budget: Budget, protected: int, whom: str) -> Iterator[tuple[Danger, str]]:
    yield from _of_epsilon(field, budget)
    if budget.delta * protected >= 1:
        yield Danger.DELTA, f"{field}.delta: {budget.delta:g} is 1 in {protected:,} {whom} or more"


def _of_epsilon(field: str, budget: Budget) -> Iterator[tuple[Danger, str]]:
    if budget.epsilon > MAX_EPSILON:
        yield Danger.EPSILON, f"{field}.epsilon: {budget.epsilon:g} is above {MAX_EPSILON}"


def _by_danger(found: Iterable[tuple[Danger, str]]) -> Dangers:
    """Put what was found of one danger into one sentence, in the order of `Danger`."""
    said: dict[Danger, list[str]] = {danger: [] for danger in Danger}
    for danger, words in found:
        said[danger].append(words)
    return {danger: "; ".join(words) for danger, words in said.items() if words}
