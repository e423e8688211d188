"""Converts rows of the store to records and back, in the transaction of the given connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select

from equipoise.errors import DataLoss, InvalidArgument, NotFound, VerificationFailed
from equipoise.model.rounds import GRANT, STANDING_OPTION, MechanismPlan, RoundState, SessionTerms, Share, Terms
from equipoise.model.times import from_microseconds
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import PLAN, SHARE, TERMS, RecordedTerms
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.store.datasets import NO_DATASET, read_dataset
from equipoise_server.storage.tables.round import datasets, rounds, shares, submissions
from equipoise_server.storage.tables.session import sessions

NO_ROUND = "there is no such round"  # the same words whether it does not exist or is not the caller's
IS_SESSION = rounds.c.id.in_(select(sessions.c.round_id))
# Terms are canonical JSON, in which a quote within a text is escaped; what names a measurement has no such key.
IS_GRANT = IS_SESSION & rounds.c.terms.contains(f'"mechanism":"{GRANT}"', autoescape=True)
# The account that a round is charged to: its dataset's.
_ACCOUNT = select(datasets.c.account).where(datasets.c.name == rounds.c.dataset).scalar_subquery().label("account")

# Nearly every call needs these. They are built once, because building them takes longer than SQLite's work.
_ROUND = select(rounds, _ACCOUNT).where(rounds.c.id == bindparam("round"))
_LOCKED_ROUND = _ROUND.with_for_update()
_NONCE = select(rounds.c.audit_nonce).where(rounds.c.id == bindparam("round"))
_SHARE = select(shares).where(shares.c.round_id == bindparam("round"), shares.c.analyst == bindparam("of"))


def canonical(value: object) -> str:
    """Return JSON with one spelling: sorted keys, no spaces, no NaN."""
    return canonical_json(value).decode("ascii")


def recorded_terms(terms: Terms) -> RecordedTerms:
    """Return the recorded part of the terms: everything except dataset, shares and closing time."""
    return RecordedTerms(**{name: getattr(terms, name) for name in TERMS.keys.values()})


def combined_with(terms: Terms) -> Mapping[str, Any] | None:
    """Return the measurement that a grant's answers are combined with, as its terms name it; None without one."""
    named = terms.options.get(STANDING_OPTION) if terms.mechanism == GRANT else None
    return named if isinstance(named, Mapping) else None


def terms_to_json(terms: Terms) -> str:
    """Return the recorded part of the terms as text. Dataset, shares and closing time are stored separately."""
    return TERMS.to_text(recorded_terms(terms))


def unit_from_json(text: str) -> str:
    """Return the protected unit in the terms that `terms_to_json` wrote."""
    return TERMS.from_text(text, "the terms").unit


def session_from_json(text: str) -> SessionTerms | None:
    """Return the session's part of the terms that `terms_to_json` wrote; None for any other round."""
    return TERMS.from_text(text, "the terms").session


def plan_to_json(plan: MechanismPlan) -> str:
    """Return a plan as text; floats are written so that they read back the same."""
    return PLAN.to_text(plan)


def plan_from_json(text: str) -> MechanismPlan:
    """Return the plan that `plan_to_json` wrote. Raises `VerificationFailed` for any other text."""
    return PLAN.from_text(text, "the plan")


def read_round(connection: Connection, round_id: str, *, locked: bool = False) -> RoundRecord:
    """Return the round `round_id`; `locked` keeps it as it is until the transaction ends. Raises `NotFound`."""
    row = _row(connection, round_id, locked=locked)
    of_round = select(shares).where(shares.c.round_id == round_id).order_by(shares.c.position)
    return _round(row, tuple(map(_share, connection.execute(of_round))))


def read_own_round(connection: Connection, round_id: str, analyst: str, *, locked: bool = False) -> RoundRecord:
    """Return one round with an analyst's share alone, so the time does not depend on the number of other shares.

    Raises `NotFound` where the analyst has no share, in the words for a round that does not exist.

    Args:
        connection: to the store.
        round_id: the round.
        analyst: the caller's name.
        locked: whether the round stays as it is until the transaction ends.
    """
    share = read_share(connection, round_id, analyst)
    return _round(_row(connection, round_id, locked=locked), (share,))


def _row(connection: Connection, round_id: str, *, locked: bool) -> Row[Any]:
    row = connection.execute(_LOCKED_ROUND if locked else _ROUND, {"round": round_id}).first()
    if row is None:
        raise NotFound(NO_ROUND)
    return row


def has_answered(connection: Connection, session_id: str) -> bool:
    """Return whether any statement of the session has an answer."""
    query = select(sessions.c.answered).where(sessions.c.round_id == session_id)
    return bool(connection.execute(query).scalar_one())


def read_audit_nonce(connection: Connection, round_id: str) -> bytes | None:
    """Return the auditor's part of a round's randomness; None without one."""
    nonce: bytes | None = connection.execute(_NONCE, {"round": round_id}).scalar_one()
    return nonce


def round_records(connection: Connection, query: Select[Any], analyst: str | None = None) -> list[RoundRecord]:
    """The rounds that a query of `rounds` finds, in its order, with their shares: all, or one analyst's.

    The shares are found by the same query, and not by a list of ids: that would be another statement for each
    number of rounds, which every connection would keep prepared.
    """
    rows = connection.execute(query.add_columns(_ACCOUNT)).all()
    ids = query.with_only_columns(rounds.c.id).subquery()
    shares_of: dict[str, list[Share]] = {row.id: [] for row in rows}
    joined = select(shares).join(ids, ids.c.id == shares.c.round_id).order_by(shares.c.position)
    for row in connection.execute(joined if analyst is None else joined.where(shares.c.analyst == analyst)):
        shares_of[row.round_id].append(_share(row))
    return [_round(row, tuple(shares_of[row.id])) for row in rows]


def read_share(connection: Connection, round_id: str, analyst: str) -> Share:
    """Return an analyst's share in a round. Raises `NotFound` in the words for a round that does not exist.

    Args:
        connection: to the store.
        round_id: the round.
        analyst: whose share it is.
    """
    row = connection.execute(_SHARE, {"round": round_id, "of": analyst}).first()
    if row is None:
        raise NotFound(NO_ROUND)
    return _share(row)


def shared_version(connection: Connection, dataset: str, version: int, analyst: str) -> DatasetRecord:
    """Return the version of a dataset, 0: the newest, among those of rounds in which an analyst has a share.

    Raises `NotFound` where there is none, in the words for a dataset that does not exist.

    Args:
        connection: to the store.
        dataset: its name.
        version: its number, from 1; 0: the newest of those rounds.
        analyst: the caller's name.
    """
    own = select(rounds.c.dataset_version).join(shares, rounds.c.id == shares.c.round_id)
    query = own.where(shares.c.analyst == analyst, rounds.c.dataset == dataset)
    wanted = query.where(rounds.c.dataset_version == version) if version else query
    found = connection.execute(wanted.order_by(rounds.c.dataset_version.desc()).limit(1)).scalar()
    if found is None:
        raise NotFound(NO_DATASET)
    return read_dataset(connection, dataset, found)


def _share(row: Row[Any]) -> Share:
    return Share(**{attribute: getattr(row, name) for name, attribute in SHARE.keys.items()})


def check_token(connection: Connection, page_token: str, analyst: str | None = None) -> None:
    """Raise `InvalidArgument` for a token that no page of this caller ended with.

    Args:
        connection: to the store.
        page_token: what the caller gave; empty: the first page, which is always right.
        analyst: the caller's name; None: an operator or an auditor, who may see all rounds.
    """
    if not page_token:
        return
    try:
        if analyst is None:
            read_round(connection, page_token)
        else:
            read_share(connection, page_token, analyst)
    except NotFound:
        raise InvalidArgument("page_token", "is not a page token issued by this server") from None


def newest_first(page_token: str, limit: int) -> Select[Any]:
    """The `limit` rounds opened before the round `page_token` (any, if empty). It tells nothing of others."""
    query = select(rounds).order_by(rounds.c.position.desc()).limit(limit)
    if not page_token:
        return query
    seen = select(rounds.c.position).where(rounds.c.id == page_token).scalar_subquery()
    return query.where(rounds.c.position < seen)


def read_workloads(connection: Connection, round_id: str) -> dict[str, bytes]:
    """Return the submitted workloads of a round by analyst, in the order of the shares."""
    query = (
        select(submissions.c.analyst, submissions.c.workload)
        .join(
            shares,
            (shares.c.round_id == submissions.c.round_id) & (shares.c.analyst == submissions.c.analyst),
        )
        .where(submissions.c.round_id == round_id)
        .order_by(shares.c.position)
    )
    return {row.analyst: row.workload for row in connection.execute(query)}


def _round(row: Row[Any], round_shares: tuple[Share, ...]) -> RoundRecord:
    """A row of `rounds`. Raises `DataLoss` for one that nothing here has written."""
    try:
        return _read_round(row, round_shares)
    except (VerificationFailed, ValueError):
        raise DataLoss(f"the round {row.id} is damaged") from None


def _read_round(row: Row[Any], round_shares: tuple[Share, ...]) -> RoundRecord:
    terms = TERMS.from_text(row.terms, "the terms")
    plan = plan_from_json(row.plan)
    return RoundRecord(
        id=row.id,
        account=row.account,
        terms=Terms(
            dataset=row.dataset,
            shares=round_shares,
            close_time=None if row.close_time is None else from_microseconds(row.close_time),
            **{name: getattr(terms, name) for name in TERMS.keys.values()},
        ),
        dataset_version=row.dataset_version,
        state=RoundState(row.state),
        mechanism=plan.mechanism,
        plan=plan,
        records=row.records,
        universe_size=row.universe_size,
        open_time=from_microseconds(row.open_time),
        release_time=None if row.release_time is None else from_microseconds(row.release_time),
        abort_reason=row.abort_reason,
        seed_commitment=row.seed_commitment,
    )
