"""Single reconciles of hosted control planes: what one look writes, what it waits for, and that the next writes nothing."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.api.steward.controlplane import StewardControlPlane
from homeport.api.steward.v1alpha1 import DataStore, KubeconfigGenerator, TenantControlPlane
from homeport.apiserver.auth import certificate as certs
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.capi.remote.pki import moment
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.clusterapi.reconciler import HostedControlPlaneReconciler
from homeport.hosted.datastore.reconciler import DataStoreReconciler
from homeport.hosted.definition import definitions
from homeport.hosted.etcd.client import Etcd
from homeport.hosted.etcd.dial import Access
from homeport.hosted.flavour import STEWARD
from homeport.hosted.generator.reconciler import KubeconfigGeneratorReconciler
from homeport.hosted.tenant.reconciler import TenantControlPlaneReconciler
from homeport.machinery import condition
from homeport.runtime.testing import Plane, plane, versions
from homeport.sim.hosted.datastore import Datastores
from homeport.sim.hosted.etcd import EtcdCalls
from homeport.sim.machine.fleet import Fleet
from homeport.sim.network import Network

SECRET = Resource("", "v1", "Secret", "secrets")
SERVICE = Resource("", "v1", "Service", "services")
KEY = Key("default", "demo")
GROUP = "steward.butlerlabs.dev/v1alpha1"


class EtcdInMemory:
    """The simulated etcd, spoken to without a network."""

    def __init__(self, p: Plane) -> None:
        self.datastores = Datastores(Fleet(Network(), p.clock))
        self.keys = self.datastores.open("e")

    @asynccontextmanager
    async def connect(self, access: Access) -> AsyncIterator[Etcd]:
        yield Etcd(self)

    async def call(self, path: str, request: bytes) -> bytes:
        return EtcdCalls(self.datastores, "e", "root").calls()[path](request)

    async def close(self) -> None:
        return

    def enable(self) -> None:
        self.keys.add_user("root", "")
        self.keys.grant_role("root", "root")
        self.keys.enable()


def tenant(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": "TenantControlPlane",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {
            "controlPlane": {"deployment": {"replicas": 1}, "service": {"serviceType": "LoadBalancer"}},
            "kubernetes": {"version": "v1.33.1", "kubelet": {"cgroupfs": "systemd"}},
            "dataStore": "etcd",
            **spec,
        },
    }


def datastore(p: Plane) -> dict[str, Any]:
    key = certs.make_key()
    ca = certs.Issuer(certs.sign_ca(key, moment(p.clock.now()), common_name="etcd-ca"), key)
    root = ca.client("root", (), moment(p.clock.now()))

    def value(data: bytes) -> dict[str, str]:
        return {"content": base64.b64encode(data).decode()}

    authority = {"certificate": value(certs.certificate_pem(ca.certificate)), "privateKey": value(certs.key_pem(key))}
    client = {"certificate": value(root.certificate), "privateKey": value(root.key)}
    tls = {"certificateAuthority": authority, "clientCertificate": client}
    spec = {"driver": "etcd", "endpoints": ["etcd.example:2379"], "tlsConfig": tls}
    return {"apiVersion": GROUP, "kind": "DataStore", "metadata": {"name": "etcd"}, "spec": spec}


def runs_all(image: str) -> bool:
    return bool(image)


@asynccontextmanager
async def hosted_plane(*crds: dict[str, Any]) -> AsyncIterator[tuple[Plane, EtcdInMemory]]:
    async with plane(crds=[*definitions(STEWARD), *crds]) as p:
        yield p, EtcdInMemory(p)


def ready(obj: Any) -> tuple[str, str]:
    found = condition.find(obj.status.conditions, "Ready") or {}
    return str(found.get("reason")), str(found.get("message"))


# -- DataStore ---------------------------------------------------------------------------------------------------------


async def test_a_datastore_says_which_field_can_not_be_read() -> None:
    async with hosted_plane() as (p, etcd):
        body = datastore(p)
        missing = {"name": "nowhere", "namespace": "default", "keyPath": "ca.crt"}
        body["spec"]["tlsConfig"]["certificateAuthority"]["certificate"] = {"secretReference": missing}
        await p.have(body)
        loop = DataStoreReconciler(p.manager, STEWARD, connect_datastore=etcd.connect, can_run=runs_all)
        outcome = await p.reconcile(loop, Key("", "etcd"))
        assert outcome.wait is not None
        assert outcome.wait.reason == "SecretNotFound"
        reason, message = ready(await p.client.get(DataStore, Key("", "etcd")))
        assert (reason, "spec.tlsConfig.certificateAuthority.certificate" in message) == ("SecretNotFound", True)


async def test_a_datastore_knows_its_users_and_stays_while_there_are_any() -> None:
    async with hosted_plane() as (p, etcd):
        await p.have(datastore(p), tenant())
        loop = DataStoreReconciler(p.manager, STEWARD, connect_datastore=etcd.connect, can_run=runs_all)
        await p.reconcile(loop, Key("", "etcd"))
        found = await p.client.get(DataStore, Key("", "etcd"))
        assert found.status.used_by == ["default/demo"]
        assert ready(found)[0] == "AuthenticationDisabled"
        etcd.enable()
        await p.reconcile(loop, Key("", "etcd"))
        assert ready(await p.client.get(DataStore, Key("", "etcd")))[0] == "Ready"
        before = versions(p)
        await p.reconcile(loop, Key("", "etcd"))
        assert versions(p) == before

        await p.client.delete(DataStore, Key("", "etcd"))
        outcome = await p.reconcile(loop, Key("", "etcd"))
        assert outcome.wait is not None
        assert outcome.wait.reason == "InUse"
        assert "default/demo" in outcome.wait.message


# -- TenantControlPlane ------------------------------------------------------------------------------------------------


async def test_a_control_plane_is_made_step_by_step_and_nothing_is_written_twice() -> None:
    async with hosted_plane() as (p, etcd):
        etcd.enable()
        await p.have(tenant())
        loop = TenantControlPlaneReconciler(p.manager, STEWARD, connect_datastore=etcd.connect, can_run=runs_all)
        outcome = await p.reconcile(loop, KEY)
        assert {kind.kind for kind, _ in outcome.written} >= {"TenantControlPlane", "Service"}
        assert ready(await p.client.get(TenantControlPlane, KEY))[0] == "WaitingForLoadBalancer"

        ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.9"}]}}}
        await p.client.patch(SERVICE, KEY, MergePatch(ingress), subresource="status")
        outcome = await p.reconcile(loop, KEY)
        assert outcome.wait is not None
        assert outcome.wait.reason == "DataStoreNotFound"  # certificates and kubeconfigs are there by now
        secrets = {key.name for kind, key in outcome.written if kind.kind == "Secret"}
        assert {"demo-ca", "demo-api-server-certificate", "demo-admin-kubeconfig"} <= secrets

        await p.have(datastore(p))
        outcome = await p.reconcile(loop, KEY)
        assert outcome.wait is not None
        assert outcome.wait.reason == "WaitingForPods"
        assert sorted(etcd.keys.users) == ["default_demo", "root"]
        found = await p.client.get(TenantControlPlane, KEY)
        assert found.status.control_plane_endpoint == "10.0.0.9:6443"
        assert found.status.kubernetes_resources.version.status == "Provisioning"
        await p.reconcile(loop, KEY)
        before = versions(p)
        await p.reconcile(loop, KEY)
        assert versions(p) == before


async def test_a_deleted_control_plane_takes_its_data_with_it() -> None:
    async with hosted_plane() as (p, etcd):
        etcd.enable()
        await p.have(tenant(), datastore(p))
        loop = TenantControlPlaneReconciler(p.manager, STEWARD, connect_datastore=etcd.connect, can_run=runs_all)
        await p.reconcile(loop, KEY)
        ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.9"}]}}}
        await p.client.patch(SERVICE, KEY, MergePatch(ingress), subresource="status")
        await p.reconcile(loop, KEY)
        await p.client.delete(TenantControlPlane, KEY)
        outcome = await p.reconcile(loop, KEY)
        assert outcome.wait is not None
        assert outcome.wait.reason == "WaitingForPods"  # the API servers stop before the data goes
        assert "default_demo" in etcd.keys.users
        deployment = Resource("apps", "v1", "Deployment", "deployments")
        await p.client.patch(deployment, KEY, MergePatch({"metadata": {"finalizers": None}}))
        await p.reconcile(loop, KEY)
        assert sorted(etcd.keys.users) == ["root"]
        assert not [name for name in etcd.keys.keys if "demo" in name]


# -- KubeconfigGenerator -----------------------------------------------------------------------------------------------


async def test_a_generator_counts_what_it_could_not_make() -> None:
    async with hosted_plane() as (p, _):
        spec = {"user": {"stringValue": "me"}, "controlPlaneEndpointFrom": "admin.conf"}
        body = {"apiVersion": GROUP, "kind": "KubeconfigGenerator", "metadata": {"name": "g"}, "spec": spec}
        await p.have(tenant(), body)
        loop = KubeconfigGeneratorReconciler(p.manager, STEWARD)
        outcome = await p.reconcile(loop, Key("", "g"))
        assert outcome.wait is not None
        assert outcome.wait.reason == "KubeconfigsMissing"
        found = await p.client.get(KubeconfigGenerator, Key("", "g"))
        assert (found.status.resources, found.status.available_resources) == (1, 0)
        assert found.status.errors[0].message == "the control plane has no kubeconfig yet"


# -- Cluster API -------------------------------------------------------------------------------------------------------


async def test_a_control_plane_of_a_cluster_makes_its_tenant_with_the_network_of_the_cluster() -> None:
    wanted = ("Cluster", "Machine")
    crds = [each for each in capi_definitions() if each["spec"]["names"]["kind"] in wanted]
    async with hosted_plane(*crds) as (p, _):
        capi = Capi.make(p.manager)
        loop = HostedControlPlaneReconciler(capi, STEWARD)
        body: dict[str, Any] = {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
            "kind": "StewardControlPlane",
            "metadata": {"name": "demo", "namespace": "default"},
            "spec": {"version": "v1.33.1", "network": {"ingress": {"hostname": "k.example"}}},
        }
        await p.have(body)
        outcome = await p.reconcile(loop, KEY)
        assert outcome.wait is not None
        assert outcome.wait.reason == "WaitingForCluster"

        network = {"services": {"cidrBlocks": ["10.97.0.0/16"]}, "apiServerPort": 7443}
        cluster = {
            "apiVersion": Cluster.__resource__.api_version,
            "kind": "Cluster",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"clusterNetwork": network},
        }
        (owner,) = await p.have(cluster)
        reference = {"apiVersion": cluster["apiVersion"], "kind": "Cluster", "name": "shop", "uid": owner.uid}
        await p.client.patch(StewardControlPlane, KEY, MergePatch({"metadata": {"ownerReferences": [reference]}}))
        outcome = await p.reconcile(loop, KEY)
        assert outcome.wait is not None
        assert outcome.wait.reason == "WaitingForControlPlaneEndpoint"
        found = await p.client.get(TenantControlPlane, KEY)
        assert (found.spec.network_profile.service_cidr, found.spec.network_profile.port) == ("10.97.0.0/16", 7443)
        assert found.spec.control_plane.ingress is not None
        assert found.spec.control_plane.ingress.hostname == "k.example"
