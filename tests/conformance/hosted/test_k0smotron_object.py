"""The objects of k0smotron control planes are valid on a real API server and on ours, and applying them again changes
nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.capi.remote.pki import KeyPair
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Write
from homeport.hosted.endpoint import Endpoint
from homeport.hosted.k0smotron.certificate import render_secret
from homeport.hosted.k0smotron.definition import definitions
from homeport.hosted.k0smotron.pod.config import render_config, render_config_map
from homeport.hosted.k0smotron.pod.entrypoint import render_entrypoint
from homeport.hosted.k0smotron.pod.etcd import render_defrag, render_etcd, render_etcd_service
from homeport.hosted.k0smotron.pod.ingress import render_ingress, render_ingress_certificates, render_ingress_manifests
from homeport.hosted.k0smotron.pod.monitoring import render_monitoring
from homeport.hosted.k0smotron.pod.nats import render_nats_service, render_nats_token
from homeport.hosted.k0smotron.pod.service import render_endpoint_manifest, render_service
from homeport.hosted.k0smotron.pod.statefulset import render_statefulset, render_telemetry
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.runtime.testing import plane, virtual
from realkube import RealKube, find_binaries
from unit.hosted.k0smotron.k0smotron_subject import OWNER, subject

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(120)]

WRITE = Write(field_manager="homeport-k0smotron")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
KINDS = {
    "ConfigMap": Resource("", "v1", "ConfigMap", "configmaps"),
    "Secret": Resource("", "v1", "Secret", "secrets"),
    "Service": Resource("", "v1", "Service", "services"),
    "StatefulSet": Resource("apps", "v1", "StatefulSet", "statefulsets"),
    "CronJob": Resource("batch", "v1", "CronJob", "cronjobs"),
    "Ingress": Resource("networking.k8s.io", "v1", "Ingress", "ingresses"),
}
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
SUBJECTS = (
    subject(replicas=3, service={"type": "LoadBalancer", "apiPort": 443}, monitoring={"enabled": True}),
    subject(
        name="behind",
        ingress={"apiHost": "api.example.com", "konnectivityHost": "kon.example.com", "deploy": True},
        persistence={"type": "pvc", "persistentVolumeClaim": CLAIM},
        resources={"requests": {"cpu": "500m"}},
        mounts=[{"path": "/etc/audit.yaml", "configMap": {"name": "audit"}}],
    ),
    subject(name="nats", storage={"type": "nats"}, replicas=3, service={"type": "NodePort"}),
    subject(name="c" * 60, storage={"type": "kine", "kine": {"dataSourceSecretName": "db"}}),
)


def objects(of: Subject) -> list[dict[str, Any]]:
    pair = KeyPair(b"certificate", b"key")
    config = render_config(of, "192.0.2.1")
    made = [
        render_service(of),
        render_config_map(of, config),
        render_entrypoint(of),
        render_endpoint_manifest(of, Endpoint("192.0.2.1", 6443)),
        render_telemetry(of),
        render_monitoring(of),
        render_secret(of, of.certificate("ca"), pair, OWNER),
        render_statefulset(of, "digest"),
    ]
    if of.storage == "etcd":
        made += [render_etcd_service(of), render_etcd(of, 1), render_defrag(of)]
    if of.storage == "nats":
        made += [render_nats_service(of), render_nats_token(of, "token")]
    if of.spec.ingress is not None:
        made += [
            render_ingress(of, of.spec.ingress),
            render_ingress_manifests(of, of.spec.ingress),
            render_ingress_certificates(of, pair, b"ca"),
        ]
    return made


async def apply_all(client: Client) -> dict[tuple[str, str], str]:
    """The version of each object after it was applied."""
    found = {}
    for each in [obj for of in SUBJECTS for obj in objects(of)]:
        made = await client.apply(each, WRITE, kind=KINDS[each["kind"]], force=True)
        found[each["kind"], each["metadata"]["name"]] = made.resource_version
    return found


async def prepare(client: Client) -> None:
    await client.create({"metadata": {"name": "tenants"}}, kind=NAMESPACE)
    for crd in definitions():
        stored = [each for each in crd["spec"]["versions"] if each["storage"]]
        await client.create({**crd, "spec": {**crd["spec"], "versions": stored}}, kind=CRD)


async def test_a_real_api_server_accepts_the_objects_and_keeps_them_as_they_are() -> None:
    found = find_binaries()
    if isinstance(found, str):
        pytest.skip(found)
    with RealKube(found) as real:
        credential = Static(cert=Certificate(real.cert.read_bytes(), real.key.read_bytes()))
        client = HttpClient(Config(real.url, credential, real.ca.read_bytes()))
        try:
            await prepare(client)
            assert await apply_all(client) == await apply_all(client)
        finally:
            await client.close()


@virtual
async def test_the_embedded_api_server_does_not_write_an_object_again_that_is_applied_later() -> None:
    """Claims of a StatefulSet get defaults, and are owned as a whole: what is applied differs from what is stored."""
    async with plane() as p:
        await prepare(p.client)
        before = await apply_all(p.client)
        await asyncio.sleep(100)
        assert await apply_all(p.client) == before
