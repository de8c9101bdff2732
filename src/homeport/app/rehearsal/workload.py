"""Stands in for workload clusters: each is an API server in memory, whose Nodes follow the Machines of the plane."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.app.rehearsal import k0s
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, KUBECONFIG_SUFFIX, SECRET_VALUE
from homeport.capi.remote.workload import NODE
from homeport.client.config import ConfigError
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.health import CONTROL_PLANE_ROLE, EtcdView
from homeport.machinery import yaml
from homeport.runtime.clock import Clock
from homeport.runtime.task import cancel

_POD = Resource("", "v1", "Pod", "pods")
_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_SYSTEM = "kube-system"
_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}


class WorkloadClusters:
    """All workload clusters of the rehearsal. Everything in them is healthy."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._pki = PKI.ensure(folder)
        self._clock = clock
        self._servers: dict[Key, EmbeddedServer] = {}
        self._kubeconfigs: dict[bytes, Key] = {}
        self._k0s: dict[Key, asyncio.Task[None]] = {}
        self._opening = asyncio.Lock()

    async def open(self, cluster: Key) -> EmbeddedServer:
        async with self._opening:
            if cluster not in self._servers:
                self._servers[cluster] = await EmbeddedServer.open(None, self._pki, clock=self._clock.now)
            return self._servers[cluster]

    async def close(self) -> None:
        for task in self._k0s.values():
            await cancel(task)
        for server in self._servers.values():
            await server.close(drain_seconds=0.1)

    async def note_kubeconfig(self, secret: Unstructured) -> None:
        """To be called for each Secret: connections are recognised by the kubeconfig that they use."""
        content = (secret.get("data") or {}).get(SECRET_VALUE)
        if secret.name.endswith(KUBECONFIG_SUFFIX) and content:
            cluster = Key(secret.namespace, secret.name.removesuffix(KUBECONFIG_SUFFIX))
            await self.open(cluster)
            self._kubeconfigs[base64.b64decode(content)] = cluster

    def connect(self, kubeconfig: bytes, proxy: str, /) -> Client:
        cluster = self._kubeconfigs.get(kubeconfig)
        if cluster is None:
            raise ConfigError("this kubeconfig belongs to no Cluster of the rehearsal")
        return self._servers[cluster].client(field_manager="homeport")

    async def follow(self, machine: Unstructured) -> None:
        """Machines that run have a Node."""
        spec, status = machine.get("spec") or {}, machine.get("status") or {}
        labels = machine.metadata.get("labels") or {}
        if not spec.get("providerID") or machine.metadata.get("deletionTimestamp"):
            return
        cluster = Key(machine.namespace, str(spec.get("clusterName") or labels.get(CLUSTER_NAME_LABEL, "")))
        client = (await self.open(cluster)).client(field_manager="kubeadm")
        name = str((status.get("nodeRef") or {}).get("name") or machine.name)
        control_plane = CONTROL_PLANE_LABEL in labels
        version = str(spec.get("version") or "")
        if ((spec.get("bootstrap") or {}).get("configRef") or {}).get("kind") == k0s.CONFIG_KIND:
            await self._run_k0s(cluster, client)
            await k0s.announce(client, machine.name, version)
        elif control_plane:
            await _configure(client, version)
        await _join(client, name, spec["providerID"], version, control_plane)

    async def _run_k0s(self, cluster: Key, client: Client) -> None:
        if cluster not in self._k0s:
            await k0s.define(client)
            self._k0s[cluster] = asyncio.create_task(k0s.serve(client), name=f"k0s of {cluster}")


async def _configure(client: Client, version: str) -> None:
    """What `kubeadm init` leaves behind."""
    found = {"apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "ClusterConfiguration", "kubernetesVersion": version}
    meta = {"name": "kubeadm-config", "namespace": _SYSTEM}
    with contextlib.suppress(AlreadyExists):
        await client.create({"metadata": meta, "data": {"ClusterConfiguration": yaml.dump(found)}}, kind=_CONFIG_MAP)


async def _join(client: Client, name: str, provider_id: str, version: str, control_plane: bool) -> None:
    labels = {CONTROL_PLANE_ROLE: ""} if control_plane else {}
    taints = [{"key": CONTROL_PLANE_ROLE, "effect": "NoSchedule"}] if control_plane else []
    node = {"metadata": {"name": name, "labels": labels}, "spec": {"providerID": provider_id, "taints": taints}}
    try:
        await client.create(node, kind=NODE)
    except AlreadyExists:
        return
    healthy = [{"type": each, "status": "False", "reason": "Fine", "message": ""} for each in _PRESSURES]
    status = {"conditions": [*healthy, _READY], "nodeInfo": {"kubeletVersion": version}}
    await client.patch(NODE, Key("", name), MergePatch({"status": status}), subresource="status")
    for component in _COMPONENTS if control_plane else ():
        await _run(client, component, name)


async def _run(client: Client, component: str, node: str) -> None:
    labels = {"component": component, "tier": "control-plane"}
    key = Key(_SYSTEM, f"{component}-{node}")
    pod = {
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": labels,
            "annotations": {"kubernetes.io/config.mirror": node},  # a static Pod: drains leave it alone
        },
        "spec": {"nodeName": node, "containers": [{"name": component, "image": component}]},
    }
    with contextlib.suppress(AlreadyExists, NotFound):
        await client.create(pod, kind=_POD)
        body = {"status": {"phase": "Running", "conditions": [_READY]}}
        await client.patch(_POD, key, MergePatch(body), subresource="status")


class StandInEtcd:
    """One healthy member on each control plane Node."""

    def __init__(self) -> None:
        self._members: dict[Key, dict[str, int]] = {}
        self._removed: dict[Key, set[str]] = {}
        self._leader: dict[Key, str] = {}
        self._next = 1

    def forget(self, cluster: Key) -> None:
        for known in (self._members, self._removed, self._leader):
            known.pop(cluster, None)

    async def look(
        self, cluster: Key, remote: Any, authority: Any, nodes: Sequence[str], *, lasting: bool = False
    ) -> EtcdView:
        if not nodes:
            return EtcdView(error="no Node with etcd exists yet")
        members, removed = self._members.setdefault(cluster, {}), self._removed.setdefault(cluster, set())
        for node in sorted(nodes):
            if node not in members and node not in removed:
                members[node], self._next = self._next, self._next + 1
        leader = self._leader.get(cluster, "")
        if leader not in members:
            leader = self._leader[cluster] = next(iter(members), "")
        listed = tuple(
            Member(id, name, peer_urls=(f"https://{name}:2380",), client_urls=(f"https://{name}:2379",))
            for name, id in members.items()
        )
        return EtcdView(listed, members.get(leader, 0), answering=frozenset(nodes) & frozenset(members))

    async def remove_member(self, cluster: Key, remote: Any, authority: Any, nodes: Sequence[str], member: int) -> None:
        members: Mapping[str, int] = self._members.get(cluster, {})
        for name in [name for name, id in members.items() if id == member]:
            self._members[cluster].pop(name)
            self._removed.setdefault(cluster, set()).add(name)

    async def move_leader(
        self, cluster: Key, remote: Any, authority: Any, leader: str, candidates: Sequence[Member]
    ) -> None:
        if candidates:
            self._leader[cluster] = candidates[0].name
