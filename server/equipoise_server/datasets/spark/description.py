"""What a file that ends in `.spark.toml` says of a table that a Spark counts.

master = "local[2]"            # or spark://HOST:PORT, yarn, k8s://...
path = "/lake/orders"          # files, a directory or an address such as s3a://...; or
table = "sales.orders"         # a table or view of Spark's catalog
format = "parquet"             # of the path; parquet may be left out
snapshot = "12"                # of the formats delta and iceberg: the version that is counted
properties_file = "/run/spark" # Spark's settings and secrets, mode 0600; may be left out
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field

from equipoise.errors import InvalidArgument
from equipoise_server.datasets.description import Description, private_file, read_description
from equipoise_server.datasets.spark.messages import Place

MASTERS = re.compile(r"local(\[[\d*]+(,\d+)?\])?|spark://\S+|k8s://\S+|yarn")
SNAPSHOTS = {"delta": "versionAsOf", "iceberg": "snapshot-id"}  # what the formats call the version to read


class SparkDescription(Description):
    """The keys of the file."""

    master: str
    path: str | None = None
    table: str | None = None
    kind: str | None = Field(default=None, alias="format")
    snapshot: str | None = None
    properties_file: str | None = None


def read_place(file: Path) -> tuple[Place, Path | None]:
    """Return the table that a description names, and the file of properties.

    Raises:
        InvalidArgument: a key is unknown, missing or wrong; its name is in the field.
    """
    said = read_description(file, SparkDescription)
    if not MASTERS.fullmatch(said.master):
        problem = "must be local, local[N], spark://HOST:PORT, k8s://ADDRESS or yarn"
        raise InvalidArgument("table: master", f"{problem}, in {file.name}")
    if (said.path is None) == (said.table is None):
        raise InvalidArgument("table: path", f"either path or table must be set, in {file.name}")
    if said.table is not None and said.kind is not None:
        raise InvalidArgument("table: format", f"is of a path; a table has its own, in {file.name}")
    kind = said.kind or "parquet"
    if said.snapshot is not None and kind not in SNAPSHOTS:
        raise InvalidArgument("table: snapshot", f"only {' and '.join(SNAPSHOTS)} have versions, in {file.name}")
    path = said.path
    if path is not None and "://" not in path:
        path = str((file.parent / path).resolve())
    secrets = said.properties_file
    properties = None if secrets is None else private_file(file, secrets, "table: properties_file")
    return Place(said.master, path, said.table, kind, said.snapshot), properties
