"""Asking: questions put together, understood, tried at no cost, and sent."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from equipoise.accounting import in_rho
from equipoise.clients.analyst import Client
from equipoise.commands.asking import WINDOW
from equipoise.commands.printing import counted
from equipoise.console.analyst.frames_shown import AnsweredTable, answered_table
from equipoise.console.analyst.rounds import round_page
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.jobs import Job
from equipoise.console.rendering import Table, plain_table
from equipoise.errors import BudgetExhausted, InvalidArgument, NotFound, WrongState
from equipoise.frames import shown as shown_value
from equipoise.model.results import Answers
from equipoise.model.rounds import Round
from equipoise.profile.kept_sql import keep_sql
from equipoise.queries.grant_costs import SHOWN, shown_errors
from equipoise.queries.predicates import Among
from equipoise.queries.statements import Statement
from equipoise.queries.statements_file import statements_from_json
from equipoise.questions.aggregates import count
from equipoise.questions.canonical import sql_of
from equipoise.questions.questions import Questions
from equipoise.results import Labels, Results


@dataclass(frozen=True)
class Wanted:
    """What was typed: statements, and the SQL questions that they are for, if it was SQL."""

    statements: tuple[Statement, ...]
    questions: Questions | None

    @property
    def given(self) -> tuple[Statement, ...] | Questions:
        """What is sent: the questions, if there are any, so that receipts commit to them."""
        return self.statements if self.questions is None else self.questions

    @property
    def understood(self) -> tuple[str, ...]:
        """What will be counted, in SQL that says exactly that."""
        return () if self.questions is None else self.questions.understood


@dataclass(frozen=True)
class Checked:
    """What would come of it: nothing was sent but the question how well it would be answered."""

    understood: tuple[str, ...]
    sentences: tuple[str, ...]
    table: Table | None


def ask(desk: Desk, asked: Asked) -> Response:
    """Does with the questions what the button says: put one together, try them, or send them."""
    client, round_id = desk.analyst, asked.path["round_id"]
    shown = client.round(round_id)
    sql, statements = asked.text("sql").strip(), asked.text("statements").strip()
    typed = {"sql": sql, "statements": statements, "error": asked.text("error"), "rho": asked.text("rho")}
    button = asked.text("do")
    try:
        if button == "compose":
            return round_page(desk, shown, typed | {"sql": _composed(client, shown, asked, sql)})
        wanted = _wanted(client, round_id, sql, statements)
        if button == "check" or (wanted.questions and any(each.explain for each in wanted.questions)):
            return round_page(desk, shown, {**typed, "checked": _check(client, shown, wanted, asked)})
        if button != "send":
            raise InvalidArgument("do", "must be compose, check or send")
        if shown.terms.session is not None:
            return _ask_one_by_one(desk, shown, wanted, asked)
        client.submit(round_id, wanted.given, asked.needed("request_id"))
        if wanted.questions is not None:
            keep_sql(desk.profile, round_id, wanted.questions.kept)
    except (InvalidArgument, BudgetExhausted, WrongState) as refusal:
        return round_page(desk, shown, {**typed, "refusal": refusal}, 400)
    return desk.go(f"/rounds/{round_id}")


def withdraw(desk: Desk, asked: Asked) -> Response:
    """Takes the workload back."""
    round_id = asked.path["round_id"]
    desk.analyst.withdraw(round_id, asked.needed("request_id"))
    return desk.go(f"/rounds/{round_id}")


def answers(desk: Desk, asked: Asked) -> Response:
    """What was answered in a session just now."""
    found: tuple[AnsweredTable, ...] | None = desk.kept.get(("answers", asked.path["token"]))
    if found is None:
        raise NotFound("these answers are not remembered any more; a session's are read again when it is released")
    shown = desk.analyst.round(asked.path["round_id"])
    return desk.show("analyst/tables.html", section="My rounds", shown=shown, tables=found, sql="")


def _wanted(client: Client, round_id: str, sql: str, statements: str) -> Wanted:
    if sql and statements:
        raise InvalidArgument("statements", "must be empty where there is SQL: ask in one of the two ways")
    if statements:
        return Wanted(statements_from_json(statements), None)
    if not sql:
        raise InvalidArgument("questions", "are missing; type SQL, or put a question together below")
    questions = client.sql(round_id, sql)
    return Wanted(questions.statements, questions)


def _composed(client: Client, shown: Round, asked: Asked, sql: str) -> str:
    """The SQL with one more question: counts by some attributes, of the records with some categories."""
    schema = client.schema_of(shown)
    table = client.table(shown.id)
    for place, attribute in enumerate(schema.attributes):
        kept = asked.texts(f"only_{place}")
        if kept:
            table = table.where(Among(attribute.name, kept))
    question = table.group_by(*asked.texts("by")).agg(count())
    return ";\n\n".join([*([sql.rstrip("; \n")] if sql else []), sql_of(question)])


def _check(client: Client, shown: Round, wanted: Wanted, asked: Asked) -> Checked:
    if shown.grant is not None:
        return _costs(client, shown, wanted, asked)
    many = counted(len(wanted.statements), "statement")
    if shown.terms.session is not None or not wanted.statements:
        return Checked(wanted.understood, (f"{many} would be asked.",), None)
    if wanted.questions is None:
        dry = client.dry_run(shown.id, wanted.statements)
        sentences = (
            f"{many}, {counted(dry.queries, 'query')}; one record replaced changes their counts by at most "
            f"{dry.sensitivity:,} in sum.",
            f"An interval will reach at most {dry.max_half_width:.4g} of the records to either side; the mean "
            f"error is expected to be {dry.expected_error:.3g}.",
        )
        return Checked((), sentences, None)
    expected = client.explain(shown.id, wanted.questions)
    heads = [name.replace("_", " ") for name in expected.names]
    rows = [[*map(shown_value, row)] for row in expected.rows()]
    sentences = (
        f"{many} would be submitted.",
        "Errors, in the unit, are what is expected on average; a half width is the most that an interval reaches.",
    )
    return Checked(wanted.understood, sentences, plain_table(heads, rows))


def _costs(client: Client, shown: Round, wanted: Wanted, asked: Asked) -> Checked:
    """Return the costs of statements in a grant, after all that was asked of it."""
    rho, error = _price(asked)
    found = client.grant_costs(shown.id, wanted.statements, rho=rho, error=error)
    rows = [
        [str(place), in_rho(each.cost), *shown_errors(each)] for place, each in enumerate(found.statements, start=1)
    ]
    together = f"Together rho {in_rho(found.at_most)}, of rho {in_rho(found.left)} that is left."
    heads = ("statement", "rho", *SHOWN)
    return Checked(wanted.understood, (together,), plain_table(heads, rows))


def _ask_one_by_one(desk: Desk, shown: Round, wanted: Wanted, asked: Asked) -> Response:
    """Asks in a session or of a grant, on a page that shows how many are answered."""
    rho, error = _price(asked) if shown.grant is not None else (None, None)
    unprotected = asked.text("accept_unprotected") == "yes"
    client, token = desk.analyst, secrets.token_hex(8)

    def work(job: Job) -> None:
        parts: list[Answers] = []
        given = client.ask(
            shown.id,
            wanted.given,
            after=None,
            window=WINDOW,
            accept_unprotected=unprotected,
            rho=rho,
            error=error,
        )
        for each in given:
            parts.append(each.results.answers)
            job.tell("answered", len(parts), len(wanted.statements))
        desk.kept[("answers", token)] = _tables(client, shown, wanted, parts)
        job.verdict = f"{counted(len(parts), 'statement')} answered."

    title = f"Ask {counted(len(wanted.statements), 'statement')}"
    return desk.start(Job(title, f"/rounds/{shown.id}/answers/{token}", "Read the answers"), work)


def _tables(client: Client, shown: Round, wanted: Wanted, parts: Sequence[Answers]) -> tuple[AnsweredTable, ...]:
    dataset = client.dataset(shown.terms.dataset, shown.dataset_version)
    labels = Labels(dataset.schema, wanted.statements)
    results = Results(shown.id, Answers.join(parts), labels)
    if wanted.questions is None:
        return (answered_table("All answers", results.frame()),)
    frames = wanted.questions.answers(results, dataset.records)
    return tuple(answered_table(sql, frame) for sql, frame in zip(wanted.understood, frames, strict=True))


def _price(asked: Asked) -> tuple[float | None, float | None]:
    """What each statement may cost: rho, or the wanted error."""
    rho = asked.number("rho") if asked.text("rho").strip() else None
    return rho, asked.number("error") if asked.text("error").strip() else None
