"""What statements of a stored grant ask, and how precisely: so reads whoever counts again what was spent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from equipoise.queries.grant_account import Wanted
from equipoise.residuals.told_counts import StandingNoise
from equipoise.wire.session_workload import wanted_of
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.store.rounds import combined_with


def standing_noise(record: RoundRecord, dataset: DatasetRecord) -> StandingNoise | None:
    """Return the noise of the measurement that a grant's answers are combined with; None without one.

    Args:
        record: the grant, or any other round, for which it is None.
        dataset: its version of the dataset.

    Raises:
        VerificationFailed: the terms name no measurement, or one of other attributes.
    """
    return StandingNoise.of(
        combined_with(record.terms), dataset.schema.sizes, dataset.persons.records, "options.standing"
    )


def reads_wanted(record: RoundRecord, dataset: DatasetRecord) -> Callable[[bytes], Wanted]:
    """Return the function that reads from a statement's bytes what is asked of a grant, and how precisely.

    Args:
        record: the grant.
        dataset: its version of the dataset.

    Raises:
        VerificationFailed: as `standing_noise` does.
    """
    return partial(wanted_of, schema=dataset.schema, standing=standing_noise(record, dataset))
