"""What the log says of every round: its steps, in the only order in which they can follow one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.auditing.steps import Fields, Step
from equipoise.errors import VerificationFailed


@dataclass
class RecordedRound:
    """A round's steps. `ended`: its release or abort."""

    opened: Step
    sealed: Step | None = None
    ended: Step | None = None
    reads: list[Fields] = field(default_factory=list)
    destroyed: Fields | None = None

    @property
    def terms(self) -> Fields:
        """Its public parameters."""
        return self.opened.first["round"]

    @property
    def session(self) -> Fields | None:
        """What makes it a session, in which statements are answered while it is open; None where it is none."""
        return self.terms.get("session")

    @property
    def protects_analysts(self) -> bool:
        """Whether there is a budget for what its analysts may learn of one another, or only one of them."""
        return self.terms["analyst_budget"] is not None or len(self.analysts) == 1

    @property
    def analysts(self) -> list[str]:
        """Who has a share, in order."""
        return [share["analyst"] for share in self.opened.first["plan"]["terms"]["shares"]]

    @property
    def state(self) -> str:
        """As far as the log knows."""
        if self.ended is not None:
            return self.ended.kind.removeprefix("round-")
        return "open" if self.sealed is None else "sealed"


@dataclass
class Recorded:
    """Everything of the log by name and by id."""

    datasets: dict[str, Step] = field(default_factory=dict)
    rounds: dict[str, RecordedRound] = field(default_factory=dict)


def read_rounds(steps: Iterable[Step]) -> Recorded:
    """The rounds of a log. Raises `VerificationFailed` naming the first step that cannot follow those before it."""
    recorded: Recorded | None = None
    for step in steps:
        if (step.kind == "log-started") != (recorded is None):
            raise VerificationFailed(f"{step}: a log is started by its first entry, and by no other")
        if recorded is None:
            recorded = Recorded()
        _take(recorded, step)
    if recorded is None:
        raise VerificationFailed("the log is empty")
    return recorded


def _take(recorded: Recorded, step: Step) -> None:
    match step.kind:
        case "dataset-registered":
            name = step.first["dataset"]["dataset"]
            if name in recorded.datasets or step.first["data"]["dataset"] != name:
                raise VerificationFailed(f"{step}: the dataset {name!a} is registered twice, or under two names")
            recorded.datasets[name] = step
        case "round-opened":
            _open(recorded, step)
        case "round-sealed":
            held = _round_of(recorded, step, ("seal", "reservation"), "open")
            _require_root(step, step.first["seal"]["opened_root"], held.opened)
            held.sealed = step
        case "round-released":
            held = _round_of(recorded, step, ("release", "spending"), "sealed")
            _require_root(step, step.first["release"]["sealed_root"], held.sealed)
            held.ended = step
        case "round-aborted":
            held = _round_of(recorded, step, ("abort", "settlement"), "open", "sealed")
            _require_root(step, step.first["abort"]["previous_root"], held.sealed or held.opened)
            held.ended = step
        case "seed-read":
            # Whoever knew a seed before could have chosen a nonce, or a workload, by it.
            held = _round_of(recorded, step, ("access",), "released", "aborted")
            if held.destroyed is not None:
                raise VerificationFailed(f"{step}: a seed was read after it was destroyed")
            held.reads.append(step.first["access"])
        case "seed-destroyed":
            held = _round_of(recorded, step, ("destruction",), "released", "aborted")
            held.destroyed = step.first["destruction"]
        case _:
            pass


def _open(recorded: Recorded, step: Step) -> None:
    told, plan = step.first["round"], step.first["plan"]
    dataset = recorded.datasets.get(told["dataset"])
    if dataset is None:
        raise VerificationFailed(f"{step}: the dataset {told['dataset']!a} is not registered before")
    _require_root(step, told["dataset_root"], dataset)
    if told["round"] in recorded.rounds or plan["round"] != told["round"]:
        raise VerificationFailed(f"{step}: the round {told['round']} is opened twice, or under two ids")
    if told["records"] != dataset.first["dataset"]["records"]:
        raise VerificationFailed(f"{step}: the number of records is not the dataset's")
    shares = plan["terms"]["shares"]
    _require_analysts(step, told["round"], [share["analyst"] for share in shares])
    for share, item in zip(shares, step.further, strict=True):
        if item is not None and any(item[name] != number for name, number in share.items()):
            raise VerificationFailed(f"{step}: the share of {share['analyst']!a} is not the plan's")
    recorded.rounds[told["round"]] = RecordedRound(step)


def _round_of(recorded: Recorded, step: Step, names: tuple[str, ...], *states: str) -> RecordedRound:
    """The round that all these items of a step are about, which must be in one of these states."""
    ids = {step.first[name]["round"] for name in names}
    held = recorded.rounds.get(min(ids))
    if len(ids) != 1 or held is None:
        raise VerificationFailed(f"{step}: the round {min(ids)} is not opened before")
    if held.state not in states:
        raise VerificationFailed(f"{step}: comes while the round is {held.state}, and not {' or '.join(states)}")
    if step.kind in ("round-sealed", "round-released", "round-aborted"):
        _require_analysts(step, min(ids), held.analysts)
    return held


def _require_analysts(step: Step, round_id: str, analysts: list[str]) -> None:
    """One item of each share, in the shares' order, whatever its analyst has done."""
    if len(set(analysts)) != len(analysts) or len(step.further) != len(analysts):
        raise VerificationFailed(f"{step}: has not one item for each share")
    for item, analyst in zip(step.further, analysts, strict=True):
        if item is not None and (item["analyst"], item["round"]) != (analyst, round_id):
            raise VerificationFailed(f"{step}: the item of {analyst!a} is missing, or in another's place")


def _require_root(step: Step, told: str, before: Step | None) -> None:
    if before is None or told != before.root.hex():
        raise VerificationFailed(f"{step}: does not name the root of {before}")
