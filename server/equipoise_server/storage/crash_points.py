"""The named points of the code at which a crash matters, with what has happened there and what has not.

The points of an operation have the operation's name, and `storage.operations` reaches them; other code calls
`reached` itself. A test that starts the server with a hook is called at each point, and may kill the server there.
A server that is started in any other way has no hook, and no option or configuration installs one.

At `..._WRITTEN` the change is in the transaction and not committed: after a crash it never happened. At
`..._COMMITTED` the change is durable, and nothing that follows in memory, in the guard or on the wire has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum


class CrashPoint(StrEnum):
    """A point of the code. The comments say what a crash there means."""

    ADD_IDENTITY_WRITTEN = "add_identity written"  # nobody was admitted
    ADD_IDENTITY_COMMITTED = "add_identity committed"  # admitted; the same request gets the certificate
    RENEW_IDENTITY_WRITTEN = "renew_identity written"  # the earlier certificates alone are good
    RENEW_IDENTITY_COMMITTED = "renew_identity committed"  # so is the new one; the same request gets it
    REVOKE_IDENTITY_WRITTEN = "revoke_identity written"  # every certificate is as good as it was
    REVOKE_IDENTITY_COMMITTED = "revoke_identity committed"  # none is; open calls end soon, at all servers
    DELETE_ANALYST_WRITTEN = "delete_analyst written"  # nothing is removed
    DELETE_ANALYST_COMMITTED = "delete_analyst committed"
    REGISTER_DATASET_WRITTEN = "register_dataset written"  # no dataset, no account
    REGISTER_DATASET_COMMITTED = "register_dataset committed"
    UPDATE_DATASET_WRITTEN = "update_dataset written"  # new rounds are about the version before
    UPDATE_DATASET_COMMITTED = "update_dataset committed"
    RETIRE_DATASET_WRITTEN = "retire_dataset written"
    RETIRE_DATASET_COMMITTED = "retire_dataset committed"
    DELETE_DATASET_WRITTEN = "delete_dataset written"  # nothing is erased
    DELETE_DATASET_COMMITTED = "delete_dataset committed"
    SET_CAP_WRITTEN = "set_cap written"  # the old cap holds
    SET_CAP_COMMITTED = "set_cap committed"
    OPEN_WRITTEN = "open written"  # no round; its seed is lost, and a new one will be drawn
    OPEN_COMMITTED = "open committed"  # the seed is fixed before any workload can be seen
    SUBMIT_WRITTEN = "submit written"  # the earlier workload, if any, stands
    SUBMIT_COMMITTED = "submit committed"  # the same request gets this receipt
    WITHDRAW_WRITTEN = "withdraw written"
    WITHDRAW_COMMITTED = "withdraw committed"
    SET_AUDIT_NONCE_WRITTEN = "set_audit_nonce written"  # the round has no auditor's nonce
    SET_AUDIT_NONCE_COMMITTED = "set_audit_nonce committed"
    ANSWERS_WRITTEN = "answers written"  # of a session: nobody was told; asked again, they are computed anew
    ANSWERS_COMMITTED = "answers committed"  # nobody was told; asked again, they are given from the store
    REQUEST_GRANT_WRITTEN = "request_grant written"  # no operator sees a request
    REQUEST_GRANT_COMMITTED = "request_grant committed"
    DECIDE_GRANT_REQUEST_WRITTEN = "decide_grant_request written"  # the request waits; a grant that was given stays
    DECIDE_GRANT_REQUEST_COMMITTED = "decide_grant_request committed"
    SCHEDULE_ROUNDS_WRITTEN = "schedule_rounds written"  # nothing is opened by the calendar
    SCHEDULE_ROUNDS_COMMITTED = "schedule_rounds committed"
    STOP_SCHEDULE_WRITTEN = "stop_schedule written"  # it goes on
    STOP_SCHEDULE_COMMITTED = "stop_schedule committed"
    SEAL_WRITTEN = "seal written"  # open, nothing reserved
    SEAL_COMMITTED = "seal committed"  # reserved, and counts; no data have been touched
    RUN_WRITTEN = "run written"  # sealed; an abort may still give the charge back
    RUN_COMMITTED = "run committed"  # running without a worker; charged whatever happens
    RUN_STARTED = "run started"  # a worker is at work; it is started again with the same seed
    RESULTS_PART_COMMITTED = "results part committed"  # of no use: the next run begins anew
    RESULTS_WRITTEN = "results written"
    RESULTS_COMMITTED = "results committed"  # complete: never computed again, seen by nobody before the release
    RELEASE_WRITTEN = "release written"  # running, reserved, nothing delivered
    RELEASE_COMMITTED = "release committed"  # spent, and delivered from the store for ever
    ABORT_WRITTEN = "abort written"  # the round goes on
    ABORT_COMMITTED = "abort committed"
    LOG_WRITTEN = "log written"  # what is due has no place in the log yet
    LOG_COMMITTED = "log committed"  # it has; nobody was shown, and the log's next look signs it
    CHECKPOINT_WRITTEN = "checkpoint written"  # the guard knows the log's size and root; nobody was shown
    CHECKPOINT_COMMITTED = "checkpoint committed"  # signed, once and for ever
    PAIR_PREPARED = "pair prepared"  # of a certificate and its key: the old pair is in force
    PAIR_EXCHANGED = "pair exchanged"  # the new pair is, though its key is not in its place yet
    REISSUE_WRITTEN = "reissue written"  # of a new authority: nobody has a certificate of it yet
    REISSUE_COMMITTED = "reissue committed"  # everybody has; what the old one signed is honoured, too
    RETIRE_AUTHORITY_WRITTEN = "retire_authority written"  # everything is honoured as before
    RETIRE_AUTHORITY_COMMITTED = "retire_authority committed"  # the old certificates are refused on every call
    KEY_MADE = "key made"  # a file that no store knows of; the next attempt makes another
    KEY_WRITTEN = "key written"
    KEY_COMMITTED = "key committed"  # in force, or retired; the private key of a retired one may be left
    SEED_READ_WRITTEN = "seed read written"  # nobody was given the seed
    SEED_READ_COMMITTED = "seed read committed"  # on record, whether or not the auditor was answered
    GUARD_DIGESTS_KEPT = "guard digests kept"  # more of them than the guard knows, which say nothing
    GUARD_PREPARED = "guard prepared"  # the guard is behind the journal and the log, which extend it
    GUARD_ADVANCED = "guard advanced"
    WRITE_OFF_WRITTEN = "write-off written"  # the store is still refused
    WRITE_OFF_COMMITTED = "write-off committed"  # written off; refused until the guard is set, again without loss


Hook = Callable[[CrashPoint], None]

_hooks: list[Hook] = []


def reached(point: CrashPoint) -> None:
    """Call the hooks. The code at `point` calls this function."""
    for hook in _hooks:
        hook(point)


@contextmanager
def install_hook(hook: Hook | None) -> Iterator[None]:
    """Have every crash point call `hook` while the context is open, in whatever thread the point is reached."""
    if hook is not None:
        _hooks.append(hook)
    try:
        yield
    finally:
        if hook is not None:
            _hooks.remove(hook)
