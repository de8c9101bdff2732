"""Which kubelets get a serving certificate."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from homeport.api.cluster.v1beta2 import Machine
from homeport.hosted.clusterapi.servingrequest import SIGNER, is_open, refuse

MACHINE = msgspec.convert(
    {
        "metadata": {"name": "m"},
        "status": {
            "nodeRef": {"name": "worker"},
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.5"},
                {"type": "Hostname", "address": "worker.example"},
            ],
        },
    },
    Machine,
)


def request(
    *names: str, node: str = "worker", user: str = "system:node:worker", organization: str = "system:nodes", **more: Any
) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
        ]
    )
    built = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        built = built.add_extension(x509.SubjectAlternativeName([_name(each) for each in names]), critical=False)
    pem = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = {
        "signerName": SIGNER,
        "username": user,
        "groups": ["system:nodes", "system:authenticated"],
        "usages": ["digital signature", "server auth"],
        "request": base64.b64encode(pem).decode(),
        **more,
    }
    return {"metadata": {"name": "csr-1"}, "spec": spec}


def _name(text: str) -> x509.GeneralName:
    if "@" in text:
        return x509.RFC822Name(text)
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def test_a_machine_gets_a_certificate_for_its_own_names_and_addresses() -> None:
    asked = request("worker", "worker.example", "10.0.0.5")
    assert is_open(asked)
    assert refuse(asked, [MACHINE]) == ""
    assert refuse(asked, [MACHINE], ["10.0.0.0/24"]) == ""


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request("worker", "kubernetes.default.svc"), "Machine m has no name kubernetes.default.svc"),
        (request("10.0.0.6"), "Machine m has no address 10.0.0.6"),
        (request(), "it names no host and no address"),
        (request("a@b.c"), "it names something else"),
        (request("worker", user="system:node:other"), "the subject is"),
        (request("worker", node="other"), "the subject is"),
        (request("worker", organization="system:masters"), "the subject is"),
        (request("worker", user="mallory"), "user 'mallory' is not a node"),
        (request("worker", groups=["system:authenticated"]), "is not a node"),
        (request("worker", usages=["server auth", "client auth"]), "the usages are client auth, server auth"),
        (request("worker", request="eA=="), "the request can't be read"),
    ],
)
def test_everything_else_stays_open(asked: dict[str, Any], why: str) -> None:
    assert why in refuse(asked, [MACHINE])


def test_a_node_that_is_no_machine_gets_none() -> None:
    asked = request("worker", "10.0.0.5")
    assert refuse(asked, []) == "node worker is not a Machine of the cluster"
    assert refuse(asked, [MACHINE], ["192.168.0.0/16"]) == "10.0.0.5 is not in allowedSubnets"


def test_requests_that_are_decided_or_of_others_are_not_looked_at() -> None:
    decided = {**request("worker"), "status": {"conditions": [{"type": "Denied"}]}}
    assert not is_open(decided)
    assert not is_open(request("worker", signerName="kubernetes.io/kube-apiserver-client"))
