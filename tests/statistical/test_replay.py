"""The same seed, data, workloads and parameters give the same bytes, whatever machine computes them.

Other processes, with other numbers of threads, hash seeds, kernels of the linear algebra and vector instructions,
and at the nightly size another numpy, compute the same rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.released_rounds import Released, release
from statistical.replayed_rounds import digest, outcome_of, rounds

from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.repair.analyst_repair import MULTIPLICATIVE_WEIGHTS
from equipoise_server.mechanisms.repair.statement_repair import SYNOPSIS, UNCERTIFIED

TESTS = Path(__file__).parents[1]
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def plain_instructions() -> dict[str, str]:
    """What keeps numpy from the vector instructions beyond its baseline that this machine has."""
    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(found)} if found else {}


def elsewhere(
    environment: dict[str, str], plans: dict[str, str], libraries: str = ""
) -> tuple[str, dict[str, str]]:
    """The version of numpy and the digests of a new process."""
    paths = [libraries, str(TESTS), *sys.path]
    done = subprocess.run(
        [sys.executable, "-m", "statistical.replayed_rounds"],
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        input=json.dumps(plans),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    return told["numpy"], told["digests"]


ONE = dict.fromkeys(THREADS, "1") | {"PYTHONHASHSEED": "1", "OPENBLAS_CORETYPE": "Nehalem"}
FOUR = dict.fromkeys(THREADS, "4") | {"PYTHONHASHSEED": "2"}


@pytest.mark.parametrize(
    "environments",
    [
        pytest.param([ONE | plain_instructions()], id="one"),
        pytest.param([ONE, FOUR | plain_instructions()], marks=pytest.mark.full, id="several"),
    ],
)
def test_every_process_gives_the_same_bytes(environments: list[dict[str, str]], other_numpy: str) -> None:
    plans = {name: case.plan.parameters for name, case in rounds().items()}
    outcomes = {name: outcome_of(case, plans[name]) for name, case in rounds().items()}
    ways = {int(way) for each in outcomes.values() for a in each.answers.values() for way in np.unique(a.methods)}
    assert ways > {SYNOPSIS, MULTIPLICATIVE_WEIGHTS, UNCERTIFIED}  # and noise on single statements
    here = {name: digest(outcome) for name, outcome in outcomes.items()}
    assert len(set(here.values())) == len(here)

    for environment in environments:
        assert elsewhere(environment, plans) == (np.__version__, here)
    if other_numpy:
        version, digests = elsewhere(FOUR, plans, other_numpy)
        assert version != np.__version__
        assert digests == here


def replayed(released: Released, name: str, threads: str, libraries: str) -> str:
    """The version of numpy of a new process that replays a round, and finds that it agrees."""
    program = (
        "import sys, numpy; print(numpy.__version__); from equipoise_server.cli import main; main(sys.argv[1:])"
    )
    options = ["--state", str(released.state), "--auditor-key", str(released.key_file), "--json"]
    paths = os.pathsep.join(path for path in (libraries, *sys.path) if path)
    done = subprocess.run(
        [sys.executable, "-c", program, "audit", "replay", released.rounds[name], *options],
        env={**os.environ, **dict.fromkeys(THREADS, threads), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (name, threads, libraries, done.stdout, done.stderr)
    version, told = done.stdout.splitlines()
    assert json.loads(told)["agrees"]
    return version


@pytest.mark.full
def test_released_rounds_are_replayed_by_other_processes(other_numpy: str, tmp_path: Path) -> None:
    """By the command: with one thread and two; and, at the nightly size, all mechanisms with another numpy."""
    released = release(tmp_path, MECHANISMS if other_numpy else ["equilibrium"])
    for name in released.rounds:
        for threads in ("1", "2"):
            assert replayed(released, name, threads, "") == np.__version__
        if other_numpy:
            assert replayed(released, name, "2", other_numpy) != np.__version__
