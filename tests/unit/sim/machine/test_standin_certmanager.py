"""cert-manager in simulated clusters: real certificates in Secrets, renewed, and its webhook."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from homeport.client.errors import Forbidden
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import parse_time
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import DEPLOYMENT, NAMESPACE, SECRET, SERVICE, Json
from homeport.sim.machine.workload.standin.certmanager.kind import CERTIFICATE, CLUSTER_ISSUER, ISSUER, KINDS, REQUEST
from homeport.sim.machine.workload.standin.certmanager.sign import make_key, make_request
from unit.sim.machine.sim_kit import simulation
from unit.sim.machine.standin_kit import DEFINITION, VALIDATING, definition, events, settle, webhook, workload

SPACE = "cert-manager"


async def install(cluster: WorkloadCluster) -> None:
    hook = {"name": "cert-manager-webhook", "namespace": SPACE}
    rule = {"apiGroups": ["cert-manager.io"], "apiVersions": ["v1"], "resources": ["*/*"]}
    configuration = {
        "metadata": {
            "name": "cert-manager-webhook",
            "annotations": {"cert-manager.io/inject-ca-from-secret": f"{SPACE}/cert-manager-webhook-ca"},
        },
        "webhooks": [webhook("webhook.cert-manager.io", hook, "/validate", rule)],
    }
    port = {"containerPort": 10250, "name": "https"}
    image = "quay.io/jetstack/cert-manager-{}:v1.18.2".format
    ports = [{"port": 443, "targetPort": "https"}]
    service = {"metadata": hook, "spec": {"selector": {"app": "cert-manager-webhook"}, "ports": ports}}
    await cluster.put([({"metadata": {"name": SPACE}}, NAMESPACE)])
    await cluster.put([(definition(kind, status=True), DEFINITION) for kind in KINDS])
    await cluster.put(
        [
            (workload("cert-manager", SPACE, image("controller")), DEPLOYMENT),
            (workload("cert-manager-cainjector", SPACE, image("cainjector")), DEPLOYMENT),
            (workload("cert-manager-webhook", SPACE, image("webhook"), container={"ports": [port]}), DEPLOYMENT),
            (service, SERVICE),
            (configuration, VALIDATING),
        ]
    )
    await settle(cluster)


def issuer(name: str, **spec: Any) -> tuple[Json, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}, ISSUER


def certificate(name: str, issued_by: str, **spec: Any) -> tuple[Json, Any]:
    body = {"secretName": f"{name}-tls", "dnsNames": [f"{name}.example.com"], "issuerRef": {"name": issued_by}, **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": body}, CERTIFICATE


async def ready(cluster: WorkloadCluster, kind: Any, name: str) -> tuple[str, str]:
    found = await cluster.client().get(kind, Key("default" if kind.namespaced else "", name))
    each = next(one for one in found["status"]["conditions"] if one["type"] == "Ready")
    return each["status"], each["reason"]


async def secret(cluster: WorkloadCluster, name: str) -> dict[str, bytes]:
    found = await cluster.client().get(SECRET, Key("default", name))
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


async def prepared(cluster: WorkloadCluster) -> None:
    """An authority of the cluster: a self-signed CA certificate, and an issuer with it."""
    await install(cluster)
    await cluster.put([issuer("self", selfSigned={})])
    await cluster.put([certificate("root", "self", isCA=True, commonName="root", dnsNames=[])])
    await cluster.put([issuer("ca", ca={"secretName": "root-tls"})])
    await settle(cluster)


@virtual
async def test_a_certificate_of_an_authority_becomes_ready_and_verifies() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await prepared(cluster)
        assert await ready(cluster, ISSUER, "self") == ("True", "IsReady")
        assert await ready(cluster, ISSUER, "ca") == ("True", "KeyPairVerified")
        key = {"algorithm": "ECDSA", "size": 384}
        await cluster.put([certificate("web", "ca", privateKey=key, ipAddresses=["10.0.0.1"], usages=["server auth"])])
        await settle(cluster)
        assert await ready(cluster, CERTIFICATE, "web") == ("True", "Ready")
        data = await secret(cluster, "web-tls")
        leaf, root = (x509.load_pem_x509_certificate(data[name]) for name in ("tls.crt", "ca.crt"))
        leaf.verify_directly_issued_by(root)
        assert data["ca.crt"] == (await secret(cluster, "root-tls"))["tls.crt"]
        assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["web.example.com"]
        request = await cluster.client().get(REQUEST, Key("default", "web-1"))
        assert {each["type"]: each["status"] for each in request["status"]["conditions"]} == {
            "Approved": "True",
            "Ready": "True",
        }
        assert ("Issuing", "The certificate has been successfully issued") in await events(cluster, "web")


@virtual
async def test_a_certificate_is_renewed_before_its_end_and_when_it_changes() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await prepared(cluster)
        await cluster.put([certificate("web", "ca", duration="1h30m", renewBefore="60m")])
        await settle(cluster)
        first = await secret(cluster, "web-tls")
        found = await cluster.client().get(CERTIFICATE, Key("default", "web"))
        assert parse_time(found["status"]["renewalTime"]) - sim.clock.now() == pytest.approx(1800, abs=60)
        await settle(cluster, 1600)
        assert await secret(cluster, "web-tls") == first
        await settle(cluster, 400)
        second = await secret(cluster, "web-tls")
        assert second["tls.crt"] != first["tls.crt"]
        assert second["tls.key"] != first["tls.key"]
        found = await cluster.client().get(CERTIFICATE, Key("default", "web"))
        assert found["status"]["revision"] == 2
        changed = MergePatch({"spec": {"dnsNames": ["other.example.com"]}})
        await cluster.client().patch(CERTIFICATE, Key("default", "web"), changed)
        await settle(cluster)
        third = x509.load_pem_x509_certificate((await secret(cluster, "web-tls"))["tls.crt"])
        names = third.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["other.example.com"]
        await cluster.client().delete(SECRET, Key("default", "web-tls"))
        await settle(cluster)
        assert "tls.key" in await secret(cluster, "web-tls")


@virtual
async def test_an_issuer_that_cannot_sign_says_why_and_its_certificates_wait() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await install(cluster)
        await cluster.put([issuer("acme", acme={"server": "https://acme.example.com"})])
        await cluster.put([issuer("ca", ca={"secretName": "absent"})])
        everywhere: Json = {"metadata": {"name": "everywhere"}, "spec": {"ca": {"secretName": "shared"}}}
        await cluster.put([(everywhere, CLUSTER_ISSUER), certificate("web", "acme")])
        reference = {"name": "everywhere", "kind": "ClusterIssuer"}
        await cluster.put([certificate("other", "", issuerRef=reference)])
        await settle(cluster)
        assert await ready(cluster, ISSUER, "acme") == ("False", "NotSimulated")
        assert await ready(cluster, ISSUER, "ca") == ("False", "ErrGetKeyPair")
        assert await ready(cluster, CLUSTER_ISSUER, "everywhere") == ("False", "ErrGetKeyPair")
        assert await ready(cluster, CERTIFICATE, "web") == ("False", "DoesNotExist")
        await cluster.put([issuer("self", selfSigned={})])
        await cluster.put([certificate("root", "self", isCA=True, secretName="shared")])
        await settle(cluster)
        made = await cluster.client().get(SECRET, Key("default", "shared"))
        copy = {"metadata": {"name": "shared", "namespace": SPACE}, "data": made["data"]}
        await cluster.put([(copy, SECRET)])
        await settle(cluster)
        assert await ready(cluster, CLUSTER_ISSUER, "everywhere") == ("True", "KeyPairVerified")
        assert await ready(cluster, CERTIFICATE, "other") == ("True", "Ready")


@virtual
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"dnsNames": []}, "at least one of commonName"),
        ({"issuerRef": {}}, "spec.issuerRef.name: Required value"),
        ({"duration": "30m"}, "certificate duration must be greater than 1h0m0s"),
        ({"duration": "2h", "renewBefore": "3h"}, "certificate duration must be greater than renewBefore"),
    ],
)
async def test_the_webhook_refuses_what_makes_no_sense(spec: Json, expected: str) -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await install(cluster)
        body, kind = certificate("web", "ca", **spec)
        with pytest.raises(Forbidden, match=r'admission webhook "webhook\.cert-manager\.io" denied the request') as no:
            await cluster.client().create(body, kind=kind)
        assert expected in str(no.value)


@virtual
async def test_a_request_of_somebody_else_is_approved_and_signed() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await prepared(cluster)
        key = make_key({"privateKey": {"algorithm": "Ed25519"}})
        pem = make_request({"commonName": "somebody"}, key)
        spec = {"request": base64.b64encode(pem).decode(), "issuerRef": {"name": "ca"}, "usages": ["client auth"]}
        meta = {"name": "mine", "namespace": "default"}
        await cluster.put([({"metadata": meta, "spec": spec}, REQUEST)])
        await cluster.put([({"metadata": {**meta, "name": "bad"}, "spec": {**spec, "request": "bm8="}}, REQUEST)])
        await settle(cluster)
        assert await ready(cluster, REQUEST, "mine") == ("True", "Issued")
        assert await ready(cluster, REQUEST, "bad") == ("False", "Failed")
        found = await cluster.client().get(REQUEST, Key("default", "mine"))
        issued = x509.load_pem_x509_certificate(base64.b64decode(found["status"]["certificate"]))
        assert issued.subject.rfc4514_string() == "CN=somebody"


@virtual
async def test_an_authority_is_injected_where_an_annotation_asks_for_it() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await prepared(cluster)
        await cluster.put([certificate("hook", "ca")])
        target = {"name": "hook", "namespace": "default"}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["bindings"]}
        hook = webhook("hook.example.com", target, "/x", rule)
        for name, notes in (
            ("certificate", {"cert-manager.io/inject-ca-from": "default/hook"}),
            ("server", {"cert-manager.io/inject-apiserver-ca": "true"}),
            ("refused", {"cert-manager.io/inject-ca-from-secret": "default/hook-tls"}),
        ):
            await cluster.put([({"metadata": {"name": name, "annotations": notes}, "webhooks": [hook]}, VALIDATING)])
        await settle(cluster)

        async def bundle(name: str) -> bytes:
            found = await cluster.client().get(VALIDATING, Key("", name))
            return base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))

        assert await bundle("certificate") == (await secret(cluster, "root-tls"))["tls.crt"]
        assert await bundle("server") == cluster.pki.ca_pem
        assert await bundle("refused") == b""  # the Secret does not allow it
