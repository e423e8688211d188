"""Reading what a round has released: answers, tables of answers, the synopsis, and their files."""

from __future__ import annotations

import math
from itertools import islice

from starlette.responses import Response

from equipoise.commands.printing import counted
from equipoise.console.analyst.frames_shown import answered_table
from equipoise.console.analyst.rounds import own_sql
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, download, scratch
from equipoise.console.rendering import Part, plain_table
from equipoise.errors import InvalidArgument, NotFound, WrongState
from equipoise.frames import Frame
from equipoise.model.rounds import Round, RoundState
from equipoise.results import Results
from equipoise.synopsis import write_synopsis
from equipoise.wire.workloads import workload_from_bytes

ROWS = 100
SYNOPSIS_ROWS = 20
KINDS = ("csv", "json", "parquet")


def results(desk: Desk, asked: Asked) -> Response:
    """One page of the answers, as a table and as a chart with intervals."""
    shown, found = results_of(desk, asked.path["round_id"])
    counts = asked.query.get("counts") == "yes"
    frame = _frame(desk, shown, found, counts)
    last = max(1, math.ceil(len(frame) / ROWS))
    if asked.page > last:
        raise NotFound(f"there are {counted(last, 'page')} of results")
    first = (asked.page - 1) * ROWS
    part: Part[object] = Part((), asked.page, asked.page < last, first, last, {"counts": "yes"} if counts else {})
    return desk.show(
        "analyst/results.html",
        section="My rounds",
        shown=shown,
        answered=answered_table("Results", frame, first, ROWS),
        part=part,
        total=len(frame),
        counts=counts,
        kinds=KINDS,
        ways={method.label.replace("_", " "): many for method, many in found.counted().items() if many},
        sql=own_sql(desk, shown.id),
        can_ask_sql=shown.terms.session is None,
    )


def results_file(desk: Desk, asked: Asked) -> Response:
    """All answers as a file: the bytes that `equipoise results --out` writes."""
    shown, found = results_of(desk, asked.path["round_id"])
    name, _, kind = asked.path["file"].rpartition(".")
    if name not in ("results", "counts") or kind not in KINDS:
        raise NotFound("there is no such file")
    return frame_file(_frame(desk, shown, found, name == "counts"), f"{name}-{shown.id}.{kind}")


def tables(desk: Desk, asked: Asked) -> Response:
    """The answers to the questions that were submitted, a table each; or one of them as a file."""
    client, round_id = desk.analyst, asked.path["round_id"]
    shown, sql = client.round(round_id), asked.text("sql")
    questions = client.sql(round_id, asked.needed("sql"))
    frames = client.frames(round_id, questions, fractions=asked.text("fractions") == "yes")
    if asked.text("file"):
        place, _, kind = asked.text("file").partition(".")
        if kind not in KINDS or not place.isdecimal() or not int(place) < len(frames):
            raise InvalidArgument("file", "must be the number of a question and csv, json or parquet")
        return frame_file(frames[int(place)], f"answer-{int(place) + 1}-{round_id}.{kind}")
    answered = [answered_table(text, frame) for text, frame in zip(questions.understood, frames, strict=True)]
    return desk.show("analyst/tables.html", section="My rounds", shown=shown, tables=answered, sql=sql)


def synopsis(desk: Desk, asked: Asked) -> Response:
    """The first records of the synopsis."""
    client = desk.analyst
    shown = client.round(asked.path["round_id"])
    schema = client.schema_of(shown)
    parts = client.stream_synopsis(shown.id)
    try:
        first = next(parts)
    finally:
        parts.close()  # type: ignore[attr-defined]  # it is a generator, and the rest is not wanted
    records = islice(first.synopsis.codes.T.tolist(), SYNOPSIS_ROWS)
    rows = [
        [each.categories[code] for each, code in zip(schema.attributes, record, strict=True)] for record in records
    ]
    return desk.show(
        "analyst/synopsis.html",
        section="My rounds",
        shown=shown,
        total=first.total,
        records=plain_table(schema.names, rows),
    )


def synopsis_file(desk: Desk, asked: Asked) -> Response:
    """The whole synopsis: the bytes that `equipoise synopsis --out` writes."""
    client, kind = desk.analyst, asked.text("kind")
    if kind not in ("csv", "parquet"):
        raise InvalidArgument("kind", "must be csv or parquet")
    shown = client.round(asked.path["round_id"])
    name = f"synopsis-{shown.id}.{kind}"
    with scratch(name) as path:
        write_synopsis(client.stream_synopsis(shown.id), client.schema_of(shown), path, lambda _done, _of: None)
        return download(path.read_bytes(), name)


def results_of(desk: Desk, round_id: str) -> tuple[Round, Results]:
    """Returns a round and all of the caller's answers, labelled by its own workload as the custodian has it.

    Args:
        desk: the user's.
        round_id: a round or session that is released.

    Raises:
        WrongState: the results cannot be read yet, or the round was aborted.
    """
    client = desk.analyst
    shown = client.round(round_id)
    if shown.state is RoundState.ABORTED:
        raise WrongState(f"the round was aborted: {shown.abort_reason}")
    if shown.state is not RoundState.RELEASED:
        raise WrongState(f"the round is {shown.state}; results can be read when it is released")

    def read() -> Results:
        if shown.terms.session is not None:
            return client.results(round_id, client.session_statements(round_id))
        _, workload = client.evidence(round_id)
        return client.results(round_id, () if workload is None else workload_from_bytes(workload))

    return shown, desk.remembered(("results", round_id), read)


def frame_file(frame: Frame, name: str) -> Response:
    """Returns a table as a file.

    Args:
        frame: the table.
        name: of the file, whose ending says its kind.
    """
    with scratch(name) as path:
        frame.write(path)
        return download(path.read_bytes(), name)


def _frame(desk: Desk, shown: Round, found: Results, counts: bool) -> Frame:
    def make() -> Frame:
        if not counts:
            return found.frame()
        return found.frame(desk.analyst.dataset(shown.terms.dataset, shown.dataset_version).records)

    return desk.remembered(("frame", shown.id, str(counts)), make)
