"""The signer of a simulated cluster: a bootstrap token buys a kubelet's own certificate and nothing else."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.request import User
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import REQUEST
from homeport.sim.machine.workload.trust.signer import KUBELET_CLIENT
from unit.sim.machine.sim_kit import simulation

BOOTSTRAP = User("system:bootstrap:abcdef", ("system:bootstrappers:kubeadm:default-node-token", "system:authenticated"))
NODE = User("system:node:md-0", ("system:nodes", "system:authenticated"))
CLIENT_USAGES = ["digital signature", "client auth"]
SERVING = "kubernetes.io/kubelet-serving"
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]}}


def request(
    organizations: tuple[str, ...] = ("system:nodes",),
    name: str = "system:node:md-0",
    usages: list[str] = CLIENT_USAGES,
    names: tuple[x509.GeneralName, ...] = (),
    signer: str = KUBELET_CLIENT,
) -> dict[str, Any]:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = builder.sign(certs.make_key(), hashes.SHA256()).public_bytes(Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": usages}
    return {"metadata": {"name": "r"}, "spec": spec}


async def settled(cluster: WorkloadCluster, body: dict[str, Any], user: User) -> Any:
    await cluster.server.client(user).create(body, kind=REQUEST)
    await cluster.controllers.idle()
    return (await cluster.client().get(REQUEST, Key("", "r"))).get("status") or {}


WRONG = {
    "masters": request(("system:masters",)),
    "masters besides": request(("system:nodes", "system:masters")),
    "no organization": request(()),
    "another user": request(name="kubernetes-admin"),
    "a node without a name": request(name="system:node:"),
    "usages of a server": request(usages=["digital signature", "client auth", "server auth"]),
    "too few usages": request(usages=["client auth"]),
    "a name of a host": request(names=(x509.DNSName("kubernetes.default"),)),
    "an address": request(names=(x509.IPAddress(ipaddress.ip_address("10.0.0.100")),)),
    "another signer": request(signer="kubernetes.io/kube-apiserver-client", usages=["client auth"]),
}


@virtual
@pytest.mark.parametrize("what", WRONG)
async def test_a_bootstrap_token_gets_nothing_but_the_certificate_of_a_kubelet(what: str) -> None:
    async with simulation() as sim:
        status = await settled(await sim.cluster_up(), WRONG[what], BOOTSTRAP)
        assert status.get("conditions") is None
        assert "certificate" not in status


@virtual
@pytest.mark.parametrize("user", [BOOTSTRAP, NODE])
async def test_a_kubelet_gets_its_certificate_and_renews_it(user: User) -> None:
    async with simulation() as sim:
        usages = ["key encipherment", *CLIENT_USAGES]
        status = await settled(await sim.cluster_up(), request(usages=usages), user)
        assert status["conditions"][0]["type"] == "Approved"
        assert "certificate" in status


@virtual
async def test_a_node_does_not_renew_the_certificate_of_another() -> None:
    async with simulation() as sim:
        status = await settled(await sim.cluster_up(), request(name="system:node:cp-0"), NODE)
        assert status.get("conditions") is None


@virtual
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (WRONG["masters"], "subject organization is not system:nodes"),
        (WRONG["another user"], "subject common name does not begin with system:node:"),
        (WRONG["an address"], "subjectAltNames are not allowed"),
        (request(signer=SERVING, usages=["digital signature", "server auth"]), "DNS or IP subjectAltName is required"),
        (
            request(signer="kubernetes.io/kube-apiserver-client", usages=["client auth", "cert sign"]),
            "invalid usage for client certificate: cert sign",
        ),
    ],
)
async def test_what_a_signer_does_not_sign_fails_although_an_administrator_approved_it(
    body: dict[str, Any], why: str
) -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        client = cluster.client()
        await client.create(body, kind=REQUEST)
        await client.patch(REQUEST, Key("", "r"), MergePatch(APPROVED), subresource="approval")
        await cluster.controllers.idle()
        status = (await client.get(REQUEST, Key("", "r")))["status"]
        assert "certificate" not in status
        failed = status["conditions"][1]
        assert (failed["type"], failed["reason"], failed["message"]) == ("Failed", "SignerValidationFailure", why)


@virtual
async def test_a_kubelet_gets_an_approved_certificate_to_serve_with() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        names = (x509.DNSName("md-0"), x509.IPAddress(ipaddress.ip_address("10.0.0.12")))
        body = request(signer=SERVING, usages=["digital signature", "server auth"], names=names)
        await cluster.server.client(NODE).create(body, kind=REQUEST)
        client = cluster.client()
        await client.patch(REQUEST, Key("", "r"), MergePatch(APPROVED), subresource="approval")
        await cluster.controllers.idle()
        status = (await client.get(REQUEST, Key("", "r")))["status"]
        signed = x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))
        found = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        assert tuple(found.value) == names
