"""Approving and signing certificate requests takes rights on the signer, not only on the request."""

from __future__ import annotations

import base64
import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from homeport.api.meta import Resource
from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.request import User
from homeport.client.errors import Forbidden, Invalid
from homeport.client.protocol import Key, MergePatch
from unit.apiserver.auth.policy_store import bind, role, rule

GROUP = "certificates.k8s.io"
REQUEST = Resource(GROUP, "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False)
ANNA = User("anna", ("system:authenticated",))
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}}
DENIED = {"status": {"conditions": [{"type": "Denied", "status": "True", "reason": "r"}]}}
FAILED = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]}}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    opened = await EmbeddedServer.open(None, PKI.ensure(tmp_path))
    yield opened
    await opened.close()


def body(signer: str, *organizations: str) -> dict[str, Any]:
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(certs.make_key(), hashes.SHA256())
    pem = base64.b64encode(csr.public_bytes(Encoding.PEM)).decode()
    return {"metadata": {"name": "r"}, "spec": {"request": pem, "signerName": signer, "usages": ["client auth"]}}


async def write(server: EmbeddedServer, subresource: str, patch: dict[str, Any]) -> None:
    await server.client(ANNA).patch(REQUEST, Key("", "r"), MergePatch(patch), subresource=subresource)


async def allow(server: EmbeddedServer, verb: str, name: str) -> None:
    await role(server.store, "held", rule(verb, GROUP, "signers", names=name))
    await bind(server.store, "held", "ClusterRole/held", "User/anna")


@pytest.mark.parametrize(
    ("subresource", "patch", "verb"),
    [("approval", APPROVED, "approve"), ("approval", DENIED, "approve"), ("status", FAILED, "sign")],
)
@pytest.mark.parametrize("name", ["example.com/x", "example.com/*"])
async def test_a_verdict_takes_a_right_on_the_signer(
    server: EmbeddedServer, subresource: str, patch: dict[str, Any], verb: str, name: str
) -> None:
    await server.client().create(body("example.com/x"), kind=REQUEST)
    with pytest.raises(Forbidden) as error:
        await write(server, subresource, patch)
    wanted = f'user not permitted to {verb} requests with signerName "example.com/x"'
    assert str(error.value) == f'certificatesigningrequests.{GROUP} "r" is forbidden: {wanted}'
    await allow(server, verb, name)
    await write(server, subresource, patch)


async def test_the_right_on_another_signer_does_not_count(server: EmbeddedServer) -> None:
    await server.client().create(body("kubernetes.io/kube-apiserver-client"), kind=REQUEST)
    await allow(server, "approve", "example.com/*")
    with pytest.raises(Forbidden):
        await write(server, "approval", APPROVED)


async def test_a_status_that_says_nothing_new_takes_no_right(server: EmbeddedServer) -> None:
    await server.client().create(body("example.com/x"), kind=REQUEST)
    await server.client(ANNA).patch(REQUEST, Key("", "r"), MergePatch({"status": {}}), subresource="status")


async def test_nobody_asks_for_masters_from_the_signer_of_api_clients(server: EmbeddedServer) -> None:
    client = server.client()
    wanted = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    with pytest.raises(Forbidden, match=wanted):
        await client.create(body("kubernetes.io/kube-apiserver-client", "devs", "system:masters"), kind=REQUEST)
    await client.create(body("kubernetes.io/kube-apiserver-client", "devs"), kind=REQUEST)
    await client.delete(REQUEST, Key("", "r"))
    await client.create(body("example.com/x", "system:masters"), kind=REQUEST)


def a_certificate() -> bytes:
    return certs.certificate_pem(certs.sign_ca(certs.make_key(), datetime.datetime.now(datetime.UTC)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", None),
        (a_certificate(), None),
        (a_certificate() + a_certificate(), None),
        (b"here it is:\n" + a_certificate(), None),
        (b"x", "must contain at least one CERTIFICATE PEM block"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "malformed certificate"),
        (a_certificate() + certs.key_pem(certs.make_key()), "only CERTIFICATE PEM blocks are allowed, found"),
        (a_certificate().replace(b"-----\n", b"-----\na: b\n\n", 1), "no PEM block headers are permitted"),
    ],
)
async def test_the_status_takes_certificates_only(server: EmbeddedServer, text: bytes, why: str | None) -> None:
    client = server.client()
    await client.create(body("example.com/x"), kind=REQUEST)
    patch = MergePatch({"status": {"certificate": base64.b64encode(text).decode()}})
    if why is None:
        await client.patch(REQUEST, Key("", "r"), patch, subresource="status")
        return
    with pytest.raises(Invalid, match=why) as error:
        await client.patch(REQUEST, Key("", "r"), patch, subresource="status")
    assert error.value.causes[0].field == "status.certificate"
