"""`low_sensitivity`: numbers that are no linear queries, one by one, hiding every statement from other analysts.

HRU section 5.4 runs the online mechanism over all databases of n records. There are |X|^n of them; here the
operator lists candidates instead, in public and not from the data, and the session learns which of them answer like
the data. Where none does, statements are answered afresh, while there are places: the list is never trusted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.statistics import Databases, grid_units
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise.records.codec import COUNT, FRACTION, canonical_object, codec_of, key
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import check_enumerable
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs
from equipoise_server.mechanisms.epochs.plan import check_options, plan_epochs
from equipoise_server.mechanisms.epochs.question import Scale
from equipoise_server.mechanisms.epochs.session_plan import session_plan, statements_asked
from equipoise_server.mechanisms.expected_error import stated
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.low_sensitivity.candidates import read_candidates
from equipoise_server.mechanisms.low_sensitivity.database_question import (
    DatabaseQuestion,
    database_of,
    rounding,
    scale_for,
    statistic_of,
)
from equipoise_server.mechanisms.online.interface import session_length
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.running_time import CELL_BYTES

ENTRY_SECONDS = 5e-8  # of a statement's values, for each cell that a candidate or the data list
ENTRY_BYTES = 100  # of what is made of each of these cells at once
_FRACTION = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30}|/[1-9][0-9]{0,14})?")


@canonical_object
class LowSensitivityParameters(Parameters):
    """Public. `sensitivity`: the largest Delta that statements may have, on a table of `table_records`."""

    sensitivity: Fraction = key("sensitivity", FRACTION)
    table_records: int = key("table_records", COUNT)
    epochs: EpochParameters = key("epochs", codec_of(EpochParameters))


class LowSensitivity:
    """The mechanism `low_sensitivity`, for the protected unit "query".

    Formal guarantees: those of `online_private`, with candidates in place of records. Every statement that is taken
    moves by at most the declared sensitivity where a record is replaced, proven with each statistic; tests and
    answers have noise for that, rounding included (`scale_for`). Only tests and answers see the data: the list is
    public, and so is what a statement comes to on it. Learning never moves an exponent by more than a linear query
    would, so the analysts are charged alike. With probability `1 - beta` all certified answers are within their
    half-widths, whatever the candidates are; that they are learnt from in time is promised for no list.
    """

    name = "low_sensitivity"
    slotted = True

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """`options`: `candidates` (see `candidates`), `sensitivity`, and what `private_plan` may be forced to."""
        session, sensitivity = sizes(setting), declared_sensitivity(setting)
        check_options(setting.options, ("candidates", "length", "sensitivity"))
        epochs, off = plan_epochs(setting, session), rounding(session.scale)
        epochs = replace(
            epochs,
            certified_half_width=min(1 << GRID_BITS, epochs.certified_half_width + off),
            noise_half_widths=tuple(min(1 << GRID_BITS, each + off) for each in epochs.noise_half_widths),
        )
        parameters = LowSensitivityParameters(sensitivity, setting.records, epochs)
        plan = session_plan(self.name, setting, session, epochs)
        entries = len(read_candidates(setting).cells) + min(setting.records, setting.universe_size)
        return replace(
            plan,
            parameters=parameters.to_json(),
            seconds=stated(plan.seconds + session.statements * ENTRY_SECONDS * entries),
            memory_bytes=plan.memory_bytes + ENTRY_BYTES * entries + 3 * CELL_BYTES * setting.universe_size,
        )

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:
        """Accept single numbers of at most the declared sensitivity. Raises `InvalidArgument` for anything else."""
        parameters = LowSensitivityParameters.from_json(plan.parameters)
        records, declared = parameters.table_records, parameters.sensitivity
        delta = statistic_of(statement).sensitivity(records)
        if grid_units(delta) > grid_units(declared):
            moves = f"moves by Delta = {float(delta):.9g} where one of {records:,} records is replaced"
            raise InvalidArgument(
                "statement", f"{moves}; the session's declared sensitivity is {float(declared):.9g}"
            )

    def start(
        self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes
    ) -> LowSensitivitySession:
        """Start a session over the candidates."""
        parameters, candidates = (
            LowSensitivityParameters.from_json(plan.parameters).epochs,
            read_candidates(setting),
        )
        epochs = Epochs(parameters, len(candidates.starts), sizes(setting).slots, seed)
        return LowSensitivitySession(candidates, database_of(setting.attributes, data), parameters.scale, epochs)


@dataclass(frozen=True, eq=False)
class LowSensitivitySession:
    """A session that answers statistics of one table."""

    candidates: Databases
    data: Databases
    scale: Scale
    epochs: Epochs

    def used_up_at(self, slot: int) -> bool:
        """Return whether all epochs have ended before this slot. The analysts are charged for this information."""
        self.epochs.pass_to(slot)
        return self.epochs.used_up

    def answer(self, slot: int, statement: CompiledStatement, encoded: bytes = b"") -> Answers:
        """Answer the statement in a slot."""
        question = DatabaseQuestion(statistic_of(statement), self.candidates, self.data, self.scale)
        return self.epochs.answer(slot, question, encoded)

    def finish(self) -> Synopsis:
        """Return an empty synopsis: the last hypothesis is a choice of candidates, not of records."""
        return Synopsis()


def sizes(setting: PublicParameters) -> Session:
    """Return the public size of a session over the candidates."""
    check_enumerable(setting)
    slots = session_length(setting, slotted=True) * len(setting.shares)
    scale, asked = scale_for(declared_sensitivity(setting)), statements_asked(setting, slots)
    universe = len(read_candidates(setting).starts)
    return Session(universe, scale, 1, slots, asked, asked)


def declared_sensitivity(setting: PublicParameters) -> Fraction:
    """Return the option `sensitivity`, such as "1/500" or 0.002. Raises `InvalidArgument`."""
    option, declared = setting.options.get("sensitivity"), Fraction(0)
    if isinstance(option, int | float) and not isinstance(option, bool) and 0 < option <= 1:
        declared = Fraction(repr(option))
    elif isinstance(option, str) and _FRACTION.fullmatch(option):
        declared = Fraction(option)
    if not 0 < declared <= 1:
        problem = 'must be the largest Delta of any statement, above 0 and at most 1, such as "1/500" or 0.002'
        raise InvalidArgument("options.sensitivity", problem)
    return declared
