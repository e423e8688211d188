"""What comes of rounds and of a session that are held with the service: processes, store, log and ledgers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mechanism_values import plan_values, result_rows, synopsis_values
from project_imports import (
    SALT,
    SEED_BINDINGS,
    WORKERS,
    AccountingMethod,
    Bench,
    Budget,
    Bundle,
    CheckFailed,
    Danger,
    Evidence,
    Labels,
    Results,
    SessionTerms,
    Share,
    Statement,
    Synopsis,
    Terms,
    VerifierInputs,
    VerifierKey,
    answers_from_chunk,
    attached,
    chunk_from_bytes,
    read_synopsis,
    record_bytes,
    release_sessions,
    serve_job,
    serve_session,
    statement_to_bytes,
    verify,
    workload_to_bytes,
)
from round_cases import ASKED, ROUND_OPTIONS, SCHEMA, SEED, SOLD, Values, shares_of, table_file


def serve_round(pipe: Any, job: Any) -> None:
    """A round's worker whose mechanism draws from `SEED`."""
    _draw_from_the_seed()
    serve_job(pipe, job)


def serve_seeded_session(pipe: Any, job: Any) -> None:
    """A session's worker whose mechanism draws from `SEED`."""
    _draw_from_the_seed()
    serve_session(pipe, job)


def _draw_from_the_seed() -> None:
    for module, name in SEED_BINDINGS:
        setattr(module, name, lambda *_: SEED)


HELD: dict[str, dict[str, Any]] = {
    "equilibrium for statements": {"mechanism": "equilibrium", "options": ROUND_OPTIONS["equilibrium"][1]},
    "pooled for analysts": {
        "mechanism": "pooled",
        "unit": "analyst",
        "options": {"ways": 2, "synopsis": 512},
        "dataset": "renyi-orders",
    },
    "equilibrium for analysts": {
        "mechanism": "equilibrium",
        "unit": "analyst",
        "options": ROUND_OPTIONS["equilibrium"][0],
    },
}
TURN_SECONDS = 10
PATIENCE = 300.0
SESSION_HELD: dict[str, Any] = {
    "mechanism": "online_private",
    "options": {},
    "session": SessionTerms(length=8, turn_seconds=TURN_SECONDS),
    "shares": (Share("ann", 5, 20), Share("bob", 3, 12)),
}
SESSION_ASKED = {"ann": list(ASKED["ann"][1:]), "bob": list(ASKED["bob"][:2])}
TERMS = Terms(
    dataset="rhos-and-pairs",
    unit="query",
    data_budget=Budget(2.0, 1e-6),
    analyst_budget=Budget(8.0, 1e-5),
    beta=0.05,
    mechanism="gaussian",
    shares=tuple(shares_of(declared=True)),
    options={},
    accepted=(Danger.NOISE, Danger.PROMISE),
)


def held_parts() -> tuple[Values, Values]:
    """Rounds and a session held with the service at a clock of ours: what came of them, and of the accounts."""
    for (module, name), serve in zip(WORKERS, (serve_round, serve_seeded_session), strict=True):
        setattr(module, name, serve)
    with TemporaryDirectory() as directory:
        bench = Bench(Path(directory), f"sqlite:///{directory}/equipoise.db")
        try:
            return _held(bench)
        finally:
            bench.stop()


def _held(bench: Bench) -> tuple[Values, Values]:
    (bench.directory / "data" / "values.csv").write_text(table_file())
    cap = Budget(30.0, 1e-3)
    for name, accounting in (("rhos-and-pairs", AccountingMethod()), ("renyi-orders", AccountingMethod(0, 0))):
        bench.rounds.datasets.register(
            name,
            "values.csv",
            SCHEMA,
            cap,
            cap,
            name,
            accounting=accounting,
            accepted=(Danger.EPSILON, Danger.DELTA),
            people="new",
            new_budgets=name == "renyi-orders",
        )
    accounts: Values = {"when nothing was asked": account_values(bench)}
    session_id = bench.sessions.open(replace(TERMS, **SESSION_HELD), "session").id
    rounds = {}
    for name, changes in HELD.items():
        rounds[name] = bench.rounds.opening.open(replace(TERMS, **changes), name).id
        for analyst in ("ann", "cyd"):  # bob has a share, and does not ask
            workload = workload_to_bytes(ASKED[analyst])
            bench.rounds.submissions.submit(analyst, rounds[name], f"{analyst} {name}", workload, SALT)
        bench.rounds.lifecycle.seal(rounds[name], f"seal {name}")
    accounts["when all is sealed"] = account_values(bench)
    for name, round_id in rounds.items():
        bench.rounds.lifecycle.run(round_id, f"run {name}")
    answered = asked_by_turns(bench, session_id)
    release_sessions(bench, [session_id])
    for name, round_id in rounds.items():
        assert bench.wait(round_id).complete
        bench.rounds.lifecycle.release(round_id, f"release {name}")
    aborted = bench.rounds.opening.open(replace(TERMS, mechanism="laplace"), "aborted").id
    bench.rounds.lifecycle.seal(aborted, "seal the aborted")
    bench.rounds.lifecycle.abort(aborted, "not needed", "abort")
    bench.clock.move(60)
    bench.rounds.schedule.keep()
    accounts["when all is released"] = account_values(bench)
    names = {round_id: name for name, round_id in rounds.items()} | {session_id: "session", aborted: "aborted"}
    accounts["journal"] = journal_values(bench, names)
    found = {name: held_values(bench, round_id, ("ann", "cyd"), ASKED) for name, round_id in rounds.items()}
    found["session"] = held_values(bench, session_id, ("ann", "bob"), SESSION_ASKED)
    found["session"]["slots and answers while it was open, in 2^-40"] = answered
    found["aborted"] = {"bundle of ann": bundle_values(bench, aborted, "ann")}
    return found, accounts


def asked_by_turns(bench: Bench, session_id: str) -> Values:
    """The answers to `SESSION_ASKED`: one statement of each analyst in every second turn, by a clock that waits."""
    streams = {analyst: attached(bench, analyst, session_id) for analyst in SESSION_ASKED}
    answered: Values = {analyst: [] for analyst in SESSION_ASKED}
    stored, end = 0, time.monotonic() + PATIENCE
    for turn in range(max(len(own) for own in SESSION_ASKED.values())):
        asking = {analyst: own[turn] for analyst, own in SESSION_ASKED.items() if turn < len(own)}
        waiting = {
            analyst: streams[analyst].ask(turn + 1, statement_to_bytes(statement))
            for analyst, statement in asking.items()
        }
        stored += len(waiting)
        bench.clock.move(TURN_SECONDS)
        while bench.sessions.progress(bench.rounds.views.get(session_id)).done < stored:
            assert time.monotonic() < end
            time.sleep(0.02)
        bench.clock.move(TURN_SECONDS)
        for analyst, answer in waiting.items():
            told = answer.result(PATIENCE)
            answered[analyst].append([told.slot, _columns(answers_from_chunk(told.chunk))])
    return answered


def _columns(answers: Any) -> list[list[Any]]:
    return [[int(each) for each in row] for row in zip(*answers.answers.columns, strict=True)]


def held_values(
    bench: Bench, round_id: str, analysts: Sequence[str], asked: Mapping[str, Sequence[Statement]]
) -> Values:
    """What one round or session shows of itself, delivers, and proves."""
    record = bench.rounds.views.get(round_id)
    analyst_delta = record.terms.analyst_budget.delta if record.terms.analyst_budget else 0.0
    found: Values = {
        "state": str(record.state),
        "records": record.records,
        "possible records": record.universe_size,
        "plan": plan_values(record.plan, record.terms.data_budget.delta, analyst_delta),
    }
    found["plan"].pop("numbers among its parameters")
    synopsis = released_synopsis(bench, round_id)
    found["synopsis"] = (
        None if synopsis is None else synopsis_values(Synopsis.from_bytes(synopsis, SCHEMA.sizes).cells.tolist())
    )
    for analyst in analysts:
        chunks = [chunk_from_bytes(each) for each in bench.rounds.analyst_views.results(analyst, round_id, 0, 100)]
        labels = Labels(SCHEMA, tuple(asked[analyst]))
        found[f"answers of {analyst}"] = result_rows(Results.collect(round_id, chunks, labels))
        found[f"bundle of {analyst}"] = bundle_values(bench, round_id, analyst, asked[analyst])
    return found


def released_synopsis(bench: Bench, round_id: str) -> bytes | None:
    """The synopsis as a bundle holds it; None where the round has none."""
    with bench.store.read() as connection:
        return read_synopsis(connection, round_id) or None


def bundle_values(bench: Bench, round_id: str, analyst: str, asked: Sequence[Statement] | None = None) -> Values:
    """Which of its numbered checks the bundle of an analyst passes, and at which each way of altering it fails."""
    told = bench.rounds.analyst_views.evidence(analyst, round_id, 0)
    assert told is not None
    evidence = Evidence.from_bytes(told)
    workload = bench.rounds.analyst_views.submitted(analyst, round_id, 0, 1 << 20) if asked else None
    stream = tuple(bench.rounds.analyst_views.results(analyst, round_id, 0, 100)) if asked else ()
    synopsis = released_synopsis(bench, round_id) if asked else None
    bundle = Bundle(evidence, workload, stream, synopsis)
    papers = VerifierInputs([VerifierKey.from_text(key) for key in evidence.keys], statements=asked)
    found: Values = {"checks": checked(bundle, papers)}
    stranger = VerifierKey("equipoise/stranger", papers.keys[0].public)
    records = evidence.records
    cut, turned = (replace(evidence, records=some) for some in (records[:-1], records[::-1]))
    altered = {
        "to a stranger's key": (bundle, replace(papers, keys=[stranger])),
        "to who asked something else": (bundle, replace(papers, statements=[SOLD == "no"])),
        "without its stream": (replace(bundle, stream=()), papers),
        "with another workload": (replace(bundle, workload=workload_to_bytes([SOLD == "no"])), papers),
        "with a synopsis of one record": (replace(bundle, synopsis=bytes(record_bytes(SCHEMA.sizes))), papers),
        "without its last record": (replace(bundle, evidence=cut), papers),
        "with its records exchanged": (replace(bundle, evidence=turned), papers),
    }
    found["altered"] = {name: checked(*each) for name, each in altered.items()}
    return found


def checked(bundle: Bundle, papers: VerifierInputs) -> str:
    """Which checks pass, and which one fails."""
    passed: list[int] = []
    try:
        verify(bundle.to_bytes(), papers, lambda check, _: passed.append(int(check)))
    except CheckFailed as failure:
        return f"{_ranges(passed)} pass, {int(failure.check)} fails"
    return f"{_ranges(passed)} pass"


def _ranges(numbers: Sequence[int]) -> str:
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]} to {run[-1]}" for run in runs) or "none"


def account_values(bench: Bench) -> Values:
    """Every account of both datasets: its cap, what is spent, and what is spent or reserved."""
    found: Values = {}
    for dataset in ("rhos-and-pairs", "renyi-orders"):
        for account in bench.rounds.budgets.accounts(dataset)[0]:
            found[account.name] = {
                "cap": [account.cap.epsilon, account.cap.delta],
                "spent": [account.spent.epsilon, account.spent.delta],
                "spent or reserved": [account.committed.epsilon, account.committed.delta],
                "Renyi order": account.order,
                "divergence and its limit": [account.divergence, account.max_divergence],
            }
    return found


def journal_values(bench: Bench, names: Mapping[str, str]) -> list[list[Any]]:
    """Action, account, round, and the charge as rho, epsilon, delta and divergence, an entry a row."""
    rows: list[list[Any]] = []
    for entry in bench.rounds.budgets.journal(1000)[0]:
        if "/shop" not in entry.account:
            cost, name = entry.cost, names.get(entry.round_id, "")
            rows.append([entry.action, entry.account, name, cost.rho, cost.epsilon, cost.delta, cost.divergence])
    return rows
