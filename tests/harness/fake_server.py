"""A server of one service that does what a test tells it, on an insecure port of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from equipoise.clients.connection import Connection
from equipoise.clients.refusals import REASON_KEY, RETRY_KEY
from equipoise.errors import EquipoiseError, TooFast
from equipoise.v1 import analyst_pb2

SERVICE: ServiceDescriptor = analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"]
Answer = Callable[[Any, Any], Any]


def refuse(context: Any, error: EquipoiseError) -> NoReturn:
    """Ends a call as a real server would."""
    told = ((RETRY_KEY, str(error.retry_seconds)),) if isinstance(error, TooFast) else ()
    context.set_trailing_metadata(((REASON_KEY, error.reason), *told))
    context.abort(grpc.StatusCode[error.status], error.message)
    raise AssertionError


@contextmanager
def connected(answers: Mapping[str, Answer], service: ServiceDescriptor = SERVICE) -> Iterator[Connection]:
    """A connection to a server whose methods are `answers(request or requests, context)`."""
    server = grpc.server(ThreadPoolExecutor(4))
    handlers = {}
    for name, answer in answers.items():
        method = service.methods_by_name[name]
        makers = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }
        make: Any = makers[method.client_streaming, method.server_streaming]
        handlers[name] = make(
            answer,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    connection = Connection(grpc.insecure_channel(f"127.0.0.1:{port}"), f"127.0.0.1:{port}", deadline_seconds=10)
    try:
        yield connection
    finally:
        connection.close()
        server.stop(None).wait()
