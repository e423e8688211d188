"""How an analyst asks questions, in SQL or in Python, of rounds and sessions, and gets tables."""

from __future__ import annotations

from equipoise.clients.sessions import SessionsClient
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.frames import Frame
from equipoise.model.results import Answers
from equipoise.queries.grant_price import price_of
from equipoise.questions.builder import Table
from equipoise.questions.questions import Questions
from equipoise.questions.sql_extra import questions_of
from equipoise.results import Results
from equipoise.wire.workloads import workload_to_bytes


class AskingClient(SessionsClient):
    """The part of an analyst's client that asks questions and gets tables. Thread-safe.

    Args:
        connection: the connection, which the client closes.
        keepsakes: where signed receipts are kept; None: nowhere, and the caller keeps what it is given.
    """

    def sql(self, round_id: str, text: str) -> Questions:
        """Translates SQL about the table of a round or session. Nothing is sent but a look at the schema.

        Args:
            round_id: the round or session; or a grant, also by the name of its dataset.
            text: one SELECT or several, parted by `;`.

        Raises:
            InvalidArgument: naming line and column, what cannot be asked, and what to do instead.
        """
        shown = self.session(round_id)
        return questions_of(text, self.schema_of(shown), shown.terms.dataset)

    def table(self, round_id: str) -> Table:
        """Returns the table of a round or session, to put questions together in Python. Only the schema is read.

        Args:
            round_id: the round or session; or a grant, also by the name of its dataset.
        """
        shown = self.session(round_id)
        return Table(self.schema_of(shown), shown.terms.dataset)

    def frames(
        self,
        round_id: str,
        questions: Questions,
        *,
        fractions: bool = False,
        accept_unprotected: bool = False,
        rho: float | None = None,
        error: float | None = None,
        epsilon: float | None = None,
        relative: float | None = None,
    ) -> tuple[Frame, ...]:
        """Returns a table for each question: of a released round, or by asking in a session, after all others.

        Args:
            round_id: the round or session; or a grant, also by the name of its dataset.
            questions: those whose statements were submitted to the round.
            fractions: whether counts are shown as fractions of the records.
            accept_unprotected: as in `ask`.
            rho: what each statement may cost of a grant, in zCDP.
            error: or the standard error of each of its counts that is wanted, in records.
            epsilon: or as for `ask`.
            relative: or as for `ask`. All None of what is no grant.

        Raises:
            InvalidArgument: what statements may cost is missing, or is given where nothing is paid.
            VerificationFailed: other statements were submitted to the round. Other errors: as `results` and `ask`.
        """
        shown = self.session(round_id)
        records = self.dataset(shown.terms.dataset, shown.dataset_version).records
        results = None
        price = price_of(rho=rho, error=error, epsilon=epsilon, relative=relative)
        if shown.terms.session is None and price is not None:
            raise InvalidArgument("rho", "must not be given, and no error: nothing is paid in a round")
        if questions.statements and shown.terms.session is not None:
            asked = self.ask(
                shown.id,
                questions,
                after=None,
                accept_unprotected=accept_unprotected,
                rho=rho,
                error=error,
                epsilon=epsilon,
                relative=relative,
            )
            parts = [each.results.answers for each in asked]
            results = Results(shown.id, Answers.join(parts))
        elif questions.statements:
            # Answers to other statements would have the same form: what was submitted decides whose they are.
            _, workload = self.evidence(shown.id)
            if workload != workload_to_bytes(questions.statements):
                raise VerificationFailed("these are not the questions that were submitted to this round")
            results = self.results(shown.id)
        return questions.answers(results, records, fractions=fractions)
