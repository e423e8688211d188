"""Every error that Equipoise raises to its callers, on both sides of the wire.

    EquipoiseError
    |-- InvalidArgument       a field is malformed, unknown or out of range
    |-- NotAuthenticated      no usable certificate
    |-- PermissionDenied      the caller's role may not call this
    |-- NotFound              does not exist, or is not the caller's: the same words for both
    |-- BudgetExhausted       the caller's own share or a budget's cap does not allow it
    |-- TooLarge              the request exceeds a size limit
    |-- TooFast               the caller exceeds a rate limit
    |-- WrongState            the round is not in the right state, or it is too late
    |-- AlreadyExists         the same request_id or name, with other content
    |-- OutOfRange            a stream was resumed beyond its end
    |-- Unavailable           the server or its store cannot be reached; try again
    |-- DataLoss              stored records are damaged
    |   `-- VerificationFailed    a record, proof or signature is not what it must be; no server sends it
    |-- NotServed             the server's version does not offer this
    `-- InternalError         anything unexpected; carries a random reference and no detail

Each class fixes its gRPC status and a machine-readable reason, so that the server's error shield and the
client's translation read the same table. A message may speak of the caller's own request and of public
things, never of another analyst.
"""

from __future__ import annotations

from typing import ClassVar


class EquipoiseError(Exception):
    """The root of all errors. `status` is the gRPC status name, `reason` goes into trailing metadata."""

    status: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = "INTERNAL"
    advice: ClassVar[str] = "Please report this."

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(EquipoiseError):
    """A field is malformed. `field` names it as the caller wrote it, such as `statements[3].attribute`."""

    status = "INVALID_ARGUMENT"
    reason = "INVALID"
    advice = "Correct the named field and send the request again; nothing was charged."

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class NotAuthenticated(EquipoiseError):
    """The connection carries no certificate that this deployment accepts now."""

    status = "UNAUTHENTICATED"
    reason = "IDENTITY"
    advice = "Check that the profile's certificate was issued by this server's CA and is still valid."


class PermissionDenied(EquipoiseError):
    """The caller's role may not call this method."""

    status = "PERMISSION_DENIED"
    reason = "ROLE"
    advice = "Use the profile of an identity with the right role."


class NotFound(EquipoiseError):
    """The thing does not exist, or is not the caller's; the two are never told apart."""

    status = "NOT_FOUND"
    reason = "NOT_FOUND"
    advice = "Check the name; list what there is."


class BudgetExhausted(EquipoiseError):
    """The caller's own share, or the cap of an account, does not allow this."""

    status = "RESOURCE_EXHAUSTED"
    reason = "BUDGET"
    advice = "Ask for less, or have the operator raise the share or the cap; nothing was charged."


class TooLarge(EquipoiseError):
    """The request exceeds a size limit."""

    status = "RESOURCE_EXHAUSTED"
    reason = "SIZE"
    advice = "Send less at once."


class TooFast(EquipoiseError):
    """The caller exceeds a rate limit; after `retry_seconds`, where they are not 0, it can try again."""

    status = "RESOURCE_EXHAUSTED"
    reason = "RATE"
    advice = "Wait a little, have fewer calls open, and try again."

    def __init__(self, message: str, retry_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class WrongState(EquipoiseError):
    """The round is not in a state that allows this."""

    status = "FAILED_PRECONDITION"
    reason = "STATE"
    advice = "Look at the state of the round or session."


class AlreadyExists(EquipoiseError):
    """The same `request_id` or name was used before, with other content."""

    status = "ALREADY_EXISTS"
    reason = "EXISTS"
    advice = "Use a new request_id or name, or resend the original request unchanged."


class OutOfRange(EquipoiseError):
    """A stream was resumed beyond its end."""

    status = "OUT_OF_RANGE"
    reason = "RANGE"
    advice = "Resume from a sequence number that was received."


class Unavailable(EquipoiseError):
    """The server or its store cannot be reached now."""

    status = "UNAVAILABLE"
    reason = "UNAVAILABLE"
    advice = "Check the address and that the server is running, then try again."


class DataLoss(EquipoiseError):
    """Stored records are damaged."""

    status = "DATA_LOSS"
    reason = "DATA_LOSS"
    advice = "Tell the operator; the runbook says how to restore."


class VerificationFailed(DataLoss):
    """A record, a proof or a signature is not what it must be: for whoever checks; no server answers with it."""

    advice = "Keep the file as it is and ask the custodian; docs/formats.md says what is checked."


class NotServed(EquipoiseError):
    """The server's version does not know the method."""

    status = "UNIMPLEMENTED"
    reason = "UNIMPLEMENTED"
    advice = "Ask the operator which version the server runs."


class InternalError(EquipoiseError):
    """Something unexpected happened on the server; its log has the detail under the reference."""

    status = "INTERNAL"
    reason = "INTERNAL"
    advice = "Tell the operator the reference."


BY_REASON: dict[str, type[EquipoiseError]] = {
    kind.reason: kind
    for kind in (
        InvalidArgument,
        NotAuthenticated,
        PermissionDenied,
        NotFound,
        BudgetExhausted,
        TooLarge,
        TooFast,
        WrongState,
        AlreadyExists,
        OutOfRange,
        Unavailable,
        DataLoss,
        NotServed,
        InternalError,
    )
}


def from_reason(reason: str, message: str) -> EquipoiseError:
    """Returns the exception for a `reason` sent by a server, with the server's message.

    Args:
        reason: one of `BY_REASON`; any other stands for `InternalError`.
        message: the server's; for `InvalidArgument` with the field before a colon.
    """
    kind = BY_REASON.get(reason, InternalError)
    if kind is InvalidArgument:
        field, _, problem = message.partition(": ")
        return InvalidArgument(field, problem)
    return kind(message)
