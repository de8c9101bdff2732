"""StewardControlPlane and KamajiControlPlane: Clusters whose control planes run as Pods, in simulation and virtual time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from pathlib import Path
from typing import Any

import pytest

from capikit import generic
from homeport import core
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.capi.remote.pki import KeyPair
from homeport.capi.remote.workload import connect_over_http
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.hosted import kubeconfig
from homeport.hosted.admission import register
from homeport.hosted.clusterapi.approval import REQUEST
from homeport.hosted.definition import definitions
from homeport.hosted.flavour import FLAVOURS, Flavour
from homeport.hosted.install import install_control_planes, install_tenants
from homeport.machinery import condition
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from scenario.hosted.stage import stage
from unit.hosted.test_serving_request import request

SECRET = Resource("", "v1", "Secret", "secrets")
EVENT = Resource("", "v1", "Event", "events")
RBAC = "rbac.authorization.k8s.io"
BINDING = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
WANTED = ("Cluster", "Machine", "MachineDeployment", "MachinePool", "MachineSet", "ClusterClass")


def objects(flavour: Flavour, name: str = "shop", plane: str = "shop-cp") -> list[tuple[dict[str, Any], Resource]]:
    kind = flavour.control_plane.__resource__
    infra = {
        "apiVersion": generic.CLUSTER.api_version,
        "kind": "GenericCluster",
        "metadata": {"name": name, "namespace": "default"},
    }
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "clusterNetwork": {
                "pods": {"cidrBlocks": ["10.8.0.0/16"]},
                "services": {"cidrBlocks": ["10.97.0.0/16"]},
                "serviceDomain": "shop.local",
            },
            "controlPlaneRef": {"apiGroup": kind.group, "kind": kind.kind, "name": plane},
            "infrastructureRef": {"apiGroup": generic.GROUP, "kind": "GenericCluster", "name": name},
        },
    }
    made = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": plane, "namespace": "default"},
        "spec": {"version": "1.33.1", "replicas": 1, "addons": {"coreDNS": {}}},
    }
    return [(infra, generic.CLUSTER), (cluster, Cluster.__resource__), (made, kind)]


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
def test_a_cluster_with_a_hosted_control_plane_lives_scales_upgrades_and_leaves_nothing(
    tmp_path: Path, flavour: Flavour
) -> None:
    @virtual
    async def run() -> None:
        async with stage(tmp_path) as on:
            server = on.plane.server
            hooks = Hooks()
            conversion.register(hooks)
            register(hooks, flavour)
            install_hooks(hooks, server)
            crds = [each for each in capi_definitions() if each["spec"]["names"]["kind"] in WANTED]
            await establish(server.client(), *crds, *generic.definitions(), *definitions(flavour))
            manager = Manager(server.client(), name="hosted", clock=on.plane.clock)
            capi = Capi.make(manager, proxy=on.proxy.url())
            core.install(manager, capi)
            install_control_planes(capi, flavour)
            install_tenants(manager, flavour, proxy=on.proxy.url(), embedded=True)
            running = asyncio.create_task(manager.run())
            client = server.client(field_manager="user")
            try:
                await manager.ready.wait()
                for body, kind in objects(flavour):
                    await client.create(body, kind=kind)
                await life(on, client, flavour)
            finally:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running

    run()


async def life(on: Any, client: Any, flavour: Flavour) -> None:
    key, plane = Key("default", "shop"), Key("default", "shop-cp")

    async def endpoint_known() -> bool:
        infra = await client.get(generic.CLUSTER, key)
        return bool(((infra.get("spec") or {}).get("controlPlaneEndpoint") or {}).get("host"))

    await on.plane.until(endpoint_known, "the InfraCluster has an endpoint", seconds=300)
    provisioned = {"status": {"ready": True, "initialization": {"provisioned": True}}}
    await client.patch(generic.CLUSTER, key, MergePatch(provisioned), subresource="status")

    async def available() -> bool:
        found = await client.get(Cluster, key)
        return condition.is_true(found.status.conditions, "ControlPlaneAvailable")

    await on.plane.until(available, "the control plane of the Cluster is available", seconds=600)
    found = await client.get(flavour.control_plane, plane)
    assert (found.status.initialized, found.status.ready, found.status.version) == (True, True, "v1.33.1")
    assert found.status.external_managed_control_plane
    assert found.status.ready_replicas == 1
    kind = flavour.control_plane.__resource__.kind
    for each in ("TenantControlPlaneCreated", "TenantControlPlaneAddressReady", "ControlPlaneEndpointPatched",
                 "InfrastructureClusterPatched", "KubeadmResourcesCreated", f"{kind}IsInitialized", f"{kind}IsReady"):  # fmt: skip
        assert condition.is_true(found.status.conditions, each), each
    tenant = await client.get(flavour.tenant, plane)
    assert tenant.spec.network_profile.service_cidr == "10.97.0.0/16"
    assert tenant.spec.network_profile.cluster_domain == "shop.local"
    cluster = await client.get(Cluster, key)
    assert f"{cluster.spec.control_plane_endpoint.host}:6443" == tenant.status.control_plane_endpoint
    for secret, field in (("shop-kubeconfig", "value"), ("shop-ca", "tls.crt"), ("shop-ca", "tls.key")):
        assert field in (await client.get(SECRET, Key("default", secret)))["data"]

    await approval(on, client)
    await client.patch(flavour.control_plane, plane, MergePatch({"spec": {"replicas": 2, "version": "v1.34.0"}}))

    async def upgraded() -> bool:
        found = await client.get(flavour.control_plane, plane)
        return (found.status.version, found.status.ready_replicas, found.status.ready) == ("v1.34.0", 2, True)

    await on.plane.until(upgraded, "the control plane is upgraded and scaled", seconds=600)

    await client.delete(Cluster, key)

    async def gone() -> bool:
        try:
            await client.get(flavour.control_plane, plane)
        except NotFound:
            pages = [await client.list(each, Query(namespace="default")) for each in (SECRET, DEPLOYMENT)]
            return not [each for page in pages for each in page.items if each.name.startswith("shop")]
        return False

    await on.plane.until(gone, "nothing of the cluster is left", seconds=600)
    (keys,) = on.hosting.datastores.etcds.values()
    assert sorted(keys.users) == ["root"]


async def approval(on: Any, client: Any) -> None:
    """A kubelet of a Machine gets its serving certificate; one that asks for another name does not."""
    machine = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default", "annotations": {"cluster.x-k8s.io/paused": ""}},
        "spec": {
            "clusterName": "shop",
            "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": {"apiGroup": generic.GROUP, "kind": "GenericMachine", "name": "m"},
        },
    }
    await client.create(machine, kind=Machine.__resource__)
    addresses = [{"type": "InternalIP", "address": "10.0.0.5"}]
    status = {"nodeRef": {"name": "worker"}, "addresses": addresses}
    await client.patch(Machine, Key("default", "m"), MergePatch({"status": status}), subresource="status")
    held = (await client.get(SECRET, Key("default", "shop-ca")))["data"]
    pair = KeyPair(base64.b64decode(held["tls.crt"]), base64.b64decode(held["tls.key"]))
    endpoint = (await client.get(Cluster, Key("default", "shop"))).spec.control_plane_endpoint
    server, now = f"https://{endpoint.host}:{endpoint.port}", on.plane.clock.now()
    content = kubeconfig.make("shop", server, pair, "system:node:worker", ("system:nodes",), now=now)
    kubelet = connect_over_http(content, on.proxy.url())
    admin = connect_over_http(kubeconfig.make("shop", server, pair, "a", ("system:masters",), now=now), on.proxy.url())
    # Simulated API servers have no Node authorizer, which allows kubelets to ask.
    asking = {
        "metadata": {"name": "kubelets"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:node-bootstrapper"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:nodes"}],
    }
    try:
        await admin.create(asking, kind=BINDING)
        for name, host in (("good", "10.0.0.5"), ("bad", "kubernetes.default.svc")):
            spec = {each: request("worker", host)["spec"][each] for each in ("signerName", "usages", "request")}
            await kubelet.create({"metadata": {"name": name}, "spec": spec}, kind=REQUEST)

        async def signed() -> bool:
            return bool(((await admin.get(REQUEST, Key("", "good"))).get("status") or {}).get("certificate"))

        await on.plane.until(signed, "the kubelet has its certificate", seconds=120)
        assert not ((await admin.get(REQUEST, Key("", "bad"))).get("status") or {}).get("conditions")
        events = (await client.list(EVENT, Query(namespace="default"))).items
        told = [each.get("note") or each.get("message") or "" for each in events]
        assert any("Machine m has no name kubernetes.default.svc" in each for each in told)
    finally:
        await kubelet.close()
        await admin.close()
        await client.delete(Machine, Key("default", "m"))
