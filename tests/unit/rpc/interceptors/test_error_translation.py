"""What callers and the log are told of an error."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import NoReturn, cast

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from equipoise import errors
from equipoise_server.rpc.interceptors.error_translation import MAX_MESSAGE, REASON_KEY, RETRY_KEY, hide_errors
from equipoise_server.rpc.interceptors.interceptor import Call, Context

SECRET = "weights of carrier UA"


class Aborted(aio.AbortError):
    """What the real context raises."""


@dataclass
class FakeContext:
    """Keeps what a call was ended with."""

    ended: list[tuple[grpc.StatusCode, str, dict[str, str]]] = field(default_factory=list)

    async def abort(
        self, status: grpc.StatusCode, message: str, trailing_metadata: tuple[tuple[str, str], ...]
    ) -> NoReturn:
        self.ended.append((status, message, dict(trailing_metadata)))
        raise Aborted


async def fail(
    error: BaseException, method: str = "/equipoise.v1.AnalystService/SubmitWorkload"
) -> tuple[grpc.StatusCode, str, dict[str, str]]:
    context = FakeContext()
    with pytest.raises(Aborted):
        async with hide_errors(Call(method, cast(Context, context))):
            raise error
    (ended,) = context.ended
    return ended


@pytest.mark.parametrize("kind", [kind for kind in errors.BY_REASON.values() if kind is not errors.InternalError])
async def test_our_errors_keep_status_reason_and_text(kind: type[errors.EquipoiseError]) -> None:
    error = errors.from_reason(kind.reason, "statements[3]: unknown")
    assert await fail(error) == (
        grpc.StatusCode[kind.status],
        "statements[3]: unknown",
        {REASON_KEY: kind.reason},
    )


async def test_who_is_too_fast_is_told_when_to_try_again_and_fills_no_log() -> None:
    with capture_logs() as logged:
        _, _, trailing = await fail(errors.TooFast("too often", retry_seconds=0.25))
    assert trailing == {REASON_KEY: "RATE", RETRY_KEY: "0.250"}
    assert logged == []


@pytest.mark.parametrize("error", [ValueError(SECRET), KeyError(SECRET), errors.InternalError(SECRET)])
async def test_anything_else_becomes_a_reference(error: Exception) -> None:
    with capture_logs() as logged:
        status, message, trailing = await fail(error)
    assert status is grpc.StatusCode.INTERNAL
    assert trailing == {REASON_KEY: "INTERNAL"}
    reference = re.fullmatch(r".* under ([0-9a-f]{16})", message)
    assert reference is not None
    assert SECRET not in message
    (entry,) = logged
    assert entry["reference"] == reference[1]
    assert entry["kind"] == type(error).__name__
    assert any("test_error_translation.py" in place for place in entry["places"])


async def test_the_log_has_the_text_of_an_operators_error_but_never_of_an_analysts() -> None:
    for method, told in (
        ("/equipoise.v1.OperatorService/OpenRound", True),
        ("/equipoise.v1.AnalystService/X", False),
    ):
        try:
            try:
                raise KeyError(SECRET)
            except KeyError as cause:
                raise ValueError(SECRET) from cause
        except ValueError as error:
            with capture_logs() as logged:
                await fail(error, method)
        assert (SECRET in str(logged)) is told


async def test_refusals_are_logged_without_their_text() -> None:
    with capture_logs() as logged:
        await fail(errors.InvalidArgument("statements[0]", SECRET))
    (entry,) = logged
    assert SECRET not in str(entry)


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"])
async def test_long_messages_are_cut_by_what_they_take_on_the_wire(letter: str) -> None:
    _, message, _ = await fail(errors.InvalidArgument("labels", letter * 100_000))
    assert message.startswith(f"labels: {letter * 10}")
    assert message.endswith(f"{letter}…")
    assert MAX_MESSAGE - 4 <= len(message.encode()) <= MAX_MESSAGE


async def test_halves_of_surrogate_pairs_do_not_keep_a_call_from_ending() -> None:
    _, message, _ = await fail(errors.InvalidArgument("options.\ud800", "unknown"))
    assert message == "options.?: unknown"


async def test_cancellation_and_aborts_pass_through() -> None:
    for error in (asyncio.CancelledError(), aio.AbortError()):
        context = FakeContext()
        with pytest.raises(type(error)):
            async with hide_errors(Call("/x/Y", cast(Context, context))):
                raise error
        assert context.ended == []


async def test_a_call_that_the_server_s_end_cut_off_is_no_error_of_the_program() -> None:
    class Stopped(aio.BaseError):
        """What gRPC raises in an upload."""

    context = FakeContext()
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        async with hide_errors(Call("/x/Y", cast(Context, context))):
            raise Stopped
    assert (context.ended, logs) == ([], [])
    for error in (aio.UsageError(), aio.InternalError()):
        assert (await fail(error))[0] is grpc.StatusCode.INTERNAL


async def test_a_call_whose_end_is_on_its_way_gets_no_second_one() -> None:
    class Ending(FakeContext):
        async def abort(self, *_: object, **__: object) -> NoReturn:
            raise aio.UsageError("Abort already called!")

    with pytest.raises(asyncio.CancelledError):
        async with hide_errors(Call("/x/Y", cast(Context, Ending()))):
            raise errors.NotAuthenticated("revoked")
