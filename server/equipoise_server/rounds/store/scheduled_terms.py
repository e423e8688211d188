"""The terms of rounds that are opened by the calendar, as the store keeps them."""

from __future__ import annotations

import json

from equipoise.errors import DataLoss, VerificationFailed
from equipoise.model.rounds import Terms
from equipoise.records.public_facts import SHARE, TERMS
from equipoise_server.rounds.store.rounds import canonical, recorded_terms


def scheduled_terms_to_json(terms: Terms) -> str:
    """Return terms without their closing time as text."""
    shares = [SHARE.encode(share) for share in terms.shares]
    return canonical({"dataset": terms.dataset, "terms": TERMS.encode(recorded_terms(terms)), "shares": shares})


def scheduled_terms(text: str) -> Terms:
    """Return the terms that `scheduled_terms_to_json` wrote. Raises `DataLoss` for anything else."""
    try:
        document = json.loads(text)
        known = TERMS.decode(document["terms"], "the terms")
        shares = tuple(SHARE.decode(each, "the shares") for each in document["shares"])
        facts = {name: getattr(known, name) for name in TERMS.keys.values()}
        return Terms(dataset=document["dataset"], shares=shares, close_time=None, **facts)
    except (ValueError, KeyError, TypeError, VerificationFailed):
        raise DataLoss("the terms of a schedule are damaged") from None
