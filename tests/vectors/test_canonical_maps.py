"""Canonical maps: what is hashed, stored or compared follows from keys that are written out, and no name in code.

`canonical_maps.json` holds the exact text of one value of every map, and its SHA-256.
"""

from __future__ import annotations

import ast
import dataclasses
import json
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from harness import page_reader

import equipoise
import equipoise_server
from equipoise.accounting import (
    ApproximateDpEvent,
    Cost,
    Mixture,
    PureDpEvent,
    RenyiEvent,
    ThresholdTests,
    ZcdpEvent,
    events_to_json,
)
from equipoise.model.accounts import Account, Budget, Danger
from equipoise.model.identities import Role
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.rounds import Ending, MechanismPlan, SessionTerms, Share, Terms
from equipoise.queries.meanings import meaning_of
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single
from equipoise.records import dataset_items, identity_items, item_parts, items, log_items
from equipoise.records.canonical import canonical_json
from equipoise.records.codec import Codec, codec_of
from equipoise.records.record_layouts import ITEMS, NAMES, read_item
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedMeasurement, ReleasedNumbers
from equipoise_server.computation.seed import bound_seed, setting_fields
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.prior_plan import PriorEpochParameters
from equipoise_server.mechanisms.epochs.question import Scale
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters, PriorStart
from equipoise_server.mechanisms.histogram.plan import HistogramParameters
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity.parameters import (
    LowSensitivityParameters,
    PriorStatisticsParameters,
)
from equipoise_server.mechanisms.multiplicative_weights.plan import WeightsParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, LaplaceNoise
from equipoise_server.mechanisms.online.parameters import OnlineParameters
from equipoise_server.mechanisms.pooled.demand import NO_VOTES, Demand
from equipoise_server.mechanisms.pooled.family import Family
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.final_tests import FinalTestParameters
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters
from equipoise_server.mechanisms.small_db.plan import SmallDatabaseParameters
from equipoise_server.mechanisms.standing.measurement import MeasurementParameters
from equipoise_server.mechanisms.standing.plan import StandingParameters
from equipoise_server.rounds.budget_views import ACCOUNT
from equipoise_server.rounds.dataset_versions import NewVersion
from equipoise_server.rounds.new_datasets import NewDataset
from equipoise_server.rounds.opening import open_request
from equipoise_server.rounds.store.rounds import (
    plan_to_json,
    recorded_terms,
    terms_to_json,
)

EXPECTED: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("canonical_maps.json").read_text(encoding="utf-8")
)
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
LAPLACE, GAUSSIAN = LaplaceNoise(HALF), GaussianNoise(Fraction(9, 4))
SHARES = (Share("ann", 2, 3), Share("bob", 4, 5, 6, 7, 2))
BUDGET = Budget(1, 1e-6)
GAME = GameParameters("mixed", 10, 2, 3, 1, 4, 5)
REPAIR = RepairParameters(7, HALF, LAPLACE, {"ann": 1}, 8, (9, 10))
PLACES = AnalystRepairParameters(
    7, HALF, RepairPlaces(1, THIRD, 2), PrivateWeights(3, HALF, THIRD, HALF, 4), 5, 6, 7, 8
)
START = PriorStart(
    PriorParameters(ResidualNoise((2, 3), (), ((0, 1),), (5, 6, 7)), (8,), ReleasedNumbers("r-1", bytes(32))),
    9,
    FinalTestParameters(1, 2, 3, 4, 5, THIRD),
)
EPOCHS = EpochParameters(Scale(1, 2), 3, 4, 5, HALF, 6, 7, -8, THIRD, GAUSSIAN, 9, 10, (11, 12))
NOISE = ResidualNoise((2, 3), (1,), ((0, 1),), (1, 2, 3, 4, 5))
PARAMETERS: dict[str, Any] = {
    "histogram": HistogramParameters(LAPLACE, THIRD),
    "independent noise": NoiseParameters(GAUSSIAN, 4, 5),
    "small database": SmallDatabaseParameters(2, HALF, 3),
    "low sensitivity": LowSensitivityParameters(THIRD, 100, EPOCHS),
    "low sensitivity, prior": PriorStatisticsParameters(
        THIRD, 100, PriorEpochParameters(START.prior, THIRD, 7, EPOCHS)
    ),
    "epochs": EPOCHS,
    "online": OnlineParameters(1, HALF, -2, LAPLACE, 3, 4, (5, 6), True),
    "weights": WeightsParameters(1, HALF, GAUSSIAN, THIRD, 2, 3, -4),
    "equilibrium, query": EquilibriumParameters(GAME, REPAIR, None),
    "equilibrium, analyst": EquilibriumParameters(GAME, PLACES, None),
    "equilibrium, prior": EquilibriumParameters(None, None, START),
    "measurement": MeasurementParameters(NOISE),
    "standing": StandingParameters(ReleasedMeasurement("r-1", bytes(32), NOISE), THIRD, 5),
    "pooled": PooledParameters(Family((2, 3), 2, 6), Demand(1, GAUSSIAN, -2), 3, THIRD, 0.5, 4, 5, None, REPAIR),
    "pooled by residuals": PooledParameters(
        Family((2, 3), 1, 6),
        NO_VOTES,
        3,
        Fraction(1),
        0.5,
        4,
        5,
        ResidualNoise((2, 3), (1,), ((0,), (1,)), (7, 8, 9)),
        None,
    ),
}
PLAN = MechanismPlan("gaussian", "{}", Cost(rho=7), Cost(epsilon=3), 1, 2, 3, 4, 5)
TERMS = Terms(
    "flights",
    SHARES,
    BUDGET,
    None,
    "query",
    0.05,
    "online",
    {"noise": "laplace"},
    session=SessionTerms(3, 60),
    accepted=(Danger.DELTA, Danger.PROMISE),
)
SETTING = PublicParameters(100, 6, SHARES, "query", BUDGET, Budget(2, 1e-7), 0.05, {"rounds": 3}, (2, 3), (1,))
EVENTS = (
    ZcdpEvent("answers", HALF, 2),
    PureDpEvent("tests", THIRD, 3),
    ApproximateDpEvent("samplers", HALF, THIRD),
    Mixture("game", 4, HALF, THIRD, HALF, THIRD),
    ThresholdTests("tests", 5, HALF, THIRD, HALF, THIRD),
    RenyiEvent("lost", Fraction(5), HALF),
)
ACCOUNTS = Account(
    "data/flights",
    BUDGET,
    Budget(0.5, 1e-6),
    Budget(0.75, 1e-6),
    order=5.0,
    divergence=0.25,
    max_divergence=0.5,
    delta=1e-9,
    max_delta=5e-7,
)
SCHEMA = Schema((Attribute("colour", ("red", "blue")),))
NEW = NewDataset("flights", "flights.csv", SCHEMA, BUDGET, BUDGET, accepted=(Danger.EPSILON,))

ASKED = Schema((*SCHEMA.attributes, Attribute("size", ("1", "2", "3"))))
STATEMENTS: dict[str, Statement] = {
    "a marginal": Marginal(("size", "colour")),
    "a condition": (attribute("colour") == "red") & (attribute("size") != "3"),
    "a marginal with a condition": Marginal(("size",), where=attribute("colour") == "blue"),
    "a sum": Sum("size", by=("colour",)),
}

ROOT, DIGEST, NONCE = b"\1" * 32, b"\2" * 32, b"\3" * 32
PERSONS = Persons(PersonMode.EVENTS, 4)
HEAD = item_parts.JournalHead(9, DIGEST)
CHARGES = (item_parts.AccountCharge("data/flights", Cost(rho=7)),)
SETTLED = (item_parts.SettledCharge("data/flights", Cost(rho=7), "spent"),)
RECORDED_TERMS = recorded_terms(TERMS)
ITEM_VALUES: list[Any] = [
    log_items.StartItem(HEAD, 5),
    log_items.KeyItem("log", DIGEST, b"\4" * 8, 5),
    log_items.RestorationItem(6, ROOT, 7),
    log_items.ConfirmationItem(8, HEAD, 7),
    identity_items.IdentityItem(
        identity_items.IdentityEvent.RENEWED,
        "ann",
        Role.ANALYST,
        (identity_items.RecordedCertificate(DIGEST, 9),),
        "operator/olga",
        5,
        ROOT,
    ),
    identity_items.AuthorityItem(
        identity_items.AuthorityEvent.ROTATED,
        ROOT,
        DIGEST,
        (identity_items.HeldCertificate(NONCE, 9, "ann"),),
        5,
    ),
    dataset_items.DatasetItem("flights", 2, {"attributes": [], "version": 1}, 100, PERSONS, 5),
    dataset_items.DataItem(
        "late-flights",
        DIGEST,
        NONCE,
        "same-as:flights",
        "flights",
        Budget(4.0, 1e-6),
        16.0,
        "who",
        (Danger.DELTA,),
        HEAD,
    ),
    dataset_items.RetirementItem("flights", 5),
    dataset_items.DeletionItem("flights", 5),
    items.RoundItem(
        round_id="r-1",
        dataset="flights",
        dataset_version=2,
        dataset_root=ROOT,
        unit="query",
        data_budget=RECORDED_TERMS.data_budget,
        analyst_budget=None,
        beta=0.05,
        mechanism="online",
        max_half_width=1,
        max_uncertified=2,
        analyst_cost=None,
        analyst_events={"events": []},
        analyst_order=5.0,
        seed_commitment=DIGEST,
        seed_fingerprint=ROOT,
        open_time=5,
        close_time=6,
        release_grid_seconds=60,
        records=100,
        universe_size=6,
        session=item_parts.RecordedSession(Ending.STOP, 3, 2, 60),
        accepted=RECORDED_TERMS.accepted,
        standing=ReleasedMeasurement("r-0", DIGEST, NOISE).as_option(),
    ),
    items.PlanItem("r-1", RECORDED_TERMS, SHARES, PLAN, HEAD),
    items.ShareItem("r-1", "ann", 1, 2, 3, 4, 5),
    items.SealItem("r-1", ROOT, NONCE),
    items.ReservationItem("r-1", CHARGES, HEAD, 5),
    items.WorkloadItem("r-1", "ann", None),
    items.ReleaseItem("r-1", ROOT, 5, item_parts.RecordedSynopsis(DIGEST, 3), None, 7),
    items.SpendingItem("r-1", CHARGES, HEAD, 5, DIGEST),
    items.ResultItem("r-1", "ann", item_parts.RecordedStream(DIGEST, 1, 2), Cost(epsilon=3)),
    items.AbortItem("r-1", ROOT, "the power failed", 5),
    items.SettlementItem("r-1", SETTLED, HEAD),
    items.ChargeItem("r-1", "ann", Cost(), "none"),
    items.AccessItem("r-1", "the auditor", 5),
    items.DestructionItem("r-1", 5),
]


def texts() -> dict[str, str]:
    """The text of one value of every map."""
    return {
        **{f"parameters of {name}": value.to_json() for name, value in PARAMETERS.items()},
        **{f"item {NAMES[type(item)]}": ITEMS[type(item)].to_text(item) for item in ITEM_VALUES},
        "plan": plan_to_json(PLAN),
        "terms": terms_to_json(TERMS),
        "public parameters": canonical_json(setting_fields(SETTING)).decode(),
        "events": events_to_json("online", EVENTS),
        "an account that has another cap": ACCOUNT.to_text(ACCOUNTS),
        "request to open": open_request(TERMS, "olga", "once").content.hex(),
        "request to register": NEW.request("olga", "once").content.hex(),
        "request to update": NewVersion("flights", "newer.csv", SCHEMA).request("olga", "once").content.hex(),
        **{
            f"meaning of {name}": meaning_of(compile_single(each, ASKED), b"its bytes").key.hex()
            for name, each in STATEMENTS.items()
        },
        "bound seed": bound_seed(bytes(32), b"n" * 32, b"d" * 32, SETTING, PLAN, {"ann": b"all"}).hex(),
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_every_map_writes_the_text_on_file(name: str) -> None:
    text = texts()[name]
    assert {"text": text, "sha256": sha256(text.encode()).hexdigest()} == EXPECTED[name]


def test_every_map_has_its_text_on_file() -> None:
    assert texts().keys() == EXPECTED.keys()


@pytest.mark.parametrize("value", PARAMETERS.values(), ids=PARAMETERS)
def test_attributes_and_classes_can_be_called_anything(value: Any) -> None:
    renamed = renamed_clone(value)
    assert not {field.name for field in dataclasses.fields(renamed)} & {f.name for f in dataclasses.fields(value)}
    written: Codec[Any] = codec_of(type(renamed))
    assert written.to_text(renamed) == value.to_json()
    assert written.from_text(value.to_json(), "it") == renamed
    assert type(value).from_json(value.to_json()) == value


def test_a_reader_of_the_page_alone_reads_every_item() -> None:
    texts = {
        name.removeprefix("item "): each["text"] for name, each in EXPECTED.items() if name.startswith("item ")
    }
    assert texts.keys() == set(NAMES.values())
    for name, text in texts.items():
        assert page_reader.read(text)["item"] == name


def test_every_item_has_a_value_here() -> None:
    assert {type(item) for item in ITEM_VALUES} == set(NAMES)


@pytest.mark.parametrize("item", ITEM_VALUES, ids=lambda item: NAMES[type(item)])
def test_items_read_back_and_their_attributes_can_be_called_anything(item: Any) -> None:
    content = ITEMS[type(item)].to_bytes(item)
    assert read_item(content, type(item)) == item
    renamed, constants = renamed_clone(item), {"item": NAMES[type(item)], "version": 1}
    assert codec_of(type(renamed), constants).to_bytes(renamed) == content


def renamed_clone(value: Any) -> Any:
    """The same value of a class that has other names for everything but declares the same keys."""
    declared = [
        (f"other_{number}", field.type, dataclasses.field(metadata=field.metadata))
        for number, field in enumerate(dataclasses.fields(value))
    ]
    clone = dataclasses.make_dataclass("Other", declared, frozen=True)
    return clone(*(getattr(value, field.name) for field in dataclasses.fields(value)))


# Where objects are written that are hashed, signed, stored or compared as requests.
HASHED = [
    *Path(equipoise.__file__).parent.joinpath("records").glob("*.py"),
    Path(equipoise.__file__).parent / "accounting" / "events.py",
    Path(equipoise.__file__).parent / "model" / "journal.py",
    Path(equipoise.__file__).parent / "queries" / "meanings.py",
    *Path(equipoise_server.__file__).parent.joinpath("mechanisms").rglob("*.py"),
    *Path(equipoise_server.__file__).parent.joinpath("rounds", "store").glob("*.py"),
    *(
        path
        for path in Path(equipoise_server.__file__).parent.rglob("*.py")
        if "make_request(" in path.read_text(encoding="utf-8")
    ),
]
BY_NAME = {"asdict", "astuple", "vars", "__dict__", "_asdict"}


def test_the_modules_that_write_what_is_hashed_are_where_they_are_looked_for() -> None:
    names = {path.name for path in HASHED}
    assert names >= {"items.py", "public_facts.py", "events.py", "journal.py", "plan.py", "seeds.py", "opening.py"}
    assert names >= {"rounds.py", "step_records.py", "results.py", "budget_views.py", "calendar.py", "meanings.py"}


@pytest.mark.parametrize("path", HASHED, ids=lambda path: "/".join(path.parts[-2:]))
def test_nothing_is_written_by_the_names_of_attributes(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    assert not used & BY_NAME
