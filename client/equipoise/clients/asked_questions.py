"""Questions in SQL: what they ask of a round or session, and the tables that answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.frames import Frame
from equipoise.model.results import Answers
from equipoise.questions.questions import Questions
from equipoise.results import Results
from equipoise.wire.workloads import workload_to_bytes

if TYPE_CHECKING:
    from equipoise.clients.analyst import Client


def translated(client: Client, round_id: str, text: str) -> Questions:
    """Returns the questions of a text, about the table of a round or session.

    Args:
        client: the analyst's.
        round_id: the round or session.
        text: one SELECT or several.

    Raises:
        InvalidArgument: what cannot be asked, or sqlglot is not installed.
    """
    try:
        from equipoise.questions.sql import questions_from_sql  # noqa: PLC0415 - optional
    except ModuleNotFoundError:
        raise InvalidArgument("sqlglot", "is not installed; run: pip install 'equipoise[sql]'") from None
    shown = client.round(round_id)
    return Questions(questions_from_sql(text, client.schema_of(shown), shown.terms.dataset))


def answered(client: Client, round_id: str, questions: Questions, *, fractions: bool) -> tuple[Frame, ...]:
    """Returns the answers to questions that were asked.

    Args:
        client: the analyst's.
        round_id: the round or session.
        questions: those that were submitted, or that are now asked in a session.
        fractions: whether counts are shown as fractions of the records.

    Raises:
        VerificationFailed: other statements were submitted to the round.
    """
    shown = client.round(round_id)
    records = client.dataset(shown.terms.dataset, shown.dataset_version).records
    results = None
    if questions.statements and shown.terms.session is not None:
        parts = [each.results.answers for each in client.ask(round_id, questions.statements, after=None)]
        results = Results(round_id, Answers.join(parts))
    elif questions.statements:
        # Answers to other statements would have the same form: what was submitted decides whose they are.
        _, workload = client.evidence(round_id)
        if workload != workload_to_bytes(questions.statements):
            raise VerificationFailed("these are not the questions that were submitted to this round")
        results = client.results(round_id)
    return questions.answers(results, records, fractions=fractions)
