"""Callers at the edge of a real server: certificates that nobody would issue, and what a server says to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from equipoise.records.record import SALT_BYTES
from equipoise.v1 import (
    analyst_pb2,
    analyst_pb2_grpc,
)
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.identity.authority import Authority, certificate_to_pem
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.stored_certificates import insert_credential
from harness.server_process import (
    Credentials,
    Refusal,
    ServerProcess,
    key_to_pem,
    refusal_of,
)
from harness.waiting import PATIENCE


def crafted(
    authority: Authority,
    uris: list[str],
    until: datetime,
    usages: Sequence[x509.ObjectIdentifier] = (ExtendedKeyUsageOID.CLIENT_AUTH,),
) -> Credentials:
    """A certificate that the authority itself would never issue, signed with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "operator")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(system_clock() - timedelta(days=2))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if uris:
        alternatives = [x509.UniformResourceIdentifier(uri) for uri in uris]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    certificate = builder.sign(authority.key, hashes.SHA256())
    return Credentials(authority.pem, certificate_to_pem(certificate), key_to_pem(key))


def record(server: ServerProcess, credentials: Credentials) -> None:
    """Put a certificate into the registry as the operator's, so that only what is wrong with it keeps it out."""
    assert credentials.certificate is not None
    certificate = x509.load_pem_x509_certificate(credentials.certificate)
    store = open_deployment(server.state, system_clock()).open_store()
    with store.write() as connection:
        insert_credential(connection, "operator", credential_of(certificate), system_clock())
    store.close()


async def identity_refusal(server: ServerProcess, credentials: Credentials) -> Refusal:
    """How a server refuses to say who somebody is."""
    async with server.channel(credentials) as channel:
        call = analyst_pb2_grpc.AnalystServiceStub(channel).GetIdentity(
            analyst_pb2.GetIdentityRequest(), timeout=10
        )
        return await refusal_of(call)


async def identity(server: ServerProcess, credentials: Credentials) -> tuple[str, int]:
    """The name and the role that a server knows somebody by."""
    async with server.channel(credentials) as channel:
        stub = analyst_pb2_grpc.AnalystServiceStub(channel)
        response = await stub.GetIdentity(analyst_pb2.GetIdentityRequest(), timeout=PATIENCE)
        return response.name, response.role


def raw_refusal(channel: grpc.Channel, method: str, requests: Iterable[bytes]) -> Refusal | None:
    """Calls any method with any bytes: on the wire, every kind of call is a stream each way."""
    call: Any = channel.stream_stream(method)
    try:
        list(call(iter(requests), timeout=PATIENCE))
    except grpc.RpcError as error:
        return Refusal.of(error)
    return None


def uploaded(piece: bytes, count: int) -> Iterator[bytes]:
    header = analyst_pb2.SubmitHeader(
        round_id="r", request_id="q", workload_bytes=count * len(piece), commitment_salt=bytes(SALT_BYTES)
    )
    yield analyst_pb2.SubmitWorkloadRequest(header=header).SerializeToString()
    for _ in range(count):
        yield analyst_pb2.SubmitWorkloadRequest(piece=piece).SerializeToString()
