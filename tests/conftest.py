"""The options, tiers and fixtures of all tests: which stores they run on, how large they are, what is left out.

Every folder is of one kind: `unit`, `integration`, `statistical` or `hostile`, which `-m` selects. Of each kind,
`--tier quick` runs a part in minutes: every test on SQLite, unless it is marked `full`; of one marked `thin(n)` one
in n of its cases on each store; of the examples that Hypothesis tries an eighth; of the runs of an audit two
fifths; on PostgreSQL what is marked `both_stores`. `--tier rest` runs what quick leaves out, with two fifths of the
examples what Hypothesis tries, and with all runs what is audited. But it leaves to `--tier nightly` what is marked
`nightly`; of a test that is marked `sparse(n)` all but one in n of these cases; of the tests on both stores two in
three on PostgreSQL, and all that are marked `full`; and what quick has tried or audited already. Without a tier
all of this runs, with all examples. `make test-unit` leaves out what is marked `slow`, too.
"""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import groupby
from pathlib import Path

import pytest
from harness.audit_size import FAST, QUICK, SIZES, AuditSize
from harness.dealing import deal
from harness.engines import engines_are_here
from harness.faults.preloading import UNTOLD, can_preload
from harness.stores import KINDS, MISSING, Cluster, cluster, sqlite_file
from hypothesis import HealthCheck, is_hypothesis_test, settings
from sqlalchemy.engine import make_url

TESTS = Path(__file__).parent
KIND_OF_FOLDER = {
    "unit": "unit",
    "property": "unit",
    "vectors": "unit",
    "integration": "integration",
    "statistical": "statistical",
    "noninterference": "statistical",
    "hostile": "hostile",
}
FEW_KILLS, KILLS = 4, 20
KILLS_OF_A_LIFE = 100  # The check after each kill reads all that a deployment has, so many kills take several.
PART_ON_POSTGRESQL = 3  # one in so many of the tests on both stores

# What is about PostgreSQL alone.
collect_ignore = (
    []
    if "postgresql" in KINDS
    else [
        "unit/storage/test_claims.py",
        "unit/storage/test_postgresql.py",
        "integration/test_several_servers.py",
        "integration/test_shared_rounds.py",
    ]
)
if not can_preload():
    collect_ignore.append("hostile/faults")
if not engines_are_here():
    collect_ignore += [
        "unit/datasets/test_dialects.py",
        "unit/datasets/test_spark.py",
        "unit/datasets/test_spark_faults.py",
        "integration/test_spark_rounds.py",
    ]

# The same examples every time, so that a run of the tests means the same everywhere; `explore` looks for new ones.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.register_profile("quick", settings.get_profile("steady"), max_examples=12)
settings.register_profile("rest", settings.get_profile("steady"), max_examples=40)
settings.register_profile(
    "explore", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which tests run, and how large the statistical audit, the random kills, the load and the soak are."""
    parser.addoption("--tier", choices=("quick", "rest", "nightly", "all"), default="all", help="which tests run")
    parser.addoption("--part", type=part, default=(1, 1), help="a part of the tests, such as 2/3; each is in one")
    parser.addoption("--audit-size", choices=sorted(SIZES), help="how long the audit may take; else by the tier")
    parser.addoption("--other-numpy", default="", help="a directory with another numpy, to replay rounds with")
    parser.addoption("--kills", type=int, default=0, help="how often a server is killed; 0: a few times, and more")
    parser.addoption("--kills-seed", default="1", help="what the moments of the kills are drawn from")
    parser.addoption("--unread", type=int, default=200, help="how many streams nobody reads")
    parser.addoption("--cancelled", type=int, default=600, help="how many streams are cancelled")
    parser.addoption("--soak-minutes", type=float, default=0.1, help="how long a server is soaked")
    parser.addoption("--soak-pulse", type=float, default=0.0, help="seconds between two acts of everybody, at most")
    parser.addoption("--soak-store", choices=("sqlite", "postgresql"), default="sqlite", help="with which store")


def pytest_configure(config: pytest.Config) -> None:
    """The markers; any other is an error. And how many examples Hypothesis tries."""
    tier = config.getoption("--tier")
    usual = tier if tier in ("quick", "rest") else "steady"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))
    for kind in sorted(set(KIND_OF_FOLDER.values())):
        config.addinivalue_line("markers", f"{kind}: given by the folder")
    config.addinivalue_line("markers", "full: costs too much for the quick tier, in which others keep its promise")
    config.addinivalue_line("markers", "nightly: costs too much for every change, and runs only among all tests")
    config.addinivalue_line("markers", "thin(n): of its cases the quick tier runs one in n")
    config.addinivalue_line(
        "markers", "sparse(n): of the cases that the quick tier leaves out, all but one in n are nightly"
    )
    config.addinivalue_line("markers", "slow: more than a fifth of a second, which `make test-unit` leaves out")
    config.addinivalue_line("markers", "both_stores: in the quick tier on PostgreSQL, too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`kills`: as often as `--kills` says; without it a few times, and outside of the quick tier often."""
    if "kills" in metafunc.fixturenames:
        said = metafunc.config.getoption("--kills")
        parts = [min(KILLS_OF_A_LIFE, said - before) for before in range(0, said, KILLS_OF_A_LIFE)]
        metafunc.parametrize("kills", parts or [FEW_KILLS, pytest.param(KILLS, marks=pytest.mark.nightly)])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without searching for garbage: there is none, and later searches need not look at the tests again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test with its kind, and leave those that are not of the tier."""
    cases: Counter[tuple[str, bool]] = Counter()
    left: Counter[str] = Counter()
    quick: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    nightly: list[pytest.Item] = []
    for item in items:
        item.add_marker(KIND_OF_FOLDER[item.path.relative_to(TESTS).parts[0]])
        in_quick = in_quick_tier(item, cases)
        if in_quick:
            quick.append(item)
        # Hypothesis marks its tests as well, but later than this is called.
        audited = "audit_size" in getattr(item, "fixturenames", ())
        sampled = audited or is_hypothesis_test(getattr(item, "obj", None))
        if in_quick and not sampled:
            continue
        if in_quick or item.get_closest_marker("nightly") or is_too_many(item, left):
            nightly.append(item)
        else:
            rest.append(item)
    tier = config.getoption("--tier")
    if tier != "all":
        chosen = {"quick": quick, "rest": rest, "nightly": nightly}[tier]
        ids = {item.nodeid for item in chosen}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
        items[:] = chosen
    if config.getoption("--audit-size"):
        items.sort(key=comes_late)
    number, parts = config.getoption("--part")
    config.hook.pytest_deselected(items=[each for at, each in enumerate(items) if at % parts != number - 1])
    items[:] = items[number - 1 :: parts]
    hands = getattr(config, "workerinput", {}).get("workercount", 1)
    if hands > 1 and not config.getoption("--audit-size"):
        items[:] = dealt(items, hands)


def dealt(items: list[pytest.Item], hands: int) -> list[pytest.Item]:
    """Order the tests for so many processes: first whole modules that wait for servers, then what is slow."""
    alone = {TESTS / "unit", TESTS / "vectors"}
    served = [item for item in items if alone.isdisjoint(item.path.parents)]
    rest = [item for item in items if not alone.isdisjoint(item.path.parents)]
    slow = [item for item in rest if item.get_closest_marker("slow")]
    quick = [item for item in rest if not item.get_closest_marker("slow")]
    return deal([list(module) for _, module in groupby(served, lambda item: item.path)], slow, quick, hands)


def part(text: str) -> tuple[int, int]:
    """Read which part of the tests is run, and of how many."""
    number, _, parts = text.partition("/")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(f"{text} is no part")
    return int(number), int(parts)


def comes_late(item: pytest.Item) -> tuple[bool, bool]:
    """The order of an audit whose size is given: what takes longest comes first, so that workers end together."""
    return "audit_size" not in getattr(item, "fixturenames", ()), "noninterference" not in item.path.parts


def in_quick_tier(item: pytest.Item, cases: Counter[tuple[str, bool]]) -> bool:
    """Whether the quick tier runs it. `cases` counts, by test and store, the cases that were looked at before."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    needs_postgresql = "postgresql" in getattr(item, "fixturenames", ()) or "postgresql" in parameters
    left_out = item.get_closest_marker("full") or item.get_closest_marker("nightly")
    if left_out or (needs_postgresql and not item.get_closest_marker("both_stores")):
        return False
    thin = item.get_closest_marker("thin")
    if thin is None:
        return True
    test = item.nodeid.partition("[")[0], needs_postgresql
    cases[test] += 1
    return (cases[test] - 1) % int(thin.args[0]) == 0


def is_too_many(item: pytest.Item, left: Counter[str]) -> bool:
    """Whether it is a case for the nightly tier alone.

    `left` counts the cases that quick leaves out: those on PostgreSQL of all tests together, the others by test.
    """
    on_postgresql = "postgresql" in getattr(getattr(item, "callspec", None), "params", {}).values()
    if on_postgresql and not item.get_closest_marker("both_stores"):
        left["on PostgreSQL"] += 1
        return bool(item.get_closest_marker("full")) or left["on PostgreSQL"] % PART_ON_POSTGRESQL != 0
    sparse = item.get_closest_marker("sparse")
    if sparse is None:
        return False
    test = item.nodeid.partition("[")[0]
    left[test] += 1
    return (left[test] - 1) % int(sparse.args[0]) != 0


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """The PostgreSQL of these tests; started by the first test that needs it."""
    with cluster() as started:
        yield started


@pytest.fixture(params=KINDS)
def empty_store(request: pytest.FixtureRequest) -> Callable[[Path], AbstractContextManager[str]]:
    """Makes empty stores, each for a context; what is a file lies in the directory. Runs a test on both kinds."""
    if request.param == "sqlite":
        return sqlite_file
    started: Cluster = request.getfixturevalue("postgresql")
    return started.database


@pytest.fixture
def store_url(empty_store: Callable[[Path], AbstractContextManager[str]], tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store; every test that takes it runs on both kinds."""
    with empty_store(tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def audit_size(request: pytest.FixtureRequest) -> AuditSize:
    """What `--audit-size` names, or what the tier has."""
    of_tier = QUICK if request.config.getoption("--tier") == "quick" else FAST
    return SIZES[request.config.getoption("--audit-size") or of_tier]


@pytest.fixture(scope="session")
def other_numpy(request: pytest.FixtureRequest) -> str:
    """What `--other-numpy` names, or nothing."""
    directory: str = request.config.getoption("--other-numpy")
    return directory


@pytest.fixture
def drawn(request: pytest.FixtureRequest, store_url: str) -> random.Random:
    """What the moments of the kills are drawn from, other ones in each case and on each store."""
    store = make_url(store_url).drivername
    return random.Random(f"{request.config.getoption('--kills-seed')} {store} {request.node.name}")


@pytest.fixture(scope="session")
def unread(request: pytest.FixtureRequest) -> int:
    """What `--unread` says."""
    number: int = request.config.getoption("--unread")
    return number


@pytest.fixture(scope="session")
def cancelled(request: pytest.FixtureRequest) -> int:
    """What `--cancelled` says."""
    number: int = request.config.getoption("--cancelled")
    return number


@pytest.fixture
def soak_seconds(request: pytest.FixtureRequest) -> float:
    """What `--soak-minutes` says."""
    minutes: float = request.config.getoption("--soak-minutes")
    return 60 * minutes


@pytest.fixture
def soak_pulse(request: pytest.FixtureRequest) -> float:
    """What `--soak-pulse` says."""
    pulse: float = request.config.getoption("--soak-pulse")
    return pulse


@pytest.fixture
def soak_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of the kind that `--soak-store` says, as a server is configured with it."""
    if request.config.getoption("--soak-store") == "sqlite":
        yield "sqlite:///equipoise.db"
    else:
        with request.getfixturevalue("postgresql").database(tmp_path) as url:
            yield url


def pytest_unconfigure() -> None:
    """Let all be searched again, as some libraries report what is left when the interpreter ends."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was left out."""
    if "postgresql" not in KINDS:
        terminalreporter.write_line(MISSING, yellow=True)
    if not can_preload():
        terminalreporter.write_line(UNTOLD, yellow=True)
