"""The plan of a session in epochs: epochs, targets, hypotheses, thresholds, noise and half-widths.

There are places for all statements that may come, so that every answer is certified. The session learns as much as
the analysts' budget allows, which costs the data nothing. Where so many fresh answers leave no useful half-width,
there are fewer places: certified answers are useful then, but answers after the last epoch are not certified.

HRU Theorem 5.2 proves that fewer places are enough because of what is learnt, but not usefully for any size that a
session may have: docs/session-mechanisms.md shows the resulting half-widths.

How epochs, rates and hypotheses are chosen among what the analysts' budget allows rests on no promise: by the mean
regret of multiplicative weights over the epochs and how far a hypothesis of so many records strays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from equipoise.errors import InvalidArgument
from equipoise_server.mechanisms.budget_rounding import EPSILON_BITS
from equipoise_server.mechanisms.epochs import cost
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import DIRECTION_BITS
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.options import Limit, real
from equipoise_server.mechanisms.repair.private_weights import SCORE_ROUNDING
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid
from equipoise_server.randomness.exponential import UNIT_BITS

MAX_SLOTS = 1 << 24  # noise for every one of them is drawn, asked in or not
MAX_RECORDS = 1 << 16  # of a hypothesis
USUAL_EPOCHS = tuple(2**power for power in range(1, 9))
RATES = tuple(2.0 ** (power / 2) for power in range(-12, 7))
ENDING_PART = 1 / 4  # of the analysts' epsilon
MAX_MOVED_NATS = 1 << 13  # nats that all directions together may move an exponent by, either way: within 64 bits
MAX_USEFUL_WIDTH = 1 / 4  # an error that is worth certifying
MIN_PLACES = 1 << 6
OPTIONS = {
    "epochs": Limit(1, 2**14, whole=True),
    "target": Limit(1, 2**40, whole=True),
    "beyond": Limit(1, 2**40, whole=True),
    "records": Limit(1, MAX_RECORDS, whole=True),
    "rate": Limit(0, 64),
    "ending_epsilon": Limit(1e-6, 50),
    "test_epsilon": Limit(1e-6, 50),
    "variance": Limit(1e-6, 2**40),
    "threshold": Limit(0, 1),
}


@dataclass(frozen=True)
class Learning:
    """How a session learns: `rate` is what all positives of one target together move an exponent by at most.

    `records`: drawn for each hypothesis after the first; 0 where the first one stays.
    """

    epochs: int
    target: int
    beyond: int
    records: int
    rate: float


def plan_epochs(setting: PublicParameters, session: Session) -> EpochParameters:
    """Return the parameters with the smallest half-width. Raises `InvalidArgument` or `BudgetExhausted`."""
    check_session(setting, session)
    ending = ending_epsilon(setting)
    places, tried = session.statements, list[EpochParameters]()
    while not tried or (promised(tried[-1]) > MAX_USEFUL_WIDTH and places >= 4 * MIN_PLACES):
        tried.append(filled_in(setting, session, ending, learning_with(setting, session, ending, places)))
        places //= 4
    return min(tried, key=promised)


def promised(parameters: EpochParameters) -> float:
    """Return the largest half-width of any certified answer."""
    return max(parameters.certified_half_width, *parameters.noise_half_widths) / 2.0**GRID_BITS


def uncertified_cells(setting: PublicParameters, session: Session, parameters: EpochParameters) -> int:
    """Return a bound on the cells that are asked after the last epoch; it holds with probability `1 - beta`."""
    early = cost.ends_early(parameters.ending_epsilon, parameters.epochs, session.slots, Fraction(setting.beta) / 8)
    answered = parameters.epochs * max(0, parameters.target - early)
    return 0 if answered >= session.statements else session.cells - answered


def straying(session: Session, records: int, chance: Fraction) -> float:
    """Return how far `records` drawn answer any cell from the law they were drawn from, but for `chance`."""
    return math.sqrt(math.log(2 * session.cells / float(chance)) / (2 * records))


def learning_with(setting: PublicParameters, session: Session, ending: Fraction, places: int) -> Learning:
    """Return the epochs, rate and records that should learn most, at `ending` epsilon and `places` in all."""
    plans = []
    for epochs in forced(setting, "epochs", USUAL_EPOCHS):
        beyond = int(forced(setting, "beyond", (cost.places_beyond(setting, ending, int(epochs)),))[0])
        early = cost.ends_early(ending, int(epochs), session.slots, Fraction(setting.beta) / 8)
        # Enough targets for all statements; or, for fewer places, so many that their caps keep within them.
        usual = -(-places // int(epochs)) + early
        if places < session.statements:
            usual = max(places // int(epochs) - beyond, early + 1)
        target = int(forced(setting, "target", (usual,))[0])
        for rate in forced(setting, "rate", RATES):
            affordable = affordable_records(setting, ending, int(epochs), target, rate)
            records = int(forced(setting, "records", (max(1, affordable),))[0])
            # An epoch that never ends teaches nothing.
            ended = min(epochs, session.statements / target)
            unlearnt = math.log(session.universe) / (max(rate, 1e-9) * ended) + rate / 8
            made = Learning(int(epochs), target, beyond, records, rate)
            plans.append((affordable < records, unlearnt + straying(session, records, Fraction(1, 2)), made))
    return min(plans, key=lambda each: each[:2])[2]


def affordable_records(setting: PublicParameters, ending: Fraction, epochs: int, target: int, rate: float) -> int:
    """Return the most records of each of `epochs` hypotheses, at this `ending` epsilon, `rate` and `target`."""
    if epochs == 1:
        return 1
    drawing = (epochs - 1) * cost.drawing_rho(1, exponent_step(rate, target))
    return int(min(MAX_RECORDS, cost.records_rho(setting, ending) // drawing)) if drawing else MAX_RECORDS


def exponent_step(rate: float, target: int) -> int:
    """Return `rate` over `target`, of each direction, in the exponents' units, rounded down."""
    return math.floor(Fraction(rate) * (1 << (UNIT_BITS - DIRECTION_BITS)) / target)


def filled_in(setting: PublicParameters, session: Session, ending: Fraction, learning: Learning) -> EpochParameters:
    """Tests, noise and half-widths for a way of learning."""
    scale, beta, options = session.scale, Fraction(setting.beta), setting.options
    cap = learning.target + learning.beyond
    positives = min(session.statements, learning.epochs * cap)
    step = exponent_step(learning.rate, learning.target)
    if positives * step > MAX_MOVED_NATS << (UNIT_BITS - DIRECTION_BITS):
        problem = f"could move exponents by more than {MAX_MOVED_NATS} nats; use less, or a larger target"
        raise InvalidArgument("options.rate", problem)
    epsilon, noise = cost.tests_and_answers(setting, session, positives)
    if "variance" in options:
        noise = GaussianNoise(Fraction(real(options, "variance", 1)))
    # Twice what an answer's noise usually is.
    usual = 2 * math.sqrt(noise.variance * session.max_l1_sensitivity) * scale.sensitivity / scale.units
    guard = math.ceil(min(1.0, usual) * 2**GRID_BITS)
    parameters = EpochParameters(
        scale=scale,
        epochs=learning.epochs,
        target=learning.target,
        cap=cap,
        ending_epsilon=ending,
        records=learning.records,
        step=step,
        threshold=0,
        test_epsilon=on_epsilon_grid(real(options, "test_epsilon", float(epsilon))),
        noise=noise,
        guard=guard,
        certified_half_width=0,
        noise_half_widths=(),
    )
    laws = [parameters.answer_noise(l1_sensitivity) for l1_sensitivity in range(1, session.max_l1_sensitivity + 1)]
    in_all = scale.units << SCORE_BITS
    # Seldom positive where the hypothesis is right, or as near to it as its records allow.
    threshold = parameters.test_noise.quantile(Fraction(positives, 8 * session.statements)) + 1
    if positives < session.statements and learning.records:
        threshold += math.ceil(in_all / math.sqrt(learning.records))
    if "threshold" in options:
        threshold = math.ceil(real(options, "threshold", 0) * in_all)
    # beta is shared out: half to the tests, a quarter to the answers' noise, the rest to epochs that end early.
    certified = threshold + parameters.test_noise.quantile(beta / 2 / session.statements) + SCORE_ROUNDING
    return replace(
        parameters,
        threshold=threshold,
        certified_half_width=half_width_on_grid(certified, in_all),
        noise_half_widths=tuple(
            half_width_on_grid(law.quantile(beta / 8 / session.cells), scale.units) for law in laws
        ),
    )


def ending_epsilon(setting: PublicParameters) -> Fraction:
    """Of the count test; on its grid."""
    budget = cost.analyst_budget(setting)
    usual = ENDING_PART * budget.epsilon
    return on_epsilon_grid(real(setting.options, "ending_epsilon", usual))


def on_epsilon_grid(epsilon: float) -> Fraction:
    """Rounded down, to one unit at least."""
    return Fraction(max(1, math.floor(epsilon * 2**EPSILON_BITS)), 2**EPSILON_BITS)


def forced(setting: PublicParameters, name: str, usual: tuple[float, ...]) -> tuple[float, ...]:
    """Return the one value to which the options force `name`, or the `usual` ones."""
    return (real(setting.options, name, 0),) if name in setting.options else usual


def check_session(setting: PublicParameters, session: Session) -> None:
    """Refuse settings that no session in epochs can serve. Raises `InvalidArgument`, naming the field."""
    if setting.unit != "query":
        problem = "must be query: a session in epochs hides one statement from many analysts, not a whole analyst"
        raise InvalidArgument("unit", problem)
    if session.slots > MAX_SLOTS:
        problem = f"has {session.slots:,} slots, one for each share in each turn; there may be {MAX_SLOTS:,}"
        raise InvalidArgument("session.length", problem)
