"""Checking and repairing the budget ledger, while no server runs."""

from __future__ import annotations

from equipoise_server.admin.ledger_repair import verify, write_off_state
from equipoise_server.commands.printing import DEFAULT_STATE, OUT, AsJson, State, print_json

FINDINGS = {
    "contained": "Nothing is missing.",
    "missing": "There was no guard, so all that was left has been written off.",
    "behind": "The store is an older copy.",
    "forked": "The store is a copy that went another way.",
}


def verify_ledger(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Recompute the journal's chain and every account from it, and all records and the log; compare with the guard.

    Changes nothing, but for a store of an older version, which is brought up to date. Exits with 1 and one line
    saying what is wrong, if something is.
    """
    report = verify(state)
    if as_json:
        print_json(report)
        return
    OUT.print(f"{report['entries']:,} entries, {report['accounts']:,} accounts: all agree.", highlight=False)
    OUT.print(f"Last digest {report['digest']}.", highlight=False)
    OUT.print(f"{report['records']:,} records agree; the log has {report['log_size']:,} entries.", highlight=False)
    OUT.print(f"Root {report['log_root']}.", highlight=False)


def write_off(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Repair a store that was restored from an older copy, so that a server can start on it again.

    Whatever may have been spent since the copy is marked as spent, by account and in the journal: exactly what the
    guard knows; all that the guard knows, if the copy has diverged; all that is left, if the guard is missing.
    Every round that has not ended is aborted and charged, because it may have been run in the lost part. Does
    nothing if nothing is missing.
    """
    report = write_off_state(state)
    if as_json:
        print_json(report)
        return
    OUT.print(FINDINGS[report["finding"]], highlight=False)
    for lost in report["written_off"]:
        units = {"divergence": 1e12, "rho": 1e12, "epsilon": 1e12, "delta": 1e18}
        amounts = ", ".join(f"{name} {lost[name] / unit:.6g}" for name, unit in units.items() if lost[name])
        OUT.print(f"  written off on {lost['account']}: {amounts}", highlight=False, markup=False)
    if report["lost_records"]:
        OUT.print(f"  the log goes on after {report['lost_records']} entries that say that it was cut off")
    if report["new_key"] is not None:
        OUT.print("  the log goes on under this key alone; give it to all who verify records:")
        OUT.print(f"  {report['new_key']}", highlight=False, markup=False, soft_wrap=True)
    for round_id in report["aborted"]:
        OUT.print(f"  aborted round {round_id}", highlight=False, markup=False)
