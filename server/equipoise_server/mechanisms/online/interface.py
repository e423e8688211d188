"""The interface of every session mechanism: a plan from public facts, and a session that answers its statements.

The statements of all analysts are ordered by *slots*. Every random stream of a session is named by the seed, a slot
(or the number of an update) and the statements so far, and does not depend on earlier draws (`streams`). So a
session that is played again from its beginning gives the same answers, no matter how it was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.model.terms_checks import MAX_SESSION
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledStatement, CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import check_setting, check_table
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters

HYPOTHESIS = AnswerMethod.HYPOTHESIS


class Session(Protocol):
    """A running session: a function of setting, plan, data, seed and the statements so far."""

    def used_up_at(self, slot: int) -> bool:
        """Return whether the session reads no more data, so that statements from this slot on are uncertified.

        This call also processes the empty slots before `slot`, as `answer` does. Empty slots count like others: if
        the last update falls into an empty slot, it must become visible no later than in any other slot.
        """
        ...

    def answer(self, slot: int, statement: CompiledStatement, encoded: bytes = b"", rho: int = 0) -> Answers:
        """Answer the statement in a slot.

        Args:
            slot: the slot; slots ascend, and those left out were empty.
            statement: the statement.
            encoded: the bytes of what it asks (`Offer`), to which its noise is bound.
            rho: what it may cost, in units of 10^-12, where the mechanism is `priced`; else 0.
        """
        ...

    def finish(self) -> Synopsis:
        """Process all remaining slots, and return the synopsis, which is empty where there is none."""
        ...


class SessionMechanism(Protocol):
    """A mechanism that answers sessions. Stateless: it depends on its arguments alone."""

    @property
    def name(self) -> str:
        """The name by which operators choose the mechanism."""
        ...

    @property
    def slotted(self) -> bool:
        """Whether the clock gives slots: share i of m has slot `t m + i` in turn t. Otherwise arrival does."""
        ...

    @property
    def priced(self) -> bool:
        """Whether each statement says what it may cost."""
        ...

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a session: compute parameters, costs and half-widths from public facts alone.

        `setting.options` contains the session's `length` and the mechanism's own options (`session_length`).

        Raises:
            InvalidArgument: the mechanism cannot serve this setting, or does not have an option.
            BudgetExhausted: a budget is too small.
        """
        ...

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:
        """Raise `InvalidArgument("statement", ...)` for a statement that the planned mechanism cannot answer."""
        ...

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> Session:
        """Start a session, before its first slot."""
        ...


def session_length(setting: PublicParameters, slotted: bool) -> int:
    """Check a session's setting, and return its length.

    Returns:
        The option `length`: turns where `slotted`, otherwise the statements of the session. The shares may allow
        fewer statements; then that number is returned.

    Raises:
        InvalidArgument: `check_setting` refuses the setting, the length is out of range, or a share declares a
            sensitivity, support or ways. In a session these are known for each statement when it is asked.
    """
    check_setting(setting)
    for index, share in enumerate(setting.shares):
        for name in ("sensitivity", "support", "ways"):
            if getattr(share, name):
                raise InvalidArgument(f"shares[{index}].{name}", "must not be declared in a session")
    length = setting.options.get("length")
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= MAX_SESSION:
        raise InvalidArgument("session.length", f"must be a whole number between 1 and {MAX_SESSION}")
    return length if slotted else min(length, setting.statements)


def linear(statement: CompiledStatement) -> CompiledWorkload:
    """Return the statement if it counts records or adds up weights. Raises `InvalidArgument` for a statistic."""
    if isinstance(statement, CompiledStatistic):
        raise InvalidArgument("statement", "is a statistic; only sessions of low_sensitivity answer statistics")
    return statement


def play(
    mechanism: SessionMechanism,
    setting: PublicParameters,
    plan: MechanismPlan,
    data: Counts,
    asked: Mapping[str, SessionWorkload],
    seed: bytes,
    progress: OnStep,
) -> Outcome:
    """Compute a whole session from all of its statements. A pure function of its arguments.

    `asked`: one entry for each analyst who asked a statement; other analysts get no answers. Raises `ValueError`
    where statements or table are not those that were planned for.

    Args:
        mechanism: of the session.
        setting: of the session.
        plan: what was charged.
        data: the table's counts.
        asked: one entry for each analyst who asked a statement; other analysts get no answers.
        seed: 32 bytes.
        progress: is told how many statements are answered.
    """
    check_asked(mechanism, setting, plan, asked)
    check_table(setting, data)
    order = sorted(
        (slot, analyst, place)
        for analyst, workload in asked.items()
        for place, slot in enumerate(workload.slots.tolist())
    )
    session = mechanism.start(setting, plan, data, seed)
    answers: dict[str, list[Answers]] = {analyst: [] for analyst in asked}
    for done, (slot, analyst, place) in enumerate(order):
        progress("answer", done, len(order))
        answers[analyst].append(session.answer(slot, *asked[analyst].at(place)))
    synopsis = session.finish()
    progress("answer", len(order), len(order))
    return Outcome({analyst: Answers.join(each) for analyst, each in answers.items()}, synopsis)


def check_asked(
    mechanism: SessionMechanism,
    setting: PublicParameters,
    plan: MechanismPlan,
    asked: Mapping[str, SessionWorkload],
) -> None:
    """Raise `ValueError` for more statements than planned, or wrong slots. Every guarantee needs this check."""
    length = session_length(setting, mechanism.slotted)
    places = {share.analyst: place for place, share in enumerate(setting.shares)}
    taken = np.concatenate([np.zeros(0, np.int64), *(workload.slots for workload in asked.values())])
    slots = length * len(setting.shares) if mechanism.slotted else length
    if len(np.unique(taken)) != len(taken) or not ((taken >= 0) & (taken < slots)).all():
        raise ValueError("a slot was given twice, or does not exist")
    for analyst, workload in asked.items():
        share = setting.shares[places[analyst]] if analyst in places else None
        fits = (
            share is not None
            and len(workload.slots) == len(workload.statements) <= share.statements
            and workload.query_count <= share.queries
            and (np.diff(workload.slots) > 0).all()
        )
        if not fits:
            raise ValueError("more was asked than an analyst's share")
        if mechanism.slotted and (workload.slots % len(setting.shares) != places[analyst]).any():
            raise ValueError("a slot was given to another analyst than its own")
        costs = [offer.rho for offer in workload.offers] or [0] * len(workload.statements)
        if any((rho > 0) is not mechanism.priced for rho in costs):
            raise ValueError("what a statement may cost is missing, or is given where nothing is paid")
        for statement in workload.statements:
            mechanism.check_statement(plan, statement)
