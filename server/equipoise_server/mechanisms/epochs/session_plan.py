"""The plan of a session in epochs: its costs at all caps, its half-widths, time and memory."""

from __future__ import annotations

from equipoise.model.rounds import MechanismPlan
from equipoise_server.mechanisms.epochs.cost import Session, analyst_parts, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.plan import promised, uncertified_cells
from equipoise_server.mechanisms.expected_error import hypothesis_error
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.running_time import (
    CELL_BYTES,
    DIGIT_SECONDS,
    PROCESS_BYTES,
    QUERY_BYTES,
    statement_seconds,
)

EXPECTED_PART = 0.1  # of the promise that the mean error comes to, on the streams of docs/sessions-accuracy.md
STATEMENT_SECONDS = 6e-4  # streams, two countings and one answer, beside what counting takes
RECORD_SECONDS = 1e-6  # of drawing one record of a hypothesis
LEARNING_SECONDS = 6e-8  # of one new hypothesis, for each cell of the universe or record of a support


def session_plan(
    mechanism: str, setting: PublicParameters, session: Session, parameters: EpochParameters
) -> MechanismPlan:
    """Return the plan of a session in epochs, with its costs at all caps."""
    tested = session.statements * (STATEMENT_SECONDS + statement_seconds(setting, 2))
    drawn = RECORD_SECONDS * parameters.records + LEARNING_SECONDS * session.universe
    counted = parameters.count_noise.digits * DIGIT_SECONDS * session.slots
    return make_plan(
        mechanism,
        setting,
        parameters,
        data_parts(setting, session, parameters),
        analyst_parts(setting, session, parameters) if setting.protects_analysts else (),
        max_half_width=promised(parameters),
        expected_error=hypothesis_error(setting, EXPECTED_PART * promised(parameters)),
        max_uncertified=uncertified_cells(setting, session, parameters),
        seconds=tested + parameters.epochs * drawn + counted,
        memory_bytes=PROCESS_BYTES + 3 * CELL_BYTES * session.universe + QUERY_BYTES * session.cells,
    )


def statements_asked(setting: PublicParameters, slots: int) -> int:
    """At most, with as many slots for each share."""
    return sum(min(share.statements, slots // len(setting.shares)) for share in setting.shares)
