"""What terms of rounds and sessions are valid: one place for requests, for the server's own steps, and for plans.

What only a server knows (its datasets, its analysts, its accounts), and what only one mechanism can do, is checked
there. Every comparison is written so that NaN fails it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.dangers import check_named_once
from equipoise.model.rounds import MEASUREMENT, SessionTerms, Share, Terms
from equipoise.queries.schema import MAX_ATTRIBUTES

UNITS = ("query", "analyst")
MAX_COUNT = 1 << 40  # statements, queries, records: far beyond what any round can answer, and safe in every store
MAX_SESSION = 1 << 32  # turns, or statements in all
MAX_TURN_SECONDS = 86_400
MAX_GRID_SECONDS = 7 * 86_400


def check_terms(terms: Terms, above: str = "") -> None:
    """Check all that makes terms valid anywhere.

    Args:
        terms: Of a round or of a session.
        above: What refusals put before the field's name, such as `terms.`.

    Raises:
        InvalidArgument: Naming the first field that no server could accept.
    """
    for name in ("dataset", "mechanism"):
        if not getattr(terms, name):
            raise InvalidArgument(f"{above}{name}", "is missing")
    check_unit(terms.unit, above)
    check_budget(terms.data_budget, f"{above}data_budget")
    measures = terms.mechanism == MEASUREMENT
    if terms.analyst_budget is not None:
        if measures:
            raise InvalidArgument(f"{above}analyst_budget", "must not be set: a measurement has no analysts")
        check_budget(terms.analyst_budget, f"{above}analyst_budget")
    elif terms.session is None and not measures:
        raise InvalidArgument(f"{above}analyst_budget", "must be set: a round protects its analysts")
    if not 0 < terms.beta < 1:
        raise InvalidArgument(f"{above}beta", "must be above 0 and below 1")
    if measures and terms.shares:
        raise InvalidArgument(f"{above}shares", "must be empty: nobody has a share of a measurement")
    if not measures:
        check_shares(terms.shares, above)
    if not 0 <= terms.release_grid_seconds <= MAX_GRID_SECONDS:
        raise InvalidArgument(f"{above}release_grid_seconds", f"must be at most {MAX_GRID_SECONDS:,}")
    check_named_once(terms.accepted, f"{above}accepted")
    _check_options(terms, f"{above}options")
    if terms.session is not None:
        _check_session(terms.session, f"{above}session")


def check_unit(unit: str, above: str = "") -> None:
    """Raise `InvalidArgument` for what is no unit of the analysts' protection.

    Args:
        unit: what was given.
        above: the fields above, with their dots, to name the field in a message.
    """
    if unit not in UNITS:
        raise InvalidArgument(f"{above}unit", 'must be "query" or "analyst"')


def check_budget(budget: Budget, field: str) -> None:
    """Raise `InvalidArgument`, naming what is below `field`, unless a round may cost so much."""
    if not 0 < budget.epsilon < math.inf:
        raise InvalidArgument(f"{field}.epsilon", "must be above 0 and finite")
    if not 0 <= budget.delta < 1:
        raise InvalidArgument(f"{field}.delta", "must be at least 0 and below 1")


def check_shares(shares: Sequence[Share], above: str = "") -> None:
    """Raise `InvalidArgument`, naming the share and its field, unless there are shares and all can be used.

    Args:
        shares: of a round, one an analyst.
        above: the fields above, with their dots, to name the field in a message.
    """
    if not shares:
        raise InvalidArgument(f"{above}shares", "must name at least one analyst")
    names: set[str] = set()
    for index, share in enumerate(shares):
        field = f"{above}shares[{index}]"
        if share.analyst in names:
            raise InvalidArgument(f"{field}.analyst", f"{share.analyst!r} is named twice")
        names.add(share.analyst)
        if not 1 <= share.statements <= MAX_COUNT:
            raise InvalidArgument(f"{field}.statements", f"must be from 1 to {MAX_COUNT:,}")
        if not share.statements <= share.queries <= MAX_COUNT:
            problem = f"must be from {share.statements:,}, one for each statement, to {MAX_COUNT:,}"
            raise InvalidArgument(f"{field}.queries", problem)
        if not 0 <= share.sensitivity <= 2 * share.statements:
            problem = "must be at most 2 for each statement, or 0 if not declared"
            raise InvalidArgument(f"{field}.sensitivity", problem)
        if not 0 <= share.support <= MAX_COUNT:
            raise InvalidArgument(f"{field}.support", f"must be at most {MAX_COUNT:,}, or 0 if not declared")
        if not 0 <= share.ways <= MAX_ATTRIBUTES:
            raise InvalidArgument(f"{field}.ways", f"must be at most {MAX_ATTRIBUTES}, or 0 if not declared")


def _check_options(terms: Terms, field: str) -> None:
    try:
        json.dumps(dict(terms.options), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidArgument(field, "must be JSON values without NaN or infinity") from None
    if terms.session is not None and "length" in terms.options:
        raise InvalidArgument(field, "must not name a length, which is one of the session's own terms")


def _check_session(session: SessionTerms, field: str) -> None:
    if not 0 <= session.length <= MAX_SESSION:
        raise InvalidArgument(f"{field}.length", f"must be at most {MAX_SESSION:,}, or 0 for what the shares allow")
    if not 0 <= session.turn_seconds <= MAX_TURN_SECONDS:
        raise InvalidArgument(f"{field}.turn_seconds", f"must be at most {MAX_TURN_SECONDS:,}")
