"""Reads the last line that `equipoise-server demo --json` printed and checks what the demo promises."""

from __future__ import annotations

import json
import sys
from pathlib import Path

report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[-1])
noise = next(row["measured"] for row in report["mechanisms"] if row["mechanism"] == "gaussian")
promises = {
    "at least 20,000 queries of at least 8 analysts": report["queries"] >= 20_000 and report["analysts"] >= 8,
    "every query was answered": report["answered"] + report["uncertified"] == report["queries"],
    "every certified answer is within its bound": report["outside_interval"] == 0,
    "no answer errs by half as much as independent noise": report["max_error"] <= noise["errors"]["max"] / 2,
    "the data budget is kept": report["epsilon_data"] <= 1 and report["delta_data"] <= 1 / report["records"] ** 2,
    "the analysts' budget is kept": report["epsilon_analyst"] <= 1 and report["delta_analyst"] <= 1e-6,
    "every airline verified its part offline": report["bundles_verified"] == report["analysts"],
    "the records stand an audit": report["audited"],
    "the round computed again is the round delivered": report["replayed"],
    "the round took at most half a minute": report["seconds"] <= 30,
    "the worker took at most 2 GB": report["peak_memory_bytes"] <= 2 * 10**9,
}
broken = [promise for promise, kept in promises.items() if not kept]
if broken:
    sys.exit("The demo broke its promise: " + "; ".join(broken))
print("The demo keeps its promises: " + "; ".join(promises))
