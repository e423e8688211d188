"""The families of marginals that operators ask to have measured, and the noise that their budget buys."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from equipoise.accounting import RHO_UNIT
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.schema import Schema
from equipoise.residuals.family import MAX_SETS, ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.residuals.allocation import least_summed

FIELD = "options.family"
WAYS = {"pairs": 2, "triples": 3}
MAX_RESIDUALS = 1 << 14  # each has a number in the plan of the measurement and in those of all rounds that use it


def planned_noise(options: Mapping[str, object], schema: Schema, budget: Budget) -> ResidualNoise:
    """Return the noise with which a family is measured: of the least summed variance of all its largest tables.

    Args:
        options: `family`, "pairs", "triples" or a list of lists of attributes' names, and nothing else; "pairs"
            where there is none.
        schema: the table's attributes.
        budget: what the measurement may cost the people in the table.

    Raises:
        InvalidArgument: an option is unknown, an attribute is unknown or named twice, or the family is too large.
        BudgetExhausted: the noise would be coarser than its sampler can draw.
    """
    for name in sorted(options.keys() - {"family"}):
        raise InvalidArgument(f"options.{name}", "unknown; there is family")
    wanted = options.get("family", "pairs")
    sets = _all_sets(schema, wanted) if isinstance(wanted, str) else _named_sets(schema, wanted)
    try:
        family = ResidualFamily.closed(schema.sizes, sets, schema.ordered)
    except InvalidArgument as problem:
        raise InvalidArgument(FIELD, f"is too large: {problem.message}") from None
    if not family.sets:
        raise InvalidArgument(FIELD, "has no attribute with two categories or more")
    if len(family.residuals) > MAX_RESIDUALS:
        limits = f"it has {len(family.residuals):,} residuals; at most {MAX_RESIDUALS:,} are allowed"
        raise InvalidArgument(FIELD, f"is too large: {limits}")
    rho = usable_rho(budget)
    if not rho:
        raise BudgetExhausted("data_budget: is too small to measure any table; raise it")
    return least_summed(family, Fraction(rho, RHO_UNIT)).noise


def _all_sets(schema: Schema, wanted: str) -> list[Axes]:
    telling = [axis for axis, size in enumerate(schema.sizes) if size > 1]
    if wanted not in WAYS:
        raise InvalidArgument(FIELD, f"must be {' or '.join(WAYS)}, or a list of lists of attributes")
    ways = min(WAYS[wanted], len(telling))
    return list(itertools.islice(itertools.combinations(telling, ways), MAX_SETS + 1))


def _named_sets(schema: Schema, wanted: object) -> list[Axes]:
    if not isinstance(wanted, Sequence) or not wanted or not all(isinstance(each, Sequence) for each in wanted):
        raise InvalidArgument(FIELD, f"must be {' or '.join(WAYS)}, or a list of lists of attributes")
    return [_axes(schema, names, f"{FIELD}[{place}]") for place, names in enumerate(wanted)]


def _axes(schema: Schema, names: Sequence[object], field: str) -> Axes:
    for place, name in enumerate(names):
        if name not in schema.names:
            raise InvalidArgument(field, f"names {name!a}, which is no attribute of the dataset")
        if name in names[:place]:
            raise InvalidArgument(field, f"names the attribute {name!a} twice")
    if not names or isinstance(names, str):
        raise InvalidArgument(field, "must be a list of attributes")
    return tuple(schema.names.index(str(name)) for name in names)
