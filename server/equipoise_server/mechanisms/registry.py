"""The registry of mechanisms: those of rounds and those of sessions, by name."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import AUTO, AUTO_BY_PROMISE, MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.checking import ANSWERING_SUMS, check_no_sums
from equipoise_server.mechanisms.choice import by_expected_error, by_promise
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism
from equipoise_server.mechanisms.histogram.mechanism import Histogram
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN, LAPLACE
from equipoise_server.mechanisms.interface import Mechanism
from equipoise_server.mechanisms.low_sensitivity.mechanism import LowSensitivity
from equipoise_server.mechanisms.multiplicative_weights.mechanism import MultiplicativeWeights
from equipoise_server.mechanisms.online.interface import SessionMechanism
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online_private.mechanism import OnlinePrivate
from equipoise_server.mechanisms.planner import Auto
from equipoise_server.mechanisms.pooled.mechanism import Pooled
from equipoise_server.mechanisms.pooled.mechanism import check_workload as check_pooled
from equipoise_server.mechanisms.prior.choice import StartsFromPrior
from equipoise_server.mechanisms.projection.mechanism import Projection
from equipoise_server.mechanisms.small_db.mechanism import SmallDatabase
from equipoise_server.mechanisms.standing.measurement import Measurement
from equipoise_server.mechanisms.standing.mechanism import Standing, ToldStanding
from equipoise_server.mechanisms.standing.mechanism import check_workload as check_told

MECHANISMS: dict[str, Mechanism] = {
    "equilibrium": Equilibrium(),
    "pooled": Pooled(),
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "histogram": Histogram(),
    "small_db": SmallDatabase(),
    "projection": Projection(),
    "multiplicative_weights": MultiplicativeWeights(),
}
# A measurement has no shares, so no planner asks for one. `standing` is asked where there is a measurement, and
# only if it refuses no statement that the shares allow.
STANDING_MECHANISMS: dict[str, Mechanism] = {"measurement": Measurement(), "standing": Standing()}
# Mechanisms that answer each analyst from its own workload, or all analysts from one table of noisy counts: their
# randomness is bound to no other workload. Every other mechanism's is bound to all workloads of its round.
SEPARATE = frozenset({"laplace", "gaussian", "histogram", "small_db", "projection", "multiplicative_weights"})
_PLANNED: dict[str, Mechanism] = MECHANISMS | {"standing": ToldStanding()}
PLANNERS = {
    AUTO: Auto(_PLANNED, AUTO, by_expected_error),
    AUTO_BY_PROMISE: Auto(_PLANNED, AUTO_BY_PROMISE, by_promise),
}
SESSION_MECHANISMS: dict[str, SessionMechanism] = {
    "online": Online(),
    "online_private": OnlinePrivate(),
    "low_sensitivity": LowSensitivity(),
    "grant": GrantMechanism(),
}


def mechanism(name: str) -> Mechanism:
    """Return the round mechanism called `name`, or the planner by either of its names. Raises `InvalidArgument`."""
    if name in PLANNERS:
        return PLANNERS[name]
    if name in SESSION_MECHANISMS:
        raise InvalidArgument("mechanism", f"{name} answers sessions, not rounds; open a session with it")
    there = MECHANISMS | STANDING_MECHANISMS
    if name not in there:
        raise InvalidArgument("mechanism", f"unknown; there is auto, auto_by_promise, {', '.join(sorted(there))}")
    return there[name]


def session_mechanism(name: str) -> SessionMechanism:
    """Return the session mechanism called `name`. Raises `InvalidArgument`."""
    if name in MECHANISMS or name in PLANNERS:
        raise InvalidArgument("mechanism", f"{name} answers rounds, not sessions; open a round with it")
    if name not in SESSION_MECHANISMS:
        raise InvalidArgument("mechanism", f"unknown; there is {', '.join(sorted(SESSION_MECHANISMS))}")
    return SESSION_MECHANISMS[name]


def may_start_from_measurement(name: str) -> bool:
    """Return whether a mechanism of this name, or one that a planner of this name asks, may start from a prior."""
    asked = MECHANISMS.values() if name in PLANNERS else [(MECHANISMS | SESSION_MECHANISMS).get(name)]
    return any(isinstance(each, StartsFromPrior) for each in asked)


def check_workload(plan: MechanismPlan, workload: CompiledWorkload) -> None:
    """Raise `InvalidArgument`, naming the statement, where the planned mechanism cannot answer a workload."""
    if plan.mechanism not in ANSWERING_SUMS:
        check_no_sums(plan.mechanism, workload)
    if plan.mechanism == Pooled.name:
        check_pooled(plan, workload)
    if plan.mechanism == Standing.name:
        check_told(plan, workload)
