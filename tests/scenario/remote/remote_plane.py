"""A plane with the remote machine provider, and manifests of its kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import yaml

from conformance.provider.provider_plane import NAMESPACE, ProviderPlane, key, provider_plane
from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteCluster, RemoteMachine
from homeport.client.dial import DIRECT
from homeport.client.protocol import MergePatch
from homeport.providers.remote.component import COMPONENT
from homeport.providers.remote.install import CONDITIONS
from homeport.runtime.clock import Clock
from scenario.remote.ssh_machine import SshMachine

GROUP = "infrastructure.cluster.x-k8s.io/v1beta2"
KEY_NAME = "machine-key"
Json = dict[str, Any]


class _Remote:
    """What the plane asks of a vendor. Machines are those of the test."""

    component = COMPONENT
    dial = DIRECT
    cluster_kind = RemoteCluster
    machine_kind = RemoteMachine
    conditions = CONDITIONS

    def __init__(self, secret: Json) -> None:
        self._secret = secret
        self.specs: dict[str, Json] = {}

    def credentials(self, password: str = "") -> Json:
        return self._secret

    def infra_cluster(self, name: str) -> Json:
        spec = {"controlPlaneEndpoint": {"host": "10.0.0.9", "port": 6443}}
        meta = {"name": name, "namespace": NAMESPACE}
        return {"apiVersion": GROUP, "kind": "RemoteCluster", "metadata": meta, "spec": spec}

    def infra_machine(self, name: str) -> Json:
        meta = {"name": name, "namespace": NAMESPACE}
        return {"apiVersion": GROUP, "kind": "RemoteMachine", "metadata": meta, "spec": dict(self.specs[name])}


class RemotePlane:
    def __init__(self, inner: ProviderPlane, vendor: _Remote) -> None:
        self.inner = inner
        self.client = inner.client
        self._vendor = vendor

    async def machine(self, name: str, spec: Json, *, files: Sequence[Json] = (), commands: Sequence[str] = ()) -> None:
        """A Machine with bootstrap data as k0s' bootstrap provider writes it, on the infrastructure of `spec`."""
        text = "#cloud-config\n" + yaml.safe_dump({"write_files": list(files), "runcmd": list(commands)})
        await self.machine_with(name, spec, text)

    async def machine_with(self, name: str, spec: Json, user_data: str) -> None:
        self._vendor.specs[name] = spec
        await self.inner.machine(name, user_data=user_data)

    async def provisioned(self, *names: str) -> list[RemoteMachine]:
        return await self.inner.ready(*names, timeout=20)

    async def deleted(self, name: str) -> None:
        await self.inner.delete(name)
        await self.inner.deleted(name, timeout=20)

    async def says(self, name: str, *words: str) -> str:
        return await self.inner.machine_says(name, *words, timeout=20)

    async def touch(self, name: str, **annotations: str) -> None:
        """A change of the object: it is looked at again at once."""
        body = {"metadata": {"annotations": annotations or {"example.com/look": "again"}}}
        await self.client.patch(RemoteMachine, key(name), MergePatch(body))

    async def pooled(self, name: str) -> PooledRemoteMachine:
        return await self.client.get(PooledRemoteMachine, key(name))


def access(machine: SshMachine, **fields: Any) -> Json:
    """How the machine is reached."""
    return {"address": "127.0.0.1", "port": machine.port, "sshKeyRef": {"name": KEY_NAME}, **fields} | {
        "workingDir": str(machine.root / "work")
    }


def pooled(name: str, machine: SshMachine, pool: str = "rack") -> Json:
    meta = {"name": name, "namespace": NAMESPACE}
    spec = {"pool": pool, "machine": access(machine)}
    return {"apiVersion": GROUP, "kind": "PooledRemoteMachine", "metadata": meta, "spec": spec}


@asynccontextmanager
async def remote_plane(machine: SshMachine, **data: str) -> AsyncIterator[RemotePlane]:
    """With the Secret of the machine's key. `data`: further keys of it."""
    meta = {"name": KEY_NAME, "namespace": NAMESPACE}
    text = {"value": machine.user_key.export_private_key().decode(), **data}
    vendor = _Remote({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": text})

    @asynccontextmanager
    async def opened(clock: Clock) -> AsyncIterator[Any]:
        yield vendor

    async with provider_plane(opened) as inner:
        await inner.cluster()
        yield RemotePlane(inner, vendor)
