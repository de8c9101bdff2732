"""CertificateSigningRequests: who asks, who decides, who signs."""

from __future__ import annotations

import base64
import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth import certificate as certs
from unit.apiserver.kinds.kind_server import Server
from unit.apiserver.kinds.kind_story import MERGE

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def pem() -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def signed() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return base64.b64encode(certs.certificate_pem(certs.sign_ca(certs.make_key(), now))).decode()


async def asked(server: Server, **spec: Any) -> tuple[int, Any]:
    body = {"request": pem(), "signerName": "example.com/x", "usages": ["client auth"], **spec}
    return await server.ask("POST", REQUESTS, {"metadata": {"name": "a"}, "spec": body})


async def test_the_requester_is_recorded_by_the_server_whatever_the_client_says(server: Server) -> None:
    code, answer = await asked(server, username="somebody-else", groups=["system:masters"], extra={"a": ["b"]})
    assert code == 201
    spec = answer["spec"]
    assert (spec["username"], spec["uid"]) == ("kubernetes-admin", "u1")
    assert spec["groups"] == ["system:masters", "system:authenticated"]
    assert spec["extra"] == {"k": ["v"]}


async def test_what_is_wrong_with_a_request_is_said(server: Server) -> None:
    wrong = {"request": "YQ==", "signerName": "x", "usages": ["foo"], "expirationSeconds": 1}
    code, answer = await server.ask("POST", REQUESTS, {"metadata": {"name": "a"}, "spec": wrong})
    assert code == 422
    fields = [cause["field"] for cause in answer["details"]["causes"]]
    assert fields == ["spec.request", "spec.usages[0]", "spec.signerName", "spec.expirationSeconds"]


async def test_a_broken_request_block_is_refused(server: Server) -> None:
    block = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
    code, answer = await asked(server, request=base64.b64encode(block).decode())
    assert code == 422
    assert answer["details"]["causes"][0]["field"] == "spec.request"


async def test_only_the_approval_subresource_gives_a_verdict_and_it_stays(server: Server) -> None:
    await asked(server)
    _, found = await server.ask("GET", f"{REQUESTS}/a")
    verdict = {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}
    code, answer = await server.ask("PUT", f"{REQUESTS}/a/status", {**found, "status": verdict})
    assert code == 422
    assert "may not add a condition" in answer["message"]
    code, answer = await server.ask(
        "PUT", f"{REQUESTS}/a/approval", {**found, "status": {**verdict, "certificate": "YQ=="}}
    )
    assert code == 200
    assert answer["status"]["conditions"][0]["type"] == "Approved"
    assert "certificate" not in answer["status"]
    code, again = await server.ask("PUT", f"{REQUESTS}/a/approval", {**answer, "status": {}})
    assert code == 422
    assert again["message"].endswith('updates may not remove a condition of type "Approved"')


async def test_the_status_takes_a_certificate_once(server: Server) -> None:
    await asked(server)
    _, found = await server.ask("GET", f"{REQUESTS}/a")
    code, answer = await server.ask("PUT", f"{REQUESTS}/a/status", {**found, "status": {"certificate": "YQ=="}})
    assert code == 422
    assert "must contain at least one CERTIFICATE PEM block" in answer["message"]
    code, answer = await server.ask("PUT", f"{REQUESTS}/a/status", {**found, "status": {"certificate": signed()}})
    assert code == 200
    code, answer = await server.ask("PUT", f"{REQUESTS}/a/status", {**answer, "status": {"certificate": signed()}})
    assert code == 422
    assert "updates may not modify existing certificate content" in answer["message"]


async def test_the_status_does_not_change_a_verdict(server: Server) -> None:
    await asked(server)
    verdict = {"type": "Approved", "status": "True", "reason": "r"}
    conditions = {"status": {"conditions": [verdict]}}
    code, _ = await server.ask("PATCH", f"{REQUESTS}/a/approval", conditions, MERGE)
    assert code == 200
    changed = {"status": {"conditions": [{**verdict, "reason": "another"}]}}
    code, answer = await server.ask("PATCH", f"{REQUESTS}/a/status", changed, MERGE)
    assert code == 422
    assert 'updates may not modify a condition of type "Approved"' in answer["message"]


async def test_a_request_that_another_key_signed_is_refused(server: Server) -> None:
    raw = bytearray(x509.load_pem_x509_csr(base64.b64decode(pem())).public_bytes(serialization.Encoding.DER))
    other = x509.load_pem_x509_csr(base64.b64decode(pem())).signature
    raw[-len(other) :] = other
    text = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(bytes(raw))
    text += b"-----END CERTIFICATE REQUEST-----\n"
    code, answer = await asked(server, request=base64.b64encode(text).decode())
    assert code == 422
    assert answer["details"]["causes"][0]["field"] == "spec.request"


async def test_a_request_does_not_change(server: Server) -> None:
    await asked(server)
    patch = {"spec": {"signerName": "example.com/y"}, "status": {"certificate": "YQ=="}}
    code, answer = await server.ask("PATCH", f"{REQUESTS}/a", patch, "application/merge-patch+json")
    assert code == 200
    assert answer["spec"]["signerName"] == "example.com/x"
    assert "certificate" not in answer["status"]


async def test_requests_are_selected_by_signer(server: Server) -> None:
    await asked(server)
    _, found = await server.ask("GET", f"{REQUESTS}?fieldSelector=spec.signerName=example.com/x")
    assert len(found["items"]) == 1
    _, found = await server.ask("GET", f"{REQUESTS}?fieldSelector=spec.signerName=example.com/z")
    assert found["items"] == []
