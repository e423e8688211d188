"""The encoding of both kinds of repair in the parameters of a plan."""

from __future__ import annotations

from equipoise.records.codec import Codec, codec_of, either
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters

Repair = RepairParameters | AnalystRepairParameters

REPAIR: Codec[Repair] = either(
    "unit",
    {
        "query": (RepairParameters, codec_of(RepairParameters, {"unit": "query"})),
        "analyst": (AnalystRepairParameters, codec_of(AnalystRepairParameters, {"unit": "analyst"})),
    },
)
