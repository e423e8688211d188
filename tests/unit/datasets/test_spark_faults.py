"""What goes wrong while Spark reads: errors that name the thing, quote no value, and leave no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.engines import for_spark

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels

pytestmark = [pytest.mark.full, pytest.mark.slow]

EDGES = (0.0, 1.0, 2.0)
SCHEMA = Schema((Attribute("seats", bin_labels(EDGES), EDGES), Attribute("kind", ("AA", "BB"))))
SECRET = "correct-horse"
PARENT = """
import sys
from pathlib import Path
from equipoise.queries.schema import Schema
from equipoise_server.datasets.source import source_at
source_at(Path(sys.argv[1])).counts(Schema.from_json(sys.argv[2]), lambda done, total: print("reads", flush=True))
"""


def write(directory: Path, **columns: pa.Array) -> None:
    usual = {"seats": pa.array([0, 1, 1]), "kind": pa.array(["AA", "BB", "AA"])}
    pq.write_table(pa.table({**usual, **columns}), directory / "t.parquet")


def without(directory: Path) -> None:
    pq.write_table(pa.table({"kind": pa.array(["AA"])}), directory / "t.parquet")


def damage(directory: Path) -> None:
    (directory / "t.parquet").write_bytes(b"PAR1 this is AA and no Parquet PAR1")


FAULTS: list[tuple[Callable[[Path], object], str]] = [
    (lambda _: None, "Spark finds no such table (PATH_NOT_FOUND)"),
    (without, "table: has no column named 'seats'"),
    (lambda directory: write(directory, seats=pa.array(["1", "x", "AA"])), "column 'seats' is of type TEXT"),
    (lambda directory: write(directory, kind=pa.array([0.5, 1.5, 2.5])), "column 'kind' is of type DOUBLE"),
    (
        lambda directory: write(directory, seats=pa.array([], pa.int64()), kind=pa.array([], pa.string())),
        "table: has no records",
    ),
    (lambda directory: write(directory, seats=pa.array([5, None, 0])), "attribute seats: 1 null, 1 out of range"),
    (damage, "table: cannot be read by Spark ("),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "problem"), FAULTS)
def test_a_table_that_does_not_fit_is_refused_and_no_value_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], fault: Callable[[Path], object], problem: str
) -> None:
    fault(tmp_path)
    with pytest.raises(InvalidArgument) as refused:
        for_spark(tmp_path, "t.parquet").counts(SCHEMA)
    assert problem in str(refused.value)
    assert "AA" not in str(refused.value)
    # Spark prints what it likes, and none of it gets here.
    assert capfd.readouterr() == ("", "")


def children(of: int) -> list[int]:
    """The processes that a process has begun, and those that these have, and so on."""
    own = [int(each) for each in Path(f"/proc/{of}/task/{of}/children").read_text().split()]
    return own + [grandchild for child in own for grandchild in children(child)]


def command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def wait_until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.2)


@contextmanager
def reading(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that reads a table with Spark, once its Java runs."""
    pq.write_table(
        pa.table({"seats": pa.array([0, 1] * 2_000_000), "kind": pa.array(["AA", "BB"] * 2_000_000)}),
        directory / "t.parquet",
    )
    (directory / "secrets").write_text(f"spark.hadoop.fs.s3a.secret.key {SECRET}\n")
    (directory / "secrets").chmod(0o600)
    source = for_spark(directory, "t.parquet", 'properties_file = "secrets"\n')
    arguments = [sys.executable, "-c", PARENT, str(source.path), SCHEMA.to_json()]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        try:
            wait_until(lambda: any("SparkSubmit" in command(each) for each in children(parent.pid)))
            yield parent
        finally:
            parent.kill()


@pytest.mark.nightly
def test_neither_the_list_of_processes_nor_an_error_has_the_secrets(tmp_path: Path) -> None:
    with reading(tmp_path) as parent:
        seen = [command(each) for each in [parent.pid, *children(parent.pid)]]
        assert any(str(tmp_path / "secrets") in each for each in seen)
        assert not any(SECRET in each for each in seen)
        # The properties are read: Spark does not start with one that it cannot understand.
        parent.wait()
        assert parent.returncode == 0
    (tmp_path / "secrets").write_text(f"spark.driver.port {SECRET}\n")
    with pytest.raises(InvalidArgument, match=r"table: (cannot be read by Spark|Spark did not start)") as refused:
        for_spark(tmp_path, "t.parquet", 'properties_file = "secrets"\n').counts(SCHEMA)
    assert SECRET not in str(refused.value)


def test_a_java_that_is_killed_ends_the_reading_with_an_error(tmp_path: Path) -> None:
    with reading(tmp_path) as parent:
        for each in children(parent.pid):
            if "SparkSubmit" in command(each):
                os.kill(each, signal.SIGKILL)
        _, told = parent.communicate()
    assert parent.returncode == 1
    assert "InvalidArgument: table: " in told
    assert "AA" not in told.rpartition("InvalidArgument")[2]


@pytest.mark.nightly
def test_nothing_outlives_a_reader_that_is_killed(tmp_path: Path) -> None:
    with reading(tmp_path) as parent:
        started = children(parent.pid)
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: not any(command(each) for each in started))
