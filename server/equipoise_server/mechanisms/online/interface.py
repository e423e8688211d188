"""What every session mechanism is: a plan from public things, and a session that answers one statement at a time.

All statements of all analysts have places in one order, the *slots*. Everything random in a session is drawn from
streams that the seed, a slot (or the number of an update) and the statements so far name, never from what an
earlier draw left over (`streams`). So a session that is played again from its beginning gives the same answers,
however it was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.model.terms_checks import MAX_SESSION
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledStatement, CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import check_setting, check_table
from equipoise_server.mechanisms.interface import Answers, OnStep, Outcome, PublicParameters

HYPOTHESIS = AnswerMethod.HYPOTHESIS


class Session(Protocol):
    """A session while it runs: a function of setting, plan, data, seed and what was asked so far."""

    def used_up_at(self, slot: int) -> bool:
        """Whether nothing more is learnt from the data, so that statements from this slot on are uncertified.

        Passes the slots before it that were empty, as `answer` does: they count like others, and an end that came
        in one of them must not show later than one that came in a slot that was asked in.
        """
        ...

    def answer(self, slot: int, statement: CompiledStatement, encoded: bytes = b"") -> Answers:
        """The answer to the statement in this slot. Slots ascend; those left out were empty.

        `encoded`: the statement's exact bytes, to which its noise is bound; empty only where nothing is at stake.
        """
        ...

    def finish(self) -> Synopsis:
        """Passes all slots that are left and returns the synopsis, empty where there is none."""
        ...


class SessionMechanism(Protocol):
    """A named mechanism for sessions. Stateless: everything it knows is in its arguments."""

    @property
    def name(self) -> str:
        """What it is called by."""
        ...

    @property
    def slotted(self) -> bool:
        """Whether the clock gives slots: share i of m has slot `t m + i` in turn t. Else they go by arrival."""
        ...

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Parameters, costs and promises from public things. Raises `InvalidArgument` or `BudgetExhausted`.

        `setting.options` holds the session's `length` beside the mechanism's own options (`session_length`).
        """
        ...

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:
        """Raises `InvalidArgument("statement", ...)` for what the planned mechanism cannot answer."""
        ...

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> Session:
        """A session before its first slot."""
        ...


def session_length(setting: PublicParameters, slotted: bool) -> int:
    """The option `length`: turns where `slotted`, else statements in all, of which the shares may allow fewer.

    Raises `InvalidArgument` for what `check_setting` refuses, for another length and for declared sensitivities and
    supports, which mean nothing here: each statement's own is known when it is asked.
    """
    check_setting(setting)
    for index, share in enumerate(setting.shares):
        for name in ("sensitivity", "support"):
            if getattr(share, name):
                raise InvalidArgument(f"shares[{index}].{name}", "must not be declared in a session")
    length = setting.options.get("length")
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= MAX_SESSION:
        raise InvalidArgument("session.length", f"must be a whole number between 1 and {MAX_SESSION}")
    return length if slotted else min(length, setting.statements)


def linear(statement: CompiledStatement) -> CompiledWorkload:
    """The statement, for mechanisms that answer linear queries only. Raises `InvalidArgument` for a statistic."""
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
    """A whole session, from all that was asked in it. A pure function of its arguments.

    `asked` holds an entry for each analyst who asked; the others get none.
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
    return Outcome({analyst: joined(each) for analyst, each in answers.items()}, synopsis)


def joined(answers: list[Answers]) -> Answers:
    """The answers to some statements, one after another."""
    return Answers(
        np.concatenate([np.zeros(0, np.int64), *(each.values for each in answers)]),
        np.concatenate([np.zeros(0, np.uint8), *(each.methods for each in answers)]),
        np.concatenate([np.zeros(0, np.int64), *(each.bounds for each in answers)]),
    )


def check_asked(
    mechanism: SessionMechanism,
    setting: PublicParameters,
    plan: MechanismPlan,
    asked: Mapping[str, SessionWorkload],
) -> None:
    """Raises `ValueError` where more was asked than was planned for, or out of turn: each promise rests on it."""
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
        for statement in workload.statements:
            mechanism.check_statement(plan, statement)
