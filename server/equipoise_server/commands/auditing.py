"""Putting promises to the proof: a round computed again, and what a mechanism's runs prove of what it hides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.printing import print_line
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.identities import Role
from equipoise.profile.profile import SEED_KEY, read_seed_key
from equipoise_lab.audit.chart import check_chart, write_chart
from equipoise_lab.audit.empirical import audit
from equipoise_lab.audit.neighbours import Instance
from equipoise_lab.audit.report import as_json as audit_as_json
from equipoise_lab.audit.report import print_audit
from equipoise_lab.options import (
    Beta,
    DeltaAnalyst,
    EpsData,
    Play,
    Unit,
    add_option,
    forced_options,
    in_words_of_options,
)
from equipoise_lab.simulation.progress import RunsProgress
from equipoise_server.clock import system_clock
from equipoise_server.commands.printing import DEFAULT_STATE, ERR, OUT, AsJson, State, print_json
from equipoise_server.config_file import load_config
from equipoise_server.datasets.persons.table import records_of
from equipoise_server.datasets.source import source_at
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.replay.replay import Replay
from equipoise_server.replay.report import as_json as replay_as_json
from equipoise_server.replay.report import lines
from equipoise_server.replay.seed import OpenedSeed, seed_in, unsealed
from equipoise_server.replay.stored import StoredRound
from equipoise_server.storage.store import read_only
from equipoise_server.transparency.seed_encryption import system_seeds

OPTION_OF_FIELD = {
    **{name: f"--{name}" for name in ("universe", "records", "analysts", "statements", "runs", "level")},
    "shares": "--analysts, --statements",
    "options.play": "--play",
}


def replay(
    round_id: Annotated[str, typer.Argument(metavar="ROUND", help="The round's id.")],
    state: State = DEFAULT_STATE,
    auditor_key: Annotated[
        Path | None,
        typer.Option(
            help="The auditor's private key, to which the round's seed was sealed. "
            "[default: profiles/auditor/seed.key in the state directory]",
            show_default=False,
        ),
    ] = None,
    seed_file: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a key, a file with 128 hexadecimal digits: the commitment's salt and the seed.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="The table, if it is no longer in the data directory.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a released round again from its data and seed, and compare every message with what was released.

    A server may run meanwhile. That a seed was opened with a key is put on record, as when an auditor reads it;
    with --seed-file nothing is written to the state directory. All that noise decides is
    compared byte for byte, and what is fitted to noisy answers in floating point to 2^-20. Takes as long as the
    round did. Exits with 1 and names the first difference, if there is one.
    """
    if auditor_key is not None and seed_file is not None:
        raise InvalidArgument("--seed-file", "says the same as --auditor-key; give one of them")
    config = load_config(state)
    directory = config.data_path(state)
    with read_only(config.store_url(state)) as store, RunsProgress(1, ERR) as progress:

        def seed_of(commitment: bytes) -> OpenedSeed:
            if seed_file is not None:
                return seed_in(seed_file, commitment)
            private = read_seed_key(auditor_key or state / "profiles" / Role.AUDITOR.value / SEED_KEY)
            guard = Guard(state.absolute() / GUARD_FILE)
            return unsealed(config.store_url(state), guard, round_id, private, commitment, system_clock())

        stored = StoredRound(store, round_id)
        replayed = Replay(
            stored,
            seed_of,
            lambda dataset: records_of(
                source_at(table or directory / dataset.source), dataset.person, dataset.persons
            ),
            progress(0),
        ).run()
    if as_json:
        print_json(replay_as_json(replayed))
    else:
        for line in lines(replayed):
            print_line(line)
    if replayed.difference is not None:
        raise typer.Exit(1)


def empirical(
    mechanism: Annotated[str, typer.Option(help="The mechanism by name.")],
    universe: Annotated[
        str, typer.Option(help="How many categories each attribute has, such as 3x3.", metavar="AxB")
    ] = "3x3",
    records: Annotated[int, typer.Option(help="How many records the table has.")] = 100,
    analysts: Annotated[int, typer.Option(help="How many analysts; the first is the one that changes.")] = 3,
    statements: Annotated[int, typer.Option(help="How many conditions each analyst asks about.")] = 1,
    unit: Unit = "query",
    play: Play = None,
    eps_data: EpsData = 1.0,
    delta_data: Annotated[float, typer.Option(help="Delta of the people in the table.")] = 0.01,
    eps_analyst: Annotated[float, typer.Option(help="Epsilon of the analysts.")] = 1.0,
    delta_analyst: DeltaAnalyst = 0.01,
    beta: Beta = 0.05,
    forced: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE forces a parameter, such as rounds=8; repeat for several."),
    ] = None,
    runs: Annotated[
        int, typer.Option(help="How many runs of each input choose the statistic; as many again test it.")
    ] = 500,
    level: Annotated[
        float, typer.Option(help="The probability with which a sound mechanism may be refuted by chance.")
    ] = 0.001,
    chart: Annotated[
        Path | None,
        typer.Option(
            help="Draw the certified bounds beside the claims into this .svg or .png file.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a mechanism on neighbouring inputs, and certify lower bounds of its epsilons.

    Needs no table and no server: the inputs are tiny and public, made from the options. For the data one record
    changes, for the analysts one statement or one analyst; the others' answers are looked at together.
    Every run has a fresh seed. Exits with 1 if a bound exceeds the claim. A small bound proves nothing.
    """
    if chart is not None:
        check_chart(chart)
    options = forced_options(forced)
    add_option(options, "play", "--play", play)
    instance = Instance(
        universe=universe,
        records=records,
        analysts=analysts,
        statements=statements,
        unit=unit,
        data_budget=Budget(eps_data, delta_data),
        analyst_budget=Budget(eps_analyst, delta_analyst),
        beta=beta,
        options=options,
    )
    try:
        with RunsProgress(1, ERR) as progress:
            result = audit(mechanism, instance, runs, level, system_seeds, progress(0))
    except BudgetExhausted as error:
        raise in_words_of_options(InvalidArgument(*error.message.split(": ", 1)), OPTION_OF_FIELD) from None
    except InvalidArgument as error:
        raise in_words_of_options(error, OPTION_OF_FIELD) from None
    if chart is not None:
        write_chart(result, chart)
    if as_json:
        print_json(audit_as_json(result))
    else:
        print_audit(OUT, result)
    if result.refuted:
        raise typer.Exit(1)
