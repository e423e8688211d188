"""Released measurements in the store: which one a round answers or starts from, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, InvalidArgument, NotFound
from equipoise.model.rounds import GRANT, MEASUREMENT, STANDING, STANDING_OPTION, RoundState, Terms
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import record_budget
from equipoise_server.mechanisms.prior.choice import PRIOR
from equipoise_server.mechanisms.prior.choice import STANDING as STANDING_PRIOR
from equipoise_server.mechanisms.registry import may_start_from_measurement
from equipoise_server.mechanisms.standing.family import planned_noise
from equipoise_server.mechanisms.standing.measurement import MeasurementParameters, as_options
from equipoise_server.mechanisms.standing.released import named_measurement
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.state_machine import streams_open
from equipoise_server.rounds.store.committed_content import checked_measured
from equipoise_server.rounds.store.results import read_measured
from equipoise_server.rounds.store.rounds import read_round, round_records
from equipoise_server.rounds.terms.checks import setting_of
from equipoise_server.storage.tables.round import measurements, rounds

FIELD = f"options.{STANDING_OPTION}"


def newest_measurement(connection: Connection, dataset: DatasetRecord, now: datetime) -> ReleasedMeasurement | None:
    """Return the newest released measurement of this version of a dataset, or None."""
    newest = _newest(connection, dataset, now)
    return None if newest is None else _released(connection, newest)


def newest_noise(connection: Connection, dataset: DatasetRecord, now: datetime) -> ResidualNoise | None:
    """Return the noise of the newest released measurement of this version of a dataset, or None.

    Unlike `newest_measurement` it does not read the numbers.
    """
    newest = _newest(connection, dataset, now)
    return None if newest is None else MeasurementParameters.from_json(newest.plan.parameters).noise


def _newest(connection: Connection, dataset: DatasetRecord, now: datetime) -> RoundRecord | None:
    measured = _released_rounds(connection, dataset)
    return next((each for each in measured if streams_open(each.state, each.release_time, now)), None)


def _released_rounds(connection: Connection, dataset: DatasetRecord) -> Iterator[RoundRecord]:
    """Yield the measurements of this version, newest first; the release time of some may still be to come."""
    of_version = (rounds.c.dataset == dataset.name) & (rounds.c.dataset_version == dataset.version)
    released = of_version & (rounds.c.state == RoundState.RELEASED.value)
    query = select(rounds).join(measurements, measurements.c.run_id == rounds.c.run_id).where(released)
    yield from round_records(connection, query.order_by(rounds.c.position.desc()))


def chosen_measurement(
    connection: Connection, dataset: DatasetRecord, named: object, now: datetime
) -> ReleasedMeasurement:
    """Return the measurement that an operator has named, or the newest one where `named` is None.

    Raises:
        InvalidArgument: there is none, or it is not a released measurement of this very version of the dataset.
        DataLoss: its stored numbers are not those that were released.
    """
    if named is None:
        newest = newest_measurement(connection, dataset, now)
        if newest is None:
            raise InvalidArgument(FIELD, _why_none(connection, dataset))
        return newest
    if not isinstance(named, str):
        raise InvalidArgument(FIELD, "must be the id of a measurement's round")
    try:
        record = read_round(connection, named)
    except NotFound:
        raise InvalidArgument(FIELD, f"names {named!a}, and there is no such round") from None
    if record.mechanism != MEASUREMENT:
        raise InvalidArgument(FIELD, f"names the round {named}, which is no measurement")
    if record.terms.dataset != dataset.name:
        whose = (
            "an older or newer table of the same people" if record.account == dataset.account else "other people"
        )
        problem = f"names a measurement of {record.terms.dataset!r} ({whose}), and not of {dataset.name!r}"
        raise InvalidArgument(FIELD, problem)
    if record.dataset_version != dataset.version:
        measured = f"a measurement of version {record.dataset_version} of {dataset.name!r}"
        raise InvalidArgument(FIELD, f"names {measured}, and rounds are about its version {dataset.version} now")
    if not streams_open(record.state, record.release_time, now):
        raise InvalidArgument(FIELD, f"names the measurement {named}, which {_not_yet(record)}")
    return _released(connection, record)


def _why_none(connection: Connection, dataset: DatasetRecord) -> str:
    """Return why no measurement of this version can be used now."""
    which = f"version {dataset.version} of {dataset.name!r}"
    waits = next(_released_rounds(connection, dataset), None)
    if waits is None:
        return f"{which} has no released measurement; equipoise operator dataset measure makes one"
    return f"the measurement {waits.id} of {which} {_not_yet(waits)}"


def _not_yet(record: RoundRecord) -> str:
    if record.release_time is None:
        return "is not released yet"
    return f"is released only at {record.release_time:%Y-%m-%d %H:%M:%S} UTC"


def with_measurement(connection: Connection, terms: Terms, dataset: DatasetRecord, now: datetime) -> Terms:
    """Return terms whose options are those that the mechanism is planned by, where the operator may write less.

    A measurement's family becomes the noise with which it is measured: that is searched for in floating point, and
    so on record once and not computed again. A measurement to answer or to start from becomes its public facts.
    Where a prior is the planner's choice, the newest measurement is one that it may choose. The answers of a grant
    are combined with the one that is newest when it is given, if there is one.

    Raises:
        InvalidArgument: the option is not one that can be used; nothing has been charged.
        BudgetExhausted: the budget is too small for the family.
    """
    options = dict(terms.options)
    found: ReleasedMeasurement | None
    if terms.mechanism == MEASUREMENT:
        budget = record_budget(terms.data_budget, dataset.persons.records)
        return replace(terms, options=as_options(planned_noise(options, dataset.schema, budget)))
    if terms.mechanism == STANDING:
        named = chosen_measurement(connection, dataset, options.pop(STANDING_OPTION, None), now)
        for name in sorted(options):
            raise InvalidArgument(f"options.{name}", f"unknown; there is {STANDING_OPTION}")
        return replace(terms, options={STANDING_OPTION: named.as_option()})
    if terms.mechanism == GRANT:
        if STANDING_OPTION in options:
            found = chosen_measurement(connection, dataset, options[STANDING_OPTION], now)
        else:
            found = newest_measurement(connection, dataset, now)
        return replace(terms, options=options | ({STANDING_OPTION: found.as_option()} if found else {}))
    if may_start_from_measurement(terms.mechanism) and options.get(PRIOR, STANDING_PRIOR) == STANDING_PRIOR:
        if PRIOR in options or STANDING_OPTION in options:
            found = chosen_measurement(connection, dataset, options.get(STANDING_OPTION), now)
        else:
            found = newest_measurement(connection, dataset, now)
        return replace(terms, options=options | ({STANDING_OPTION: found.as_option()} if found else {}))
    return terms


def run_setting(connection: Connection, record: RoundRecord, dataset: DatasetRecord) -> PublicParameters:
    """Return the public parameters of a run, with the numbers of the measurement that its terms name, if any.

    Raises `DataLoss` where the stored numbers are not those that were released.
    """
    setting = setting_of(
        record.terms, record.records, record.universe_size, dataset.schema, dataset.persons.records
    )
    if STANDING_OPTION not in setting.options:
        return setting
    named = named_measurement(setting)
    numbers = read_measured(connection, named.round_id)
    if sha256(numbers).digest() != named.digest:
        raise DataLoss(f"the numbers of the measurement {named.round_id} are not those that were released")
    return replace(setting, measured=numbers)


def _released(connection: Connection, record: RoundRecord) -> ReleasedMeasurement:
    noise = MeasurementParameters.from_json(record.plan.parameters).noise
    return ReleasedMeasurement(record.id, sha256(checked_measured(connection, record.id)).digest(), noise)
