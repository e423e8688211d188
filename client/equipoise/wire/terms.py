"""An operator's terms as messages, and back; what is malformed is refused under the field's name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Danger
from equipoise.model.rounds import Ending, SessionTerms, Share, Terms
from equipoise.model.terms_checks import check_terms
from equipoise.queries.strict_json import parse_json
from equipoise.v1 import types_pb2
from equipoise.wire.accounts import BUDGET
from equipoise.wire.messages import MessageCodec
from equipoise.wire.scalars import Numbers

MAX_OPTIONS = 65_536
MAX_SESSION_OPTIONS = 3 << 20  # which may list candidates; all in one message
UNITS = Numbers({"query": types_pb2.PROTECTION_UNIT_QUERY, "analyst": types_pb2.PROTECTION_UNIT_ANALYST})
ENDINGS = Numbers(
    {
        Ending.HYPOTHESIS: types_pb2.SESSION_ENDING_HYPOTHESIS,
        Ending.STOP: types_pb2.SESSION_ENDING_STOP,
    },
    unsaid=Ending.HYPOTHESIS,
)


class _Options:
    """The options of a mechanism: the text of a JSON object; empty for none."""

    def write(self, options: Mapping[str, object], _: str) -> str:
        return json.dumps(dict(options)) if options else ""

    def read(self, text: str, field: str) -> dict[str, object]:
        options = parse_json(text or "{}", field)
        if not isinstance(options, dict):
            raise InvalidArgument(field, 'must be a JSON object, such as {"play": "sampled"}')
        return options


DANGERS = Numbers(
    {
        Danger.EPSILON: types_pb2.DANGER_EPSILON,
        Danger.DELTA: types_pb2.DANGER_DELTA,
        Danger.NOISE: types_pb2.DANGER_NOISE,
        Danger.PROMISE: types_pb2.DANGER_PROMISE,
    }
)
SHARE = MessageCodec(types_pb2.Share, Share)
SESSION = MessageCodec(types_pb2.SessionTerms, SessionTerms, ending=ENDINGS)
TERMS = MessageCodec(
    types_pb2.RoundTerms,
    Terms,
    shares=SHARE,
    data_budget=BUDGET,
    analyst_budget=BUDGET,
    unit=UNITS,
    options=_Options(),
    session=SESSION,
    accepted=DANGERS,
)


def dangers_from_message(accepted: Iterable[int], field: str) -> tuple[Danger, ...]:
    """Read the dangers that an operator has named. Raises `InvalidArgument` naming the field and the place.

    Args:
        accepted: the numbers of a message.
        field: what errors call them.
    """
    return tuple(DANGERS.read(each, f"{field}[{place}]") for place, each in enumerate(accepted))


def terms_to_message(terms: Terms) -> types_pb2.RoundTerms:
    """Write the terms of a round or a session. Raises `InvalidArgument` for what no message can say."""
    return TERMS.write_request(terms, "terms")


def terms_from_message(message: types_pb2.RoundTerms) -> Terms:
    """Read what an operator wants. Raises `InvalidArgument` naming the field, such as `terms.shares[2].queries`."""
    most = MAX_SESSION_OPTIONS if message.HasField("session") else MAX_OPTIONS
    if len(message.options) > most:
        raise InvalidArgument("terms.options", f"is longer than {most:,} characters")
    terms = TERMS.read(message, "terms")
    check_terms(terms, "terms.")
    return terms
