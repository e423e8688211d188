"""The checks of what was delivered and charged, against what a round's records say of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost, charge_at, charge_of, events_from_json
from equipoise.errors import VerificationFailed
from equipoise.model.results import AnswerMethod
from equipoise.model.synopsis import Synopsis, record_bytes
from equipoise.queries.fixed_point import GRID_BITS, ONE
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.item_parts import NOTHING_CHARGED
from equipoise.records.proven_round import ProvenRound
from equipoise.records.record import stream_digest, synopsis_digest
from equipoise.results import Results
from equipoise.verification.conversion import TOLERANCE, epsilon_of
from equipoise.verification.pairs import pairs_hold
from equipoise.wire.results import chunk_from_bytes

# Ways of answering that only sessions have, and those that none has.
OF_SESSIONS = (AnswerMethod.HYPOTHESIS,)
IN_SESSIONS = (
    *OF_SESSIONS,
    AnswerMethod.MEASURED,
    AnswerMethod.FITTED,
    AnswerMethod.GAUSSIAN,
    AnswerMethod.LAPLACE,
    AnswerMethod.UNCERTIFIED,
)
OF_ROUNDS = tuple(set(AnswerMethod) - set(IN_SESSIONS))


def read_stream(stream: Sequence[bytes], proven: ProvenRound) -> Results | None:
    """Returns the results, None where there are none by the records.

    Raises `DataLoss` for any other stream than theirs.
    """
    committed = None if proven.result is None else proven.result.stream
    if proven.result is not None and (committed is None) != (proven.commitment is None):
        raise VerificationFailed("there is a workload without results, or there are results without a workload")
    if committed is None:
        if stream:
            raise VerificationFailed("there are results where none are committed to")
        return None
    if len(stream) != committed.messages:
        raise VerificationFailed(f"there are {len(stream):,} of {committed.messages:,} result messages")
    round_id = proven.round.round_id
    if stream_digest(round_id, stream) != committed.digest:
        raise VerificationFailed("the messages are not those that are committed to, or in another order")
    results = Results.collect(round_id, map(chunk_from_bytes, stream))
    if len(results) != committed.queries:
        raise VerificationFailed(f"there are {len(results):,} answers of {committed.queries:,}")
    return results


def check_intervals(results: Results, queries: int, proven: ProvenRound) -> str:
    """Checks that each query has an answer, and every answer what the round promised.

    Args:
        results: The answers of the bundle.
        queries: How many queries the analyst asked.
        proven: The round on record, with the promised half-width and the number of answers without an interval.

    Returns:
        The largest half-width, as a fraction of the records, and what was promised, for people.

    Raises:
        VerificationFailed: An answer is missing, lies outside its interval, is wider than promised, or is given in
            a way that such a round has not; or too many answers have no interval.
    """
    if len(results) != queries:
        raise VerificationFailed(f"there are {len(results):,} answers to {queries:,} queries")
    foreign = np.flatnonzero(np.isin(results.methods, OF_SESSIONS if proven.round.session is None else OF_ROUNDS))
    if len(foreign):
        way = AnswerMethod(int(results.methods[foreign[0]])).label
        kind = "round" if proven.round.session is None else "session"
        raise VerificationFailed(f"query {foreign[0]} is answered by {way}, which no {kind} does")
    answers, certified = results.answers, results.answers.certified
    # An unbiased value is not cut to what a fraction can be, its interval is.
    possible = np.clip(answers.values, 0, ONE)
    outside = certified & ((possible < answers.lows) | (possible > answers.highs))
    if outside.any():
        raise VerificationFailed(f"query {np.flatnonzero(outside)[0]} has a value outside its interval")
    # A float times a power of two is exact, and Python compares it with integers exactly.
    promised = proven.round.max_half_width
    widths = answers.highs - answers.lows
    widest = int(widths.max(initial=0))
    if widest > promised * 2.0 ** (GRID_BITS + 1):
        query = int(np.flatnonzero(widths == widest)[0])
        raise VerificationFailed(f"query {query} has a larger half-width than the {promised:.6g} promised")
    count, allowed = int(np.count_nonzero(~certified)), proven.round.max_uncertified
    if count > allowed:
        raise VerificationFailed(f"{count:,} answers have no interval, of {allowed:,} that may have none")
    return f"half-width at most {widest / 2.0 ** (GRID_BITS + 1):.6g}, {promised:.6g} promised; {count:,} without"


def read_synopsis(synopsis: bytes | None, proven: ProvenRound) -> Synopsis | None:
    """Returns the released synopsis; None where the records commit to none.

    Raises `VerificationFailed` for other bytes than those that are committed to.
    """
    committed = None if proven.release is None else proven.release.synopsis
    if committed is None:
        if synopsis is not None:
            raise VerificationFailed("there is a synopsis where none is committed to")
        return None
    if synopsis is None:
        raise VerificationFailed("a synopsis is committed to, but it is not there")
    length = record_bytes(proven.schema.sizes) * committed.records
    if synopsis_digest(synopsis) != committed.digest or len(synopsis) != length:
        raise VerificationFailed("the synopsis is not the one that is committed to")
    return Synopsis.from_bytes(synopsis, proven.schema.sizes)


def check_recomputed(results: Results, workload: CompiledWorkload | None, synopsis: Synopsis | None) -> str:
    """Computes again every answer that is said to be the synopsis's.

    Of an answer fitted to measured tables the synopsis's value is moved into its interval.

    Args:
        results: The answers of the bundle.
        workload: What was asked; None if nothing was.
        synopsis: The released synopsis; None if the round has none.

    Returns:
        How many answers were computed again, for people.

    Raises:
        VerificationFailed: The synopsis gives another answer, or there is none.
    """
    chosen = np.flatnonzero(np.isin(results.methods, (AnswerMethod.SYNOPSIS, AnswerMethod.FITTED)))
    said = f"{len(chosen):,} of {len(results):,} answers"
    if not len(chosen):
        return said
    if workload is None or synopsis is None or not len(synopsis):
        raise VerificationFailed(f"query {chosen[0]} is said to be answered by a synopsis, but there is none")
    answers, expected = results.answers, synopsis.answers(workload)
    fitted = results.methods == AnswerMethod.FITTED
    expected = np.where(fitted, np.clip(expected, answers.lows, answers.highs), expected)
    wrong = chosen[answers.values[chosen] != expected[chosen]]
    if len(wrong):
        query, scale = wrong[0], 2.0**GRID_BITS
        answered, right = answers.values[query] / scale, expected[query] / scale
        raise VerificationFailed(
            f"query {query} was answered {answered}, but the synopsis says {right}; {len(wrong) - 1:,} more differ"
        )
    return said


def check_charge(proven: ProvenRound) -> str:
    """Raises `VerificationFailed` unless the analyst is charged what was announced, part by part."""
    expected, state = _expected_charge(proven), "spent"
    if proven.result is not None:
        charged = proven.result.charge
    else:
        assert proven.charge is not None  # as of every round that has ended in another way (`proven_round.STEPS`)
        charged, state = proven.charge.charge, proven.charge.state
    unprotected = proven.round.analyst_cost is None
    if proven.round.session is not None:
        # It has answered from the table since it was opened. Without a budget there is nothing to give back.
        allowed = ("spent", NOTHING_CHARGED) if unprotected else ("spent",)
        if state not in allowed:
            raise VerificationFailed(f"the charge of a session is {state}, and not spent")
    elif (state == NOTHING_CHARGED) != (proven.seal is None):
        raise VerificationFailed("a round that was not sealed is charged, or one that was is not")
    if state == NOTHING_CHARGED:
        expected = Cost()
    if charged != expected:
        raise VerificationFailed(f"{_describe(charged)} is charged where {_describe(expected)} was announced")
    if unprotected:
        return "nothing: the session does not protect its analysts from one another"
    return "nothing: the round was not sealed" if state == NOTHING_CHARGED else f"{_describe(charged)}, {state}"


def _expected_charge(proven: ProvenRound) -> Cost:
    """Compute what the analyst's account must count, from the announced parts.

    Raises `VerificationFailed` where these are not what was announced, or not what their account counts.
    """
    announced, parts = proven.round.analyst_cost or Cost(), events_from_json(proven.announced_parts)
    if proven.round.analyst_events.get("mechanism") != proven.round.mechanism or charge_of(parts) != announced:
        raise VerificationFailed(
            f"the announced cost, {_describe(announced)}, is not the sum of the announced parts"
        )
    if not pairs_hold(parts):
        raise VerificationFailed("the pair of an announced part does not follow from what the part is made of")
    if proven.round.analyst_budget is None and proven.round.session is None:
        raise VerificationFailed("a round has no budget for its analysts")
    if (proven.round.analyst_cost is None) != (proven.round.analyst_budget is None):
        raise VerificationFailed("a session that does not protect its analysts has a budget for them, or a cost")
    budget = proven.round.analyst_budget
    if budget is not None and not epsilon_of(announced, budget.delta, None) <= budget.epsilon * (1 + TOLERANCE):
        raise VerificationFailed(f"the announced cost, {_describe(announced)}, is beyond the budget for analysts")
    order = proven.round.analyst_order
    if (order is None) is not (proven.round.unit == "query"):
        raise VerificationFailed("rounds add on accounts of unit = analyst, at an order, and on no others")
    if order is not None and not order > 1:
        raise VerificationFailed(f"an account counts at a Renyi order above 1, and not at {order:g}")
    return announced if order is None else charge_at(parts, order)


def _describe(cost: Cost) -> str:
    amounts = (
        ("rho", cost.rho / RHO_UNIT),
        ("epsilon", cost.epsilon / RHO_UNIT),
        ("divergence", cost.divergence / RHO_UNIT),
        ("delta", cost.delta / DELTA_UNIT),
    )
    return ", ".join(f"{name} {amount:.6g}" for name, amount in amounts if amount) or "nothing"
