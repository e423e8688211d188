"""What operators type as the terms of a round or of a session: each option once, and the terms made of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.dangers import Accept
from equipoise.commands.options import TIME_FORMATS
from equipoise.commands.planners import ChooseBy, ChooseByOption, PriorOption
from equipoise.commands.shares import SHARE, parse_shares
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, SessionTerms, Terms
from equipoise.queries.strict_json import parse_json
from equipoise.queries.text_file import read_text

Dataset = Annotated[str, typer.Argument(help="The dataset's name.")]
DataDelta = Annotated[float, typer.Option(help="The delta of the data epsilon.")]
AnalystDelta = Annotated[float, typer.Option(help="The delta of the analyst epsilon.")]
Unit = Annotated[
    str,
    typer.Option(
        help="What is protected from other analysts: one statement (query), or all of an analyst (analyst)."
    ),
]
Beta = Annotated[float, typer.Option(help="The probability that any truth lies outside its interval.")]
ReleaseGrid = Annotated[
    int, typer.Option(help="Results open at multiples of this many seconds since 1970; 0: the server's setting.")
]


@dataclass(frozen=True, kw_only=True)
class RoundOptions:
    """The options that say what a round is to be."""

    dataset: Dataset
    share: Annotated[
        list[str],
        typer.Option(
            "--share",
            metavar=SHARE,
            help="What one analyst may ask, such as AA=100/240/120; once for each analyst. Queries count the "
            "cells of marginals; left out, they are as many as the statements. The sensitivity is the sum of 1 "
            "for each condition and 2 for each marginal; left out or 0, all may be marginals, which can make noise "
            "larger. The support is how many records of the universe one query may cover or leave out, "
            "whichever are fewer; left out or 0, half of the universe, and histogram promises less for it. "
            "The ways are how many attributes one statement may be about together, conditions included; left out "
            "or 0, all, and then auto answers from no standing measurement that leaves any table out.",
        ),
    ]
    data_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that the round may cost the people in the table.")
    ]
    data_delta: DataDelta
    analyst_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that the round may cost any one analyst.")
    ]
    analyst_delta: AnalystDelta = 1e-6
    unit: Unit = "query"
    beta: Beta = 0.05
    mechanism: Annotated[
        str,
        typer.Option(help="A mechanism's name, or auto, which chooses one."),
    ] = "auto"
    choose_by: ChooseByOption = ChooseBy.EXPECTED
    prior: PriorOption = None
    options: Annotated[
        str, typer.Option(help='Options of the mechanism, a JSON object; {"sums": true} lets auto answer sums.')
    ] = ""
    close: Annotated[
        datetime | None,
        typer.Option(
            "--close",
            formats=TIME_FORMATS,
            help="When the round closes, such as 2030-01-31T18:00Z: from then on the server seals, runs and "
            "releases it by itself. [default: each step is asked for]",
            show_default=False,
        ),
    ] = None
    release_grid: ReleaseGrid = 0
    accept: Accept = None

    def terms(self) -> Terms:
        """Make the terms of a round. Raises `InvalidArgument` naming the option."""
        analysts = Budget(self.analyst_epsilon, self.analyst_delta)
        return _terms(self, self.choose_by.mechanism(self.mechanism), analysts, _options(self), None)


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The options that say what a session is to be."""

    dataset: Dataset
    share: Annotated[
        list[str],
        typer.Option(
            "--share",
            metavar="ANALYST=STATEMENTS[/QUERIES]",
            help="What one analyst may ask, such as AA=100/240; once for each analyst. Queries count the cells of "
            "marginals; left out, they are as many as the statements.",
        ),
    ]
    mechanism: Annotated[
        str,
        typer.Option(
            help="online: smallest errors, but analysts are not protected from one another. online_private: they "
            "are. low_sensitivity: they are, and medians, variances and the like can be asked."
        ),
    ]
    data_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that the session may cost the people in the table.")
    ]
    data_delta: DataDelta
    analyst_epsilon: Annotated[
        float | None,
        typer.Option(
            help="The largest epsilon that the session may cost any one analyst. "
            "[default: none, where analysts are not protected]",
            show_default=False,
        ),
    ] = None
    analyst_delta: AnalystDelta = 1e-6
    length: Annotated[
        int,
        typer.Option(
            min=0,
            help="How many statements there are in all, or, where analysts are protected, how many turns; 0: as "
            "many as the shares allow together.",
        ),
    ] = 0
    turn_seconds: Annotated[
        int,
        typer.Option(
            min=0,
            help="How long a turn takes, where analysts are protected: each has one statement a turn, and answers "
            "come to all at once.",
        ),
    ] = 0
    ending: Annotated[
        Ending,
        typer.Option(
            help="What happens to statements after the updates are used up: hypothesis, answers without an "
            "interval, or stop, refusals."
        ),
    ] = Ending.HYPOTHESIS
    candidates: Annotated[
        Path | None,
        typer.Option(
            help="For low_sensitivity without a prior: a JSON file with the list of candidate databases, such as "
            '[{"cells": [0, 7], "counts": [120, 380]}, ...]: universe cells and how many records each holds. '
            "Everybody sees them, so they must not come from the data. --options must then give the sensitivity."
        ),
    ] = None
    unit: Unit = "query"
    beta: Beta = 0.05
    prior: PriorOption = None
    options: Annotated[
        str,
        typer.Option(
            help='Options of the mechanism, a JSON object: {"updates": 40} for online, {"epochs": 4} for '
            'online_private, {"sensitivity": "1/1000"} for low_sensitivity. docs/session-mechanisms.md lists them.'
        ),
    ] = ""
    close: Annotated[
        datetime | None,
        typer.Option(
            "--close",
            formats=TIME_FORMATS,
            help="When the session closes, such as 2030-01-31T18:00Z: from then on the server seals, runs and "
            "releases it by itself. [default: after its last turn; without turns when it is asked for]",
            show_default=False,
        ),
    ] = None
    release_grid: ReleaseGrid = 0
    accept: Accept = None

    def terms(self) -> Terms:
        """Make the terms of a session. Raises `InvalidArgument` naming the option or the file."""
        options = _options(self)
        if self.candidates is not None:
            options |= {"candidates": parse_json(read_text(self.candidates), str(self.candidates))}
        analysts = None if self.analyst_epsilon is None else Budget(self.analyst_epsilon, self.analyst_delta)
        return _terms(
            self, self.mechanism, analysts, options, SessionTerms(self.length, self.turn_seconds, self.ending)
        )


def _options(given: RoundOptions | SessionOptions) -> dict[str, object]:
    """Make the mechanism's options of what is said as JSON and by options of the command."""
    options = parse_options(given.options)
    if given.prior is not None:
        if "prior" in options:
            raise InvalidArgument("--options", "prior is also what --prior says")
        options["prior"] = given.prior
    return options


def _terms(
    given: RoundOptions | SessionOptions,
    mechanism: str,
    analyst_budget: Budget | None,
    options: dict[str, object],
    session: SessionTerms | None,
) -> Terms:
    """Make terms of what both kinds of options say alike, and of the rest."""
    return Terms(
        dataset=given.dataset,
        shares=parse_shares(given.share),
        data_budget=Budget(given.data_epsilon, given.data_delta),
        analyst_budget=analyst_budget,
        unit=given.unit,
        beta=given.beta,
        mechanism=mechanism,
        options=options,
        close_time=given.close,
        release_grid_seconds=given.release_grid,
        session=session,
        accepted=tuple(given.accept or ()),
    )


def parse_options(text: str, field: str = "--options") -> dict[str, object]:
    """Return the options of a mechanism, a JSON object. Raises `InvalidArgument`.

    Args:
        text: the object; empty for none.
        field: what errors call it.
    """
    options = parse_json(text or "{}", field)
    if not isinstance(options, dict):
        raise InvalidArgument(field, 'must be a JSON object, such as {"play": "sampled"}')
    return options
