"""A cluster's objects as they stand when its KubeadmConfigs are looked at, and the reconciler on them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import yaml

from homeport.apiserver.embedded import EmbeddedServer
from homeport.bootstrap.kubeadm.reconciler import KubeadmConfigReconciler
from homeport.bootstrap.token import SECRET
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.capi.remote import pki
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import Plane, Reconciled, plane, shared_pki

API = "cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CLUSTER = Key("default", "one")
KINDS = (
    "clusters.",
    "machines.",
    "machinepools.",
    "kubeadmconfigs.",
    "kubeadmconfigtemplates.",
    "kubeadmcontrolplanes.",
)


def crds() -> list[dict[str, Any]]:
    return [each for each in definitions() if each["metadata"]["name"].startswith(KINDS)]


class Bench:
    """A plane without a running manager, and a workload cluster beside it."""

    def __init__(self, plane: Plane, workload: EmbeddedServer | None = None, capi: Capi | None = None) -> None:
        self.plane = plane
        self.client = plane.client
        self._workload = workload
        self.capi = capi or Capi.make(plane.manager)
        self.reconciler = KubeadmConfigReconciler(plane.manager, self.capi)

    @property
    def workload(self) -> EmbeddedServer:
        assert self._workload is not None
        return self._workload

    async def cluster(
        self, *, provisioned: bool = True, initialized: bool = False, managed: bool = False, paused: bool = False
    ) -> None:
        spec: dict[str, Any] = {
            "clusterNetwork": {
                "pods": {"cidrBlocks": ["10.0.0.0/16", "fd00::/48"]},
                "services": {"cidrBlocks": ["10.96.0.0/12"]},
                "serviceDomain": "example.local",
            },
            "controlPlaneEndpoint": {"host": "10.1.2.3", "port": 6443},
            "infrastructureRef": {"apiGroup": "example.com", "kind": "ExampleCluster", "name": "one"},
        }
        if managed:
            group = "controlplane.cluster.x-k8s.io"
            spec["controlPlaneRef"] = {"apiGroup": group, "kind": "KubeadmControlPlane", "name": "one-cp"}
        if paused:
            spec["paused"] = True
        status = {"infrastructureProvisioned": provisioned, "controlPlaneInitialized": initialized}
        await self.plane.have(
            {
                "apiVersion": API,
                "kind": "Cluster",
                "metadata": {"name": "one"},
                "spec": spec,
                "status": {"initialization": status},
            }
        )

    async def machine(
        self,
        name: str,
        spec: dict[str, Any] | None = None,
        *,
        control_plane: bool = False,
        version: str = "v1.33.1",
        status: dict[str, Any] | None = None,
        data_secret: str = "",
    ) -> Key:
        """A Machine and its KubeadmConfig, both of this name."""
        labels = {"cluster.x-k8s.io/cluster-name": "one"}
        marks = {"cluster.x-k8s.io/control-plane": ""} if control_plane else {}
        bootstrap: dict[str, Any] = {
            "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}
        }
        if data_secret:
            bootstrap["dataSecretName"] = data_secret
        machine = {
            "apiVersion": API,
            "kind": "Machine",
            "metadata": {"name": name, "labels": {**labels, **marks}},
            "spec": {
                "clusterName": "one",
                "version": version,
                "bootstrap": bootstrap,
                "infrastructureRef": {"apiGroup": "example.com", "kind": "ExampleMachine", "name": name},
            },
        }
        if status:
            machine["status"] = status
        (made,) = await self.plane.have(machine)
        await self.config(name, "Machine", made["metadata"]["uid"], spec)
        return Key("default", name)

    async def pool(self, name: str, nodes: int = 0) -> Key:
        config = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}
        infra = {"apiGroup": "example.com", "kind": "ExamplePool", "name": name}
        machine = {
            "clusterName": "one",
            "version": "v1.33.1",
            "bootstrap": {"configRef": config},
            "infrastructureRef": infra,
        }
        pool: dict[str, Any] = {
            "apiVersion": API,
            "kind": "MachinePool",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "one"}},
            "spec": {"clusterName": "one", "replicas": 1, "template": {"spec": machine}},
        }
        if nodes:
            pool["status"] = {"nodeRefs": [{"name": f"node-{i}"} for i in range(nodes)]}
        (made,) = await self.plane.have(pool)
        await self.config(name, "MachinePool", made["metadata"]["uid"], None)
        return Key("default", name)

    async def config(self, name: str, kind: str, uid: str, spec: dict[str, Any] | None) -> None:
        owner = {"apiVersion": API, "kind": kind, "name": name, "uid": uid, "controller": True}
        labels = {"cluster.x-k8s.io/cluster-name": "one"}
        metadata = {"name": name, "labels": labels, "ownerReferences": [owner]}
        config = {"apiVersion": BOOTSTRAP, "kind": "KubeadmConfig", "metadata": metadata, "spec": spec}
        await self.plane.have({key: value for key, value in config.items() if value is not None})

    async def certificates(self, *purposes: pki.Purpose) -> dict[pki.Purpose, pki.KeyPair]:
        made = await pki.generate(purposes or pki.GENERATED, now=self.plane.clock.now())
        await self.plane.have(*(pki.as_secret(CLUSTER, purpose, pair, None) for purpose, pair in made.items()))
        return made

    async def connect(self) -> None:
        await self.capi.remotes.attach(CLUSTER, self.workload.client())

    # -- acting and looking ----------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Reconciled:
        done = await self.plane.reconcile(self.reconciler, key)
        if done.error is not None:
            raise done.error
        return done

    async def patch(self, kind: str, key: Key, body: dict[str, Any], *, status: bool = False) -> None:
        version = API if kind != "KubeadmConfig" else BOOTSTRAP
        resource = self.plane.resource({"apiVersion": version, "kind": kind})
        await self.client.patch(resource, key, MergePatch(body), subresource="status" if status else "")

    async def get(self, kind: str, key: Key) -> Any:
        version = {"KubeadmConfig": BOOTSTRAP, "Secret": "v1", "ConfigMap": "v1"}.get(kind, API)
        return await self.client.get(self.plane.resource({"apiVersion": version, "kind": kind}), key)

    async def data(self, key: Key) -> str:
        secret = await self.client.get(SECRET, key)
        return base64.b64decode(secret["data"]["value"]).decode()

    async def tokens(self) -> list[Any]:
        page = await self.workload.client().list(SECRET, Query(namespace="kube-system"))
        return [each for each in page.items if each.name.startswith("bootstrap-token-")]


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with plane(crds=crds()) as p:
        workload = await EmbeddedServer.open(None, shared_pki(), clock=p.clock.now)
        made = Bench(p, workload)
        try:
            yield made
        finally:
            await made.capi.remotes.close()
            await workload.close(drain_seconds=1.0)


def cloud_config(text: str) -> dict[str, Any]:
    assert text.startswith("## template: jinja\n#cloud-config\n")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def files(text: str) -> dict[str, str]:
    return {each["path"]: each["content"] for each in cloud_config(text)["write_files"]}


def kubeadm(text: str) -> dict[str, Any]:
    """kubeadm's documents of a cloud-config, by kind."""
    found = files(text)
    path = next(each for each in found if each.startswith("/run/kubeadm/"))
    return {each["kind"]: each for each in yaml.safe_load_all(found[path])}


def condition(config: Any, kind: str) -> tuple[str, str, str]:
    found = next(each for each in config["status"]["conditions"] if each["type"] == kind)
    return found["status"], found["reason"], found["message"]
