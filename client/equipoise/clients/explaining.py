"""The part of an analyst's client that tells errors of answers before anything is submitted or asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.clients.asked_questions import AskingClient
from equipoise.frames import Frame
from equipoise.model.submissions import DryRun
from equipoise.profile.kept_dry_runs import keep_dry_run
from equipoise.queries.grant_price import GrantPrice, price_of
from equipoise.queries.statements import Statement
from equipoise.questions.questions import Questions
from equipoise.v1 import analyst_pb2
from equipoise.wire import workloads
from equipoise.wire.submissions import dry_run_from_message

PIECE_BYTES = 1 << 20  # of a workload in one message; servers receive at most 4 MiB


class ExplainingClient(AskingClient):
    """The part of an analyst's client that tells errors beforehand. Thread-safe.

    Args:
        connection: the connection, which the client closes.
        keepsakes: where signed receipts are kept; None: nowhere, and the caller keeps what it is given.
    """

    def dry_run(self, round_id: str, statements: Sequence[Statement]) -> DryRun:
        """Checks a workload against a round and returns its predicted error. Costs nothing.

        The server keeps nothing of it. The profile keeps the errors: receipts must promise the same.

        Args:
            round_id: the round; or a session that is no grant.
            statements: the workload that would be submitted, or what would be asked.

        Raises:
            InvalidArgument: a statement is malformed; `field` names it.
            BudgetExhausted: the workload is larger than the caller's share.
        """
        workload = workloads.workload_to_bytes(statements)
        header = analyst_pb2.SubmitHeader(round_id=round_id, workload_bytes=len(workload))

        def requests() -> Iterator[analyst_pb2.DryRunWorkloadRequest]:
            yield analyst_pb2.DryRunWorkloadRequest(header=header)
            for piece in pieces_of(workload):
                yield analyst_pb2.DryRunWorkloadRequest(piece=piece)

        response = self._connection.upload(self._service.DryRunWorkload, requests)
        told = dry_run_from_message(response)
        if self._keepsakes is not None:
            keep_dry_run(self._keepsakes, round_id, told)
        return told

    def explain(
        self,
        round_id: str,
        questions: Questions,
        *,
        rho: float | None = None,
        error: float | None = None,
        epsilon: float | None = None,
        relative: float | None = None,
    ) -> Frame:
        """Returns the error that each statement of questions is expected to have. Costs nothing.

        The numbers are the round's or session's, from public facts: what is expected on average, and the most that
        an interval can reach to either side. A synopsis or a narrower interval may do better. Those of a grant are
        each statement's own, after all that was asked of it.

        Args:
            round_id: the round or session, or a grant, also by the name of its dataset.
            questions: those that would be submitted or asked.
            rho: of a grant: as for `ask`.
            error: of a grant: as for `ask`.
            epsilon: of a grant: as for `ask`.
            relative: of a grant: as for `ask`.

        Returns:
            A row for each statement, as `Questions.expected` has it.

        Raises:
            BudgetExhausted: the statements are more than the caller's share.
            InvalidArgument: it is a grant, and none or several of these four are given.
        """
        price = price_of(rho=rho, error=error, epsilon=epsilon, relative=relative)
        return questions.expected(*self._expected(round_id, questions, price))

    def explain_numbers(
        self,
        round_id: str,
        questions: Questions,
        *,
        rho: float | None = None,
        error: float | None = None,
        epsilon: float | None = None,
        relative: float | None = None,
    ) -> Frame:
        """Returns the error that each number which questions show, such as a mean, is expected to have.

        Args:
            round_id: as for `explain`.
            questions: as for `explain`.
            rho: as for `explain`.
            error: as for `explain`.
            epsilon: as for `explain`.
            relative: as for `explain`.

        Returns:
            A row for each column of numbers, as `Questions.expected_numbers` has it. Raises as `explain`.
        """
        price = price_of(rho=rho, error=error, epsilon=epsilon, relative=relative)
        return questions.expected_numbers(*self._expected(round_id, questions, price))

    def _expected(
        self, round_id: str, questions: Questions, price: GrantPrice | None
    ) -> tuple[NDArray[np.float64] | float, NDArray[np.float64] | float, int]:
        """The mean errors and half-widths of statements, as fractions of the records, and how many these are."""
        shown, statements = self.session(round_id), questions.statements
        records = self.dataset(shown.terms.dataset, shown.dataset_version).records
        if shown.grant is None:
            dry = self.dry_run(shown.id, statements)
            return dry.expected_error, dry.max_half_width, records
        prices = [price] * len(statements)
        costs = self.grant_costs(shown.id, statements, prices=prices).statements if statements else ()
        # The mean error of noise of a Gaussian law, by its standard error.
        errors = np.array([each.standard_error for each in costs]) * math.sqrt(2 / math.pi)
        reaches = np.array([np.nan if each.half_width is None else each.half_width for each in costs])
        return errors / records, reaches / records, records


def pieces_of(workload: bytes) -> Iterator[bytes]:
    """Yields a workload in pieces that fit into messages."""
    for start in range(0, len(workload), PIECE_BYTES):
        yield workload[start : start + PIECE_BYTES]
